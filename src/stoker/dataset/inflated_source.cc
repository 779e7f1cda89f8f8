#include "stoker/dataset/inflated_source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/base/units.h"
#include "stoker/codec/inflate.h"
#include "stoker/dataset/volume_kinds.h"
#include "stoker/os/file.h"
#include "stoker/os/file_facts.h"
#include "stoker/os/lock_file.h"
#include "stoker/os/memory.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/interruption.h"

namespace stoker::dataset {
namespace {

constexpr std::size_t kBlock = 1 << 20;
constexpr std::size_t kStoreBlock = 16 << 20;  // each request to a store has a price
constexpr std::size_t kStart = 64 << 10;
constexpr std::uint64_t kEnds = 64 << 10;  // of the compressed bytes, that are part of the key

// What stands behind the inflated bytes in a file of the cache folder.
struct Trailer {
  std::array<char, 16> magic{'s', 't', 'o', 'k', 'e', 'r', ' ', 'i', 'n', 'f', 'l', 'a', 't', 'e', 'd', '1'};
  std::uint64_t key_high = 0, key_low = 0;
  std::uint64_t bytes = 0;
  std::uint64_t content = 0;  // XXH3-64 of the blocks, each seeded by the sum before
  std::uint64_t own = 0;      // XXH3-64 of the fields above
};
static_assert(sizeof(Trailer) == 56);

std::uint64_t sum_of(const Trailer& trailer) noexcept {
  return hash_bytes(std::as_bytes(std::span(&trailer, 1)).first(sizeof(Trailer) - sizeof trailer.own));
}

struct InflatedKey {
  std::uint64_t high = 0, low = 0;
};

InflatedKey key_of(const Compressed& compressed) {
  const storage::Source& source = *compressed.source;
  const std::uint64_t ends = std::min(kEnds, compressed.bytes);
  std::vector<std::byte> bytes(2 * ends);
  const std::array<storage::Read, 2> reads{
      storage::Read{compressed.offset, std::span(bytes).first(ends)},
      storage::Read{compressed.offset + compressed.bytes - ends, std::span(bytes).last(ends)}};
  source.read(reads);
  std::uint64_t seed = mix(compressed.bytes, compressed.crc32);
  if (source.backend() != nullptr) {
    seed = hash_text(source.version(), seed);
  } else {
    seed = mix(seed, static_cast<std::uint64_t>(os::facts_of(std::string(source.name())).modified_ns));
  }
  return {hash_bytes(bytes, seed), hash_bytes(bytes, mix(seed, 1))};
}

// Takes inflated bytes: the first `most_held` stay in memory, and what follows them is not wanted. 0: a file takes all.
class InflatedSink {
 public:
  InflatedSink(std::string path, const InflatedKey& key, std::uint64_t most_held)
      : path_(std::move(path)), key_(key), most_held_(most_held) {}

  void write(std::span<const std::byte> bytes) {
    bytes_ += bytes.size();
    content_ = hash_bytes(bytes, content_);
    if (file_) return file_->write(bytes);
    if (most_held_ == 0) {
      file_.emplace(path_);
      return file_->write(bytes);
    }
    if (held_.empty()) held_.reserve(most_held_);
    const std::span<const std::byte> wanted =
        bytes.first(std::min<std::uint64_t>(bytes.size(), most_held_ - held_.size()));
    held_.insert(held_.end(), wanted.begin(), wanted.end());
  }

  bool is_file() const noexcept { return file_.has_value(); }
  std::vector<std::byte> take() { return std::move(held_); }
  void commit() {
    Trailer trailer;
    trailer.key_high = key_.high;
    trailer.key_low = key_.low;
    trailer.bytes = bytes_;
    trailer.content = content_;
    trailer.own = sum_of(trailer);
    file_->write(std::as_bytes(std::span(&trailer, 1)));
    file_->commit();
  }

