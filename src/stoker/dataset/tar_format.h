// Plain tar: reading the members of an archive in place, and writing the head of one. POSIX ustar and pax, GNU long
// names; no compression. A reader belongs to one thread.
//
// Damage: a header is 512 bytes at a multiple of 512, with a checksum. Behind a bad one the reader looks for the next
// block with the magic "ustar" and the right checksum; what lies between is a gap. What is found depends on the bytes
// alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/dataset/tar_window.h"
#include "stoker/storage/source.h"

namespace stoker::dataset {

inline constexpr std::uint64_t kTarBlock = 512;

constexpr std::uint64_t tar_padded(std::uint64_t bytes) noexcept {
  return (bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
}

enum class TarKind : std::uint8_t {
  file,           // a regular file, whole and in one piece
  hard_link,      // another name of the member `link`
  symbolic_link,  // `link` is a path, seen from the folder of the member
  sparse,         // a file whose zeros are left out: its content is not in one piece
  other,          // a folder, a device, a kind that we do not know
};

struct TarMember {
  std::string name;
  std::uint64_t offset = 0, bytes = 0;  // of the content in the archive
  TarKind kind = TarKind::other;
  std::string link;  // of links
};

// Bytes that could not be read as members.
struct TarGap {
  std::uint64_t offset = 0, bytes = 0;
  std::string cause;  // "a header's checksum is wrong"
};

// How an archive ends. Writers close it with two blocks of zeros; a few leave them out.
enum class TarEnd : std::uint8_t {
  marker,      // with zeros, be it one block or a part of one: every member before them is whole
  none,        // behind a whole member: nothing tells whether more followed
  in_padding,  // between the content of a member and the next multiple of 512: it was cut off
};

class TarReader {
 public:
  // With `gaps`, damage is listed there and reading goes on behind it; without, next() throws.
  explicit TarReader(const storage::Source& source, std::vector<TarGap>* gaps = nullptr);
  // Reads through `window`, which is borrowed.
  explicit TarReader(TarWindow& window, std::vector<TarGap>* gaps = nullptr);

  // False at the end. Throws Error(corrupt) naming the archive and the byte; an archive that ends without the closing
  // blocks is taken as it is if its last member is whole, and end() says so. Archives that were joined
  // (`cat a.tar b.tar`) are read as one.
  bool next(TarMember& member);
  // Once next() has returned false, and no gap reaches the end.
  TarEnd end() const noexcept { return end_; }
  // The content of a small member, such as a label. Throws Error.
  std::string content(const TarMember& member, std::uint64_t most_bytes);

 private:
  struct Damage;

  std::span<const std::byte> bytes(std::uint64_t offset, std::uint64_t count) { return window_.bytes(offset, count); }
  std::string text(std::uint64_t offset, std::uint64_t count, std::string_view what);
  bool read_member(TarMember& member);                   // throws Damage
  std::uint64_t sparse_map_bytes(std::uint64_t header);  // throws Damage
  bool skip_zeros();  // at a block of zeros: whether a joined archive follows. Throws Damage
  Error error(const Damage& damage) const;
  // The first block from `offset` on that `is_wanted`; the size of the archive if there is none.
  template <typename Wanted>
  std::uint64_t find_block(std::uint64_t offset, Wanted is_wanted);
  bool may_lack_its_name(const Damage& damage, std::uint64_t header);

  std::optional<TarWindow> own_window_;
  TarWindow& window_;
  std::vector<TarGap>* gaps_;
  std::uint64_t size_;
  std::uint64_t at_ = 0;
  TarEnd end_ = TarEnd::none;
};

// Everything that stands before the content of a regular file, a multiple of 512 bytes: a ustar header, with a pax one
// before it where name or size do not fit. The same arguments give the same bytes.
std::string tar_header(std::string_view name, std::uint64_t bytes, std::int64_t mtime_s);
std::uint64_t tar_header_bytes(std::string_view name, std::uint64_t bytes);  // its length

// "a-{000..002}.tar" is a-000.tar, a-001.tar, a-002.tar; "{x,y}" is x and y. Throws Error(usage).
std::vector<std::string> expand_braces(const std::string& pattern);

}  // namespace stoker::dataset
