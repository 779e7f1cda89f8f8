// Layout, in the machine's byte order (a listing from another kind of machine fails its checksum):
//   magic, when it was listed (u64 seconds since 1970), identity of the store and folder (u32 length, bytes)
//   blocks: u32 bytes, u64 checksum, then this number of bytes of objects
//   the last block has 0 bytes, and the number of objects in place of a checksum
// An object: u16 bytes that its path shares with the one before, u16 further bytes, u8 bytes of its version, u64 size,
// then the further bytes and the version.
#include "stoker/dataset/object_listing.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/base/units.h"
#include "stoker/dataset/listing.h"
#include "stoker/os/file.h"

namespace stoker::dataset {
namespace {

using Object = storage::Backend::Object;

constexpr std::string_view kObjectsMagic = "STKOBJS1";
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxBlock = 2 * kBlockBytes;
constexpr std::uint64_t kMaxObjectBytes = std::uint64_t{1} << 62;

std::uint64_t sum_of(std::string_view block, std::uint64_t number) {
  return hash_text(block, mix(0x6F626A73, number));
}

template <typename T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

template <typename T>
bool take_number(std::string_view& from, T& value) {
  if (from.size() < sizeof value) return false;
  std::memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
  return true;
}

class ListingWriter {
 public:
  ListingWriter(const std::string& path, std::string_view identity, std::uint64_t now_s) : file_(path) {
    block_ = kObjectsMagic;
    put(block_, now_s);
    put(block_, static_cast<std::uint32_t>(identity.size()));
    block_ += identity;
    flush();
  }

  void add(std::string_view path, const Object& object) {
    const std::size_t most = std::min({path.size(), last_.size(), std::size_t{UINT16_MAX}});
    const auto shared =
        static_cast<std::size_t>(std::mismatch(path.begin(), path.begin() + most, last_.begin()).first - path.begin());
    const std::string_view rest = path.substr(shared);
    const std::string_view version = object.version.size() <= UINT8_MAX ? object.version : std::string_view();
    put(block_, static_cast<std::uint16_t>(shared));
    put(block_, static_cast<std::uint16_t>(rest.size()));
    put(block_, static_cast<std::uint8_t>(version.size()));
    put(block_, object.bytes);
    block_ += rest;
    block_ += version;
    last_ = path;
    ++count_;
    if (block_.size() >= kBlockBytes) end_block();
  }
  void commit() {
    if (!block_.empty()) end_block();
    put(block_, std::uint32_t{0});
    put(block_, count_);
    flush();
    file_.commit();
  }

 private:
  void end_block() {
    std::string head;
    put(head, static_cast<std::uint32_t>(block_.size()));
    put(head, sum_of(block_, number_++));
    file_.write(std::as_bytes(std::span(head)));
    flush();
  }
  void flush() {
    file_.write(std::as_bytes(std::span(block_)));
    block_.clear();
  }

  os::NewFile file_;
  std::string block_, last_;
  std::uint64_t number_ = 0, count_ = 0;
};

class KeptListing {
 public:
  // None: missing, damaged, or of another address.
  static std::optional<KeptListing> open(const std::string& path, std::string_view identity) {
    try {
      KeptListing listing(storage::open_source(path));
      if (!listing.read_head(identity)) return std::nullopt;
      const std::uint64_t first = listing.at_;
      std::uint64_t count = 0;
      const bool is_sound = listing.each([&](std::string_view, std::uint64_t, std::string_view) {
        ++count;
        return true;
      });
      if (!is_sound || count != listing.promised_) return std::nullopt;
      listing.at_ = first;
      return listing;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  std::uint64_t listed_s() const noexcept { return listed_s_; }

  // Calls use(path, bytes, version) until it says no. False: the file is not what it should be.
  template <typename Use>
  bool each(const Use& use) {
    std::string last;
    for (std::uint64_t number = 0;; ++number) {
      std::uint32_t bytes = 0;
      std::uint64_t sum = 0;
      std::string head = read(sizeof bytes + sizeof sum);
      std::string_view left = head;
      if (!take_number(left, bytes) || !take_number(left, sum) || bytes > kMaxBlock) return false;
      if (bytes == 0) {
        promised_ = sum;
        return at_ == source_->size_bytes();
      }
      const std::string block = read(bytes);
      if (block.size() != bytes || sum_of(block, number) != sum) return false;
      for (std::string_view rest = block; !rest.empty();) {
        std::uint16_t shared = 0, further = 0;
        std::uint8_t version = 0;
        std::uint64_t size = 0;
        if (!take_number(rest, shared) || !take_number(rest, further) || !take_number(rest, version) ||
            !take_number(rest, size) || shared > last.size() || rest.size() < std::size_t{further} + version ||
            size > kMaxObjectBytes) {
          return false;
        }
        last.resize(shared);
        last += rest.substr(0, further);
        if (!use(std::string_view(last), size, rest.substr(further, version))) return true;
        rest.remove_prefix(std::size_t{further} + version);
      }
    }
  }

 private:
  explicit KeptListing(std::unique_ptr<storage::Source> source) : source_(std::move(source)) {}

  bool read_head(std::string_view identity) {
    std::uint32_t length = 0;
    const std::string head = read(kObjectsMagic.size() + sizeof listed_s_ + sizeof length);
    if (!head.starts_with(kObjectsMagic)) return false;
    std::string_view left = std::string_view(head).substr(kObjectsMagic.size());
    return take_number(left, listed_s_) && take_number(left, length) && length == identity.size() &&
           read(length) == identity;
  }
  // Shorter at the end of the file.
  std::string read(std::size_t bytes) {
    std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, source_->size_bytes() - at_)), '\0');
    const storage::Read read{at_, std::as_writable_bytes(std::span(text))};
    source_->read({&read, 1});
    at_ += text.size();
    return text;
  }

