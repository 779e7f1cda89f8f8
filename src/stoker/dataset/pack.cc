// A pack: rows of data-*.npy (raw) or members of data-*.tar (encoded), found by index.npy. Nothing in it is trusted:
// every row of the index is compared with its shard before the data set exists.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/csv_text.h"
#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/base/units.h"
#include "stoker/dataset/files.h"
#include "stoker/dataset/kinds.h"
#include "stoker/dataset/listing.h"
#include "stoker/dataset/pack_format.h"
#include "stoker/dataset/packed.h"
#include "stoker/os/fd.h"
#include "stoker/os/mapping.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {
namespace {

// Below this a file is copied: one that is rewritten in place while mapped would end the process.
constexpr std::uint64_t kCopyPackBelow = 256 * kMiB;
constexpr std::uint64_t kNamesPerMark = 64;
constexpr std::uint64_t kMaxShard = std::uint64_t{1} << 50;

// A file of the pack in memory, whole and with the checksum that pack.json says.
class HeldFile {
 public:
  void open(const std::string& folder, const PackFile& file, std::string_view address) {
    const std::string path = fmt::format("{}/{}", folder, file.name);
    if (storage::store_of(path) != nullptr) {
      copy_ = storage::read_address(path, file.bytes);
      bytes_ = copy_;
    } else {
      hold(path);
    }
    if (bytes_.size() != file.bytes || hash_bytes(bytes_) != file.xxh3) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("cannot open `{}`: its {} is not the one that pack.json describes ({} bytes, checksum "
                              "{:016x})",
                              address, file.name, file.bytes, file.xxh3),
                  "make the pack again, or look at it with `stoker check`");
    }
  }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  std::uint64_t memory_bytes() const noexcept { return held_bytes(copy_); }

 private:
  void hold(const std::string& path) {
    const os::Fd fd = os::open_file(path, O_RDONLY | O_NONBLOCK);
    const std::uint64_t bytes = os::file_size(fd.get(), path);
    if (bytes < kCopyPackBelow) {
      copy_.resize(bytes);
      copy_.resize(os::read_up_to(fd.get(), copy_, 0, path));
      bytes_ = copy_;
    } else {
      mapping_ = os::Mapping(fd.get(), bytes, path);
      bytes_ = mapping_.bytes();
    }
  }

  std::vector<std::byte> copy_;
  os::Mapping mapping_;
  std::span<const std::byte> bytes_;
};

// Stands for a shard that cannot be opened.
class NoSource final : public storage::Source {
 public:
  explicit NoSource(std::string name) : name_(std::move(name)) {}
  std::string_view name() const noexcept override { return name_; }
  std::uint64_t size_bytes() const noexcept override { return 0; }
  void read(std::span<const storage::Read>) const override {
    throw Error(ErrorKind::not_found, fmt::format("cannot read `{}`: it could not be opened", name_));
  }

 private:
  std::string name_;
};

class PackDataset final : public Packed {
 public:
  PackDataset(const std::string& address, const OpenOptions& options, std::vector<ShardProblem>* problems)
      : problems_(problems) {
    const std::string json_path = fmt::format("{}/{}", address, kPackJson);
    const std::vector<std::byte> json = storage::read_address(json_path, kGiB);
    manifest_ = parse_manifest({reinterpret_cast<const char*>(json.data()), json.size()}, address);
    index_.open(address, *manifest_.file(kPackIndex), address);
    rows_ = index_rows(index_.bytes(), manifest_.count, manifest_.label_kind, address);
    names_.open(address, *manifest_.file(kPackNames), address);
    if (!manifest_.columns.empty()) read_columns(address);
    mark_names(address);
    open_shards(address, options);
    take_facts(address, options);
    check_rows(address);
    problems_ = nullptr;
  }

  const PackManifest& manifest() const noexcept override { return manifest_; }
  PackRow row(std::uint64_t index) const noexcept override {
    PackRow row;
    std::memcpy(&row, rows_.data() + index * sizeof row, sizeof row);
    return row;
  }
  const storage::Source& shard(std::uint64_t number) const noexcept override { return *shards_[number]; }