 private:
  std::string path_;
  InflatedKey key_;
  std::uint64_t most_held_;
  std::vector<std::byte> held_;
  std::optional<os::NewFile> file_;
  std::uint64_t bytes_ = 0, content_ = 0;
};

class ZlibStream {
 public:
  explicit ZlibStream(Compressed::Form form) {
    if (inflateInit2(&stream_, form == Compressed::Form::gzip ? 15 + 16 : -15) != Z_OK) {
      throw Error(ErrorKind::unavailable, "cannot inflate: no memory for zlib");
    }
  }
  ZlibStream(const ZlibStream&) = delete;
  ZlibStream& operator=(const ZlibStream&) = delete;
  ~ZlibStream() { inflateEnd(&stream_); }

  z_stream& get() noexcept { return stream_; }

 private:
  z_stream stream_{};
};

void inflate_all(const Compressed& compressed, InflatedSink& sink) {
  const std::string_view name = compressed.source->name();
  const auto damaged = [&](std::string_view cause, std::uint64_t at) {
    throw Error(ErrorKind::corrupt,
                fmt::format("cannot inflate `{}` at byte {}: {}", name, compressed.offset + at, cause));
  };
  ZlibStream zlib(compressed.form);
  z_stream& stream = zlib.get();
  const std::uint64_t block = compressed.source->backend() != nullptr ? kStoreBlock : kBlock;
  std::vector<std::byte> in(std::clamp<std::uint64_t>(compressed.bytes, 1, block));
  std::vector<std::byte> out(kBlock);
  std::uint64_t read = 0;
  std::uint32_t crc = 0;
  bool is_over = false;
  while (!is_over) {
    storage::check_interruption();
    if (stream.avail_in == 0) {
      if (read == compressed.bytes) damaged("it ends early", read);
      const std::size_t count = std::min<std::uint64_t>(in.size(), compressed.bytes - read);
      const storage::Read one{compressed.offset + read, std::span(in).first(count)};
      compressed.source->read({&one, 1});
      stream.next_in = reinterpret_cast<Bytef*>(in.data());
      stream.avail_in = static_cast<uInt>(count);
      read += count;
    }
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    const std::uint64_t at = read - stream.avail_in;
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      damaged(stream.msg != nullptr ? stream.msg : "damaged deflate data", at);
    }
    const std::span<const std::byte> written = std::span(out).first(out.size() - stream.avail_out);
    if (compressed.form == Compressed::Form::deflate && !written.empty()) {
      crc = static_cast<std::uint32_t>(
          crc32(crc, reinterpret_cast<const Bytef*>(written.data()), static_cast<uInt>(written.size())));
    }
    sink.write(written);
    if (status != Z_STREAM_END) continue;
    // Another member may follow. Anything else behind the end is ignored, as gzip does.
    std::array<std::byte, 2> next{};
    is_over = compressed.form == Compressed::Form::deflate || compressed.bytes - at < 2;
    if (!is_over) {
      const storage::Read one{compressed.offset + at, next};
      compressed.source->read({&one, 1});
      is_over = next[0] != std::byte{0x1F} || next[1] != std::byte{0x8B};
    }
    if (!is_over && inflateReset(&stream) != Z_OK) damaged("damaged deflate data", at);
  }
  if (compressed.form == Compressed::Form::deflate && crc != compressed.crc32) damaged("its CRC differs", read);
}

// The file of the cache folder, if it is there and whole.
std::optional<InflatedFile> find_inflated(const std::string& path, const InflatedKey& key, storage::Storage storage) {
  if (!os::can_reach(path)) return std::nullopt;
  try {
    InflatedFile found;
    found.source = open_plain_source(path, storage);
    const std::uint64_t size = found.source->size_bytes();
    if (size < sizeof(Trailer)) return std::nullopt;
    Trailer trailer;
    const storage::Read read{size - sizeof trailer, std::as_writable_bytes(std::span(&trailer, 1))};
    found.source->read({&read, 1});
    if (trailer.magic != Trailer().magic || trailer.own != sum_of(trailer) || trailer.key_high != key.high ||
        trailer.key_low != key.low || trailer.bytes != size - sizeof trailer) {
      return std::nullopt;
    }
    found.bytes = trailer.bytes;
    return found;
  } catch (const Error&) {
    return std::nullopt;  // it is made again
  }
}

// Room for the inflated bytes in memory, taken before anything is inflated. 0: they go into a file.
std::uint64_t room_in_memory(const Compressed& compressed, const VolumeOptions& options) {
  const std::uint64_t bytes = compressed.inflated_bytes;
  if (!options.cache_dir.empty() && bytes > kHeldInflated) return 0;
  const std::uint64_t most = options.room != nullptr ? options.room->bytes() : os::memory_limit().bytes / 4;
  if (options.room != nullptr ? options.room->take(bytes) : bytes <= most) return bytes;
  if (!options.cache_dir.empty()) return 0;
  throw Error(ErrorKind::unavailable,
              format_text("cannot inflate `{}`: it has {} inflated, and {} are left to all volumes of {}",
                          compressed.source->name(), format_bytes(bytes), format_bytes(most), option("memory_limit")),
              format_text("name a folder in {}: it is inflated into a file there, once; or raise {}",
                          option("cache_dir"), option("memory_limit")))
      .about("cache_dir");
}

}  // namespace