  std::unique_ptr<storage::Source> source_;
  std::uint64_t at_ = 0, listed_s_ = 0, promised_ = 0;
};

std::uint64_t seconds_now(const OpenOptions& options) {
  if (options.now_ns) return static_cast<std::uint64_t>(options.now_ns() / 1'000'000'000);
  using namespace std::chrono;
  return static_cast<std::uint64_t>(duration_cast<seconds>(system_clock::now().time_since_epoch()).count());
}

std::string age_note(std::uint64_t listed_s, std::uint64_t now_s) {
  return fmt::format(
      "the listing is {} old: objects that were added since are not seen, and those that changed fail or "
      "come from the disk cache as they were (listing=fresh lists again)",
      format_duration(std::chrono::seconds(now_s - std::min(listed_s, now_s))));
}

}  // namespace

void list_objects(const storage::Backend& backend, std::string_view folder, const OpenOptions& options,
                  const storage::Backend::Take& take, std::vector<std::string>& notes) {
  const bool wants_kept = options.listing == UseListing::kept;
  const std::string cache = options.use_cache ? listing_folder(options.cache_dir) : std::string();
  if (cache.empty()) {
    if (wants_kept) notes.emplace_back("the listing is not kept: there is no cache folder");
    return backend.list(folder, take);
  }
  const std::string identity = fmt::format("{} {}", backend.identity(), folder);
  const std::string path = fmt::format("{}/objects-{:016x}.bin", cache, hash_text(identity));
  const std::uint64_t now_s = seconds_now(options);
  std::optional<KeptListing> kept = KeptListing::open(path, identity);
  if (wants_kept && kept) {
    notes.push_back(age_note(kept->listed_s(), now_s));
    std::string name(folder);
    const bool is_sound = kept->each([&](std::string_view object, std::uint64_t bytes, std::string_view version) {
      name.resize(folder.size());
      name += object;
      return take({name, bytes, version});
    });
    if (!is_sound) throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: it changed meanwhile", path));
    return;
  }
  if (!wants_kept && !kept) return backend.list(folder, take);  // keeping it was not asked for

  std::unique_ptr<ListingWriter> writer;
  const auto keep = [&](const auto& write) {
    try {
      write();
    } catch (const Error& error) {
      writer.reset();
      notes.push_back(fmt::format("the listing is not kept, the next start lists again: {}", error.message()));
    }
  };
  keep([&] {
    os::make_folders(cache);
    writer = std::make_unique<ListingWriter>(path, identity, now_s);
  });
  bool is_whole = true;
  backend.list(folder, [&](const Object& object) {
    const std::string_view object_path = object.name.substr(folder.size());
    if (writer && object_path.size() <= UINT16_MAX) keep([&] { writer->add(object_path, object); });
    return is_whole = take(object);
  });
  if (writer && is_whole) keep([&] { writer->commit(); });
}

}  // namespace stoker::dataset