  const Facts& facts() const noexcept override { return facts_; }
  std::uint64_t size() const noexcept override { return manifest_.count; }
  std::uint64_t id(std::uint64_t index) const noexcept override {
    return static_cast<std::uint64_t>(row(index).id) & kIdMask;
  }
  storage::Location locate(std::uint64_t index, std::span<char>) const noexcept override {
    const PackRow at = row(index);
    // Checked when the pack was opened; a mapped index that somebody rewrote since must not lead astray.
    const std::size_t number = at.shard < shards_.size() ? at.shard : 0;
    return storage::Location::in_source(shards_[number].get(), at.offset, std::min(at.bytes, facts_.largest_bytes));
  }
  Label label(std::uint64_t index) const noexcept override { return label_of(row(index), manifest_.label_kind); }
  codec::Media media(std::uint64_t index) const noexcept override {
    return manifest_.kind == PackKind::raw ? codec::media_named("npy") : codec::media_of_name(line_of(index));
  }
  std::string name(std::uint64_t index) const override { return read_name(line_of(index)); }
  double column(std::size_t column, std::uint64_t index) const noexcept override {
    double value = 0;
    if (column < manifest_.columns.size()) {
      const auto field = field_of_row(columns_.text(), column_rows_[index], column);
      if (field && !field->raw.empty()) {
        const char* const end = field->raw.data() + field->raw.size();
        const auto [stopped, error] = std::from_chars(field->raw.data(), end, value);
        if (error == std::errc() && stopped == end) return value;
      }
    }
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::string column_text(std::size_t column, std::uint64_t index) const override {
    if (column >= manifest_.columns.size()) return {};
    const auto field = field_of_row(columns_.text(), column_rows_[index], column);
    return field ? field->text() : std::string();
  }
  std::span<const storage::Source* const> sources() const noexcept override { return borrowed_; }
  std::span<const storage::Backend* const> backends() const noexcept override {
    return {&backend_, backend_ != nullptr ? 1u : 0u};
  }
  std::uint64_t memory_bytes() const noexcept override {
    return 2 * held_bytes(facts_) + index_.memory_bytes() + names_.memory_bytes() + columns_.memory_bytes() +
           held_bytes(marks_) + held_bytes(column_rows_) + held_bytes(manifest_.skipped);
  }

 private:
  static Error broken(std::string_view address, std::string what) {
    return Error(ErrorKind::corrupt, fmt::format("cannot open `{}`: {}", address, what),
                 "make the pack again, or look at it with `stoker check`");
  }

  std::string_view line_of(std::uint64_t index) const noexcept {
    const std::string_view text = names_.text();
    std::size_t begin = marks_[index / kNamesPerMark];
    for (std::uint64_t left = index % kNamesPerMark; left > 0; --left) begin = text.find('\n', begin) + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  void mark_names(std::string_view address) {
    const std::string_view text = names_.text();
    std::uint64_t lines = 0;
    for (std::size_t at = 0; at < text.size(); ++lines) {
      if (lines % kNamesPerMark == 0) marks_.push_back(at);
      const std::size_t end = text.find('\n', at);
      if (end == std::string_view::npos) break;
      at = end + 1;
    }
    if (lines != manifest_.count || (!text.empty() && !text.ends_with('\n'))) {
      throw broken(address, fmt::format("names.txt has {} lines for {} samples", lines, manifest_.count));
    }
  }

  void read_columns(const std::string& address) {
    columns_.open(address, *manifest_.file(kPackColumns), address);
    const std::string_view text = columns_.text();
    std::vector<CsvField> fields;
    bool header = true;
    for (std::size_t at = 0; at < text.size();) {
      const CsvRow row = read_row(text, at, fields);
      at = row.end;
      if (row.problem != CsvProblem::none || fields.size() != manifest_.columns.size()) {
        throw broken(address, fmt::format("columns.csv is not a table of {} columns", manifest_.columns.size()));
      }
      if (!header) column_rows_.push_back(row.begin);
      header = false;
    }
    if (column_rows_.size() != manifest_.count) {
      throw broken(address,
                   fmt::format("columns.csv has {} rows for {} samples", column_rows_.size(), manifest_.count));
    }
  }

  void open_shards(const std::string& address, const OpenOptions& options) {
    std::uint64_t total = 0;
    for (const PackShard& shard : manifest_.shards) total += std::min(shard.bytes, kMaxShard);
    const storage::Storage how = storage::settle(options.storage, total);
    for (const PackShard& shard : manifest_.shards) {
      const std::string path = fmt::format("{}/{}", address, shard.name);
      try {
        shards_.push_back(storage::open_source(path, how));
      } catch (const Error& error) {
        if (problems_ == nullptr) throw;
        problems_->push_back({static_cast<std::uint32_t>(shards_.size()), error.message()});
        shards_.push_back(std::make_unique<NoSource>(path));
      }
      borrowed_.push_back(shards_.back().get());
      if (shards_.back()->backend() != nullptr) backend_ = shards_.back()->backend();
      try {
        check_shard(address, shard, *shards_.back());
      } catch (const Error& error) {
        if (problems_ == nullptr) throw;
        if (shards_.back()->size_bytes() > 0)
          problems_->push_back({static_cast<std::uint32_t>(shards_.size() - 1), error.message()});
      }
    }
  }

  void check_shard(std::string_view address, const PackShard& shard, const storage::Source& source) const {
    if (source.size_bytes() != shard.bytes) {
      throw broken(address,
                   fmt::format("{} has {} bytes, pack.json says {}", shard.name, source.size_bytes(), shard.bytes));
    }
    if (manifest_.kind == PackKind::raw) check_header(address, shard, source);
  }

  void check_header(std::string_view address, const PackShard& shard, const storage::Source& source) const {
    std::vector<std::byte> head(std::min<std::uint64_t>(kPackDataOffset, source.size_bytes()));
    const storage::Read read{0, head};
    source.read({&read, 1});
    codec::ArrayInfo info;
    const Result result = codec::probe_npy(head, source.size_bytes(), info);
    if (!result.ok()) throw broken(address, fmt::format("{}: {}", shard.name, result.cause));
    const bool same = info.dtype == manifest_.dtype && info.rank == manifest_.shape.size() + 1 &&
                      info.shape[0] == shard.count && info.data_offset == kPackDataOffset &&
                      std::equal(manifest_.shape.begin(), manifest_.shape.end(), info.shape.begin() + 1);
    if (!same)
      throw broken(address, fmt::format("{} is an array of another shape or dtype than pack.json says", shard.name));
  }

  void take_facts(const std::string& address, const OpenOptions& options) {
    facts_.address = address;
    facts_.kind = fmt::format("{} pack", stoker::dataset::name(manifest_.kind));
    facts_.fingerprint = manifest_.fingerprint;
    const bool is_local = storage::store_of(address) == nullptr;
    if (manifest_.kind == PackKind::encoded && is_local) facts_.seek_path = seek_path(options, real_path_of(address));
    if (manifest_.file(kPackSeek) != nullptr && is_local)
      facts_.pack_seek_path = fmt::format("{}/{}", address, kPackSeek);
    if (backend_ != nullptr) facts_.notes = backend_->notes();
    facts_.label_kind = manifest_.label_kind;
    facts_.classes = manifest_.classes;
    facts_.columns = manifest_.columns;
    if (manifest_.count == 0) {
      throw Error(ErrorKind::not_found, fmt::format("cannot find samples in `{}`: the pack is empty", address));
    }
    if (manifest_.kind == PackKind::raw) {
      codec::ArrayInfo info;
      info.dtype = manifest_.dtype;
      info.rank = static_cast<std::uint8_t>(manifest_.shape.size() + 1);
      info.shape[0] = manifest_.count;
      std::copy(manifest_.shape.begin(), manifest_.shape.end(), info.shape.begin() + 1);
      info.data_offset = kPackDataOffset;
      row_bytes_ = size_of(info.dtype);
      for (const std::uint64_t n : manifest_.shape) row_bytes_ *= n;
      if (__builtin_mul_overflow(row_bytes_, manifest_.count, &info.data_bytes)) {
        throw broken(address, "its samples are together above 2^64 bytes");
      }
      facts_.array = info;
    }
    if (!manifest_.skipped.empty()) {
      facts_.notes.push_back(fmt::format("{} bad {} left out when the pack was made; pack.json names them",
                                         format_count(manifest_.skipped.size()),
                                         manifest_.skipped.size() == 1 ? "sample was" : "samples were"));
    }
  }

  void check_rows(std::string_view address) {
    const bool classes = manifest_.label_kind == LabelKind::integer && !manifest_.classes.empty();
    for (std::uint64_t i = 0; i < manifest_.count; ++i) {
      const PackRow at = row(i);
      const auto fail = [&](std::string_view what) {
        return broken(address, fmt::format("row {} of index.npy (`{}`) {}", i, name(i), what));
      };
      if (at.shard >= shards_.size()) throw fail(fmt::format("names shard {} of {}", at.shard, shards_.size()));
      const std::uint64_t whole = manifest_.shards[at.shard].bytes;
      if (at.offset > whole || at.bytes > whole - at.offset) {
        throw fail(fmt::format("lies beyond the end of {}", manifest_.shards[at.shard].name));
      }
      if (manifest_.kind == PackKind::raw &&
          (at.bytes != row_bytes_ || at.offset < kPackDataOffset || (at.offset - kPackDataOffset) % row_bytes_ != 0)) {
        throw fail(fmt::format("is not a row of {}", manifest_.shards[at.shard].name));
      }
      if (at.id < 0) throw fail("has a negative id");
      if (classes && at.label >= manifest_.classes.size() && static_cast<std::int64_t>(at.label) != -1) {
        throw fail(fmt::format("has the label {} of {} classes", static_cast<std::int64_t>(at.label),
                               manifest_.classes.size()));
      }
      facts_.total_bytes += at.bytes;
      facts_.largest_bytes = std::max(facts_.largest_bytes, at.bytes);
    }
  }

  std::vector<ShardProblem>* problems_;  // while it is being made
  PackManifest manifest_;
  Facts facts_;
  HeldFile index_, names_, columns_;
  std::span<const std::byte> rows_;
  std::vector<std::size_t> marks_;          // where every kNamesPerMark-th line of names.txt begins
  std::vector<std::uint64_t> column_rows_;  // where the row of each sample begins in columns.csv
  std::vector<std::unique_ptr<storage::Source>> shards_;
  std::vector<const storage::Source*> borrowed_;
  const storage::Backend* backend_ = nullptr;  // that all shards lie in; null: local files
  std::uint64_t row_bytes_ = 0;
};

}  // namespace

std::shared_ptr<const Packed> open_packed(const std::string& address, const OpenOptions& options,
                                          std::vector<ShardProblem>* problems) {
  return std::make_shared<PackDataset>(address, options, problems);
}

DatasetPtr open_pack(const std::string& address, const OpenOptions& options) {
  return open_packed(address, options);
}

}  // namespace stoker::dataset