std::vector<std::byte> inflate_start(const Compressed& compressed, std::size_t bytes) {
  std::vector<std::byte> in(std::min<std::uint64_t>(compressed.bytes, kStart)), out(bytes);
  const storage::Read one{compressed.offset, in};
  compressed.source->read({&one, 1});
  ZlibStream zlib(compressed.form);
  z_stream& stream = zlib.get();
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&stream, Z_SYNC_FLUSH);
  if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
    throw Error(ErrorKind::corrupt, fmt::format("cannot inflate `{}` at byte {}: {}", compressed.source->name(),
                                                compressed.offset + in.size() - stream.avail_in,
                                                stream.msg != nullptr ? stream.msg : "damaged deflate data"));
  }
  out.resize(out.size() - stream.avail_out);
  return out;
}

void check_stored(const Compressed& stored, const VolumeOptions& options) {
  std::string path;
  if (!options.cache_dir.empty()) {
    const InflatedKey key = key_of(stored);
    path = fmt::format("{}/volume-{:016x}{:016x}.crc", options.cache_dir, key.high, key.low);
    if (os::can_reach(path)) return;
  }
  std::vector<std::byte> block(std::clamp<std::uint64_t>(stored.bytes, 1, kBlock));
  std::uint32_t sum = 0;
  for (std::uint64_t at = 0; at < stored.bytes; at += block.size()) {
    storage::check_interruption();
    const std::span<std::byte> part = std::span(block).first(std::min<std::uint64_t>(block.size(), stored.bytes - at));
    const storage::Read one{stored.offset + at, part};
    stored.source->read({&one, 1});
    sum = codec::crc32(part, sum);
  }
  if (sum != stored.crc32) {
    throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: the CRC of the array at byte {} differs",
                                                stored.source->name(), stored.offset));
  }
  if (path.empty()) return;
  os::make_folders(options.cache_dir);
  os::NewFile(path).commit();
}

InflatedFile inflate_once(const Compressed& compressed, const VolumeOptions& options) {
  std::string path;
  InflatedKey key;
  std::optional<os::LockFile> lock;
  if (!options.cache_dir.empty()) {
    key = key_of(compressed);
    path = fmt::format("{}/volume-{:016x}{:016x}.bin", options.cache_dir, key.high, key.low);
    if (std::optional<InflatedFile> found = find_inflated(path, key, options.storage)) return std::move(*found);
    os::make_folders(options.cache_dir);
    lock.emplace(options.cache_dir + "/volumes.lock");
    lock->lock(key.low >> 2);
    if (std::optional<InflatedFile> found = find_inflated(path, key, options.storage)) return std::move(*found);
  }
  InflatedSink sink(path, key, room_in_memory(compressed, options));
  inflate_all(compressed, sink);
  if (sink.is_file()) {
    sink.commit();
    if (std::optional<InflatedFile> found = find_inflated(path, key, options.storage)) return std::move(*found);
    throw Error(ErrorKind::unavailable, fmt::format("cannot read `{}`: it changed when it was just written", path));
  }
  InflatedFile result;
  result.held = sink.take();
  result.bytes = result.held.size();
  result.source = storage::memory_source(compressed.source->name(), result.held);
  return result;
}

}  // namespace stoker::dataset
