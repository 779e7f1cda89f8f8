// A named run of bytes that can be read at any offset: a file, a buffer, later an S3 object.
// Sources are immutable, and safe to read from many threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace stoker::storage {

// How local files are read. The same word is the knob `storage` of the loader.
enum class Storage : std::uint8_t {
  buffered,   // through the page cache
  direct,     // O_DIRECT + io_uring, past the page cache
  mmap,       // mapped
  ram,        // read once and kept in memory, as far as it fits: see ram_store.h; sources open direct, files buffered
  automatic,  // "auto": chosen by size and memory
};

std::string_view name(Storage storage) noexcept;
Storage parse_storage(std::string_view text);  // throws Error(usage), offering the nearest word
// How to open a source of `bytes` bytes where `wanted` leaves it open: past the page cache if that cannot hold it.
Storage settle(Storage wanted, std::uint64_t bytes);

struct Read {
  std::uint64_t offset = 0;
  std::span<std::byte> into;
};

class Backend;

// How bytes are read best where they lie: told by a source, or by the backend of an object.
struct ReadAdvice {
  bool join = false;     // neighbouring reads are worth joining into large ones: each request has a price
  bool in_place = true;  // a read needs no more room than its bytes: it may go straight into a batch
};

class Source {
 public:
  virtual ~Source() = default;

  virtual std::string_view name() const noexcept = 0;  // for messages: the path or the s3:// address
  virtual std::uint64_t size_bytes() const noexcept = 0;

  // Fills every buffer, in any order, and returns when all are full. Buffers need no alignment.
  // Throws Error; a read past the end is `corrupt`, never short.
  virtual void read(std::span<const Read> reads) const = 0;

  // All bytes in place, if the source has them in memory (mapped, memory); empty otherwise.
  virtual std::span<const std::byte> view() const noexcept { return {}; }
  // How many bytes of view() may be touched now: the file of a mapped source may have become shorter.
  virtual std::uint64_t size_now() const noexcept { return size_bytes(); }
  // A descriptor that Fetcher may read from, or -1. is_direct(): it was opened with O_DIRECT and takes whole blocks
  // only.
  virtual int descriptor() const noexcept { return -1; }
  virtual bool is_direct() const noexcept { return false; }
  virtual ReadAdvice advice() const noexcept { return {}; }
  // Whose fetcher reads it; null: any fetcher of local files, through the descriptor, the view or read().
  virtual const Backend* backend() const noexcept { return nullptr; }
  // Of an object of a store: changes with the content (an ETag). Empty: nobody can tell old bytes from new ones.
  virtual std::string_view version() const noexcept { return {}; }
};

// `address` is a path, or has the scheme of a backend (backend.h). Throws Error. Storage::direct gives a buffered
// source where the file system refuses O_DIRECT: is_direct() tells. A mapped source compares sizes before it copies; a
// file cut short by someone else while its view() is being read raises SIGBUS.
std::unique_ptr<Source> open_source(std::string_view address, Storage storage = Storage::buffered);
// A mapped local file that holds no descriptor: descriptor() is -1, view() and read() give the bytes. For data sets of
// more files than a process may have open. Throws Error.
std::unique_ptr<Source> open_mapped_file(std::string_view path);
// Borrows `bytes`, which must outlive the source.
std::unique_ptr<Source> memory_source(std::string_view name, std::span<const std::byte> bytes);

// Whether the file of a mapped source is shorter now than when it was opened: touching its view() may raise SIGBUS.
bool is_cut_short(const Source& source) noexcept;

// The whole file in one go, for small ones. Throws Error; a file above `limit_bytes` is `unavailable`.
std::vector<std::byte> read_file(std::string_view path, std::uint64_t limit_bytes = std::uint64_t{1} << 40);
// The same of an address: a file, or an object of a store.
std::vector<std::byte> read_address(std::string_view address, std::uint64_t limit_bytes = std::uint64_t{1} << 40);

}  // namespace stoker::storage
