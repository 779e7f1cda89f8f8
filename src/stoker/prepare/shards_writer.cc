#include "stoker/prepare/shards_writer.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/dataset/tar_format.h"
#include "stoker/prepare/tar_names.h"

namespace stoker::prepare {

using dataset::kTarBlock;
using dataset::PackKind;
using dataset::tar_padded;

namespace {

constexpr std::uint64_t kTarEnd = 2 * kTarBlock;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

ShardsWriter::ShardsWriter(ShardsOptions options)
    : options_(std::move(options)), noted_at_(std::chrono::steady_clock::now()) {
  resume();
}

ShardsWriter::~ShardsWriter() = default;

void ShardsWriter::resume() {
  std::vector<JournalRecord> records = read_journal(options_.folder, options_.plan);
  // After a power cut the journal may know more than the disk has: then all of it is made again.
  for (const JournalRecord& record : records) {
    std::error_code error;
    const auto there = std::filesystem::file_size(fmt::format("{}/{}", options_.folder, name_of(record.shard)), error);
    if ((error || there < record.shard_bytes) && record.shard_bytes > 0) {
      records.clear();
      break;
    }
  }
  if (options_.seek && !records.empty()) {
    std::error_code error;
    const auto there = std::filesystem::file_size(fmt::format("{}/{}", options_.folder, kSpill), error);
    if (error || there < records.back().seek_bytes) records.clear();
  }
  bool open = false;
  std::uint64_t open_bytes = 0;
  for (JournalRecord& record : records) {
    cursor_ = record.cursor;
    if (shards_.empty() || number_ != record.shard) shards_.push_back({name_of(record.shard), 0, 0});
    number_ = record.shard;
    shards_.back().bytes = record.shard_bytes;
    shards_.back().count += record.rows.size();
    open = !record.shard_done;
    open_bytes = record.shard_bytes;
    rows_.insert(rows_.end(), record.rows.begin(), record.rows.end());
    const Json text = Json::parse_or_null(record.text);
    if (!text.is_object()) continue;
    for (const Json& one : text.value("skipped", Json::array()))
      skipped_.push_back({one.value("name", ""), one.value("cause", "")});
    for (const Json& one : text.value("names", Json::array())) names_.push_back(one.get<std::string>());
  }
  noted_rows_ = rows_.size();
  noted_skipped_ = skipped_.size();
  noted_names_ = names_.size();
  if (options_.seek)
    spill_ = std::make_unique<SeekSpill>(options_.folder, records.empty() ? 0 : records.back().seek_bytes);
  journal_ = std::make_unique<Journal>(options_.folder, options_.plan, !records.empty());
  if (open && open_bytes > 0)
    file_ = std::make_unique<ShardFile>(fmt::format("{}/{}", options_.folder, shards_.back().name), open_bytes);
}

std::string ShardsWriter::name_of(std::uint64_t number) const {
  return dataset::shard_name(options_.kind, options_.first_number + number);
}

void ShardsWriter::open_shard(std::uint64_t number) {
  const std::string name = name_of(number);
  file_ = std::make_unique<ShardFile>(fmt::format("{}/{}", options_.folder, name));
  shards_.push_back({name, 0, 0});
  number_ = number;
  if (options_.kind == PackKind::raw) {
    std::vector<std::uint64_t> shape = {0};
    shape.insert(shape.end(), options_.shape.begin(), options_.shape.end());
    file_->append(bytes_of(dataset::npy_header(options_.dtype, shape)));
  }
}

std::uint64_t ShardsWriter::needed(const NewSample& sample) const {
  if (options_.kind == PackKind::raw) return sample.payload.size();
  const auto member = [](std::uint64_t bytes) { return kTarBlock + tar_padded(bytes); };
  return member(sample.payload.size()) + (sample.cls.empty() ? 0 : member(sample.cls.size())) +
         (sample.json.empty() ? 0 : member(sample.json.size()));
}

void ShardsWriter::append(const NewSample& sample) {
  const bool is_full = sample.shard ? *sample.shard != number_
                                    : file_ && shards_.back().count > 0 &&
                                          file_->bytes() + needed(sample) + kTarEnd > options_.shard_bytes;
  if (file_ && is_full) close_shard();
  if (!file_) open_shard(sample.shard ? *sample.shard : shards_.empty() ? 0 : number_ + 1);
  const std::uint64_t before = file_->bytes();
  JournalRow row{sample.position, sample.row};
  row.row.shard = static_cast<std::uint32_t>(options_.first_shard + shards_.size() - 1);
  row.row.bytes = sample.payload.size();
  row.row.xxh3 = sample.xxh3 ? *sample.xxh3 : hash_bytes(sample.payload);
  const std::int64_t mtime_s = sample.row.source_mtime_ns / 1'000'000'000;
  const auto add_member = [&](std::string_view name, std::span<const std::byte> content) {
    file_->append(bytes_of(dataset::tar_header(name, content.size(), mtime_s)));
    const std::uint64_t offset = file_->bytes();
    file_->append(content);
    file_->append_zeros(tar_padded(content.size()) - content.size());
    return offset;
  };
  if (options_.kind == PackKind::raw) {
    row.row.offset = before;
    file_->append(sample.payload);
  } else {
    row.row.offset = add_member(sample.member, sample.payload);
    const std::string key(sample.member.substr(0, extension_of(sample.member)));
    if (!sample.cls.empty()) add_member(key + ".cls", bytes_of(sample.cls));
    if (!sample.json.empty()) add_member(key + ".json", bytes_of(sample.json));
  }
  if (spill_) spill_->append(sample.position, sample.seek);
  rows_.push_back(row);
  if (!sample.name.empty()) names_.emplace_back(sample.name);
  ++shards_.back().count;
  ++cursor_;
  bytes_ += file_->bytes() - before;
  if (bytes_ - noted_bytes_ >= options_.sync_bytes) {
    checkpoint();
  } else if (cursor_ % 64 == 0) {
    checkpoint_if_due();
  }
}

void ShardsWriter::checkpoint_if_due() {
  if (bytes_ > noted_bytes_ && std::chrono::steady_clock::now() - noted_at_ >= options_.sync_every) checkpoint();
}

void ShardsWriter::skip(std::string_view name, std::string_view cause) {
  skipped_.push_back({std::string(name), std::string(cause)});
  ++cursor_;
}

void ShardsWriter::note(bool shard_done) {
  JournalRecord record;
  if (spill_) {
    spill_->sync();
    record.seek_bytes = spill_->bytes();
  }
  record.cursor = cursor_;
  record.shard = number_;
  record.shard_bytes = shards_.empty() ? 0 : shards_.back().bytes;
  record.shard_done = shard_done;
  record.rows.assign(rows_.begin() + static_cast<std::ptrdiff_t>(noted_rows_), rows_.end());
  Json skipped = Json::array();
  for (std::size_t i = noted_skipped_; i < skipped_.size(); ++i)
    skipped.push_back({{"name", skipped_[i].name}, {"cause", skipped_[i].cause}});
  Json text = {{"skipped", std::move(skipped)}};
  if (noted_names_ < names_.size())
    text["names"] = std::vector<std::string>(names_.begin() + static_cast<std::ptrdiff_t>(noted_names_), names_.end());
  record.text = text.dump();
  journal_->add(record);
  noted_rows_ = rows_.size();
  noted_skipped_ = skipped_.size();
  noted_names_ = names_.size();
  noted_bytes_ = bytes_;
  noted_at_ = std::chrono::steady_clock::now();
}

void ShardsWriter::checkpoint() {
  if (!file_) return;
  file_->sync();
  shards_.back().bytes = file_->bytes();
  note(false);
}

void ShardsWriter::close_shard() {
  if (options_.kind == PackKind::raw) {
    std::vector<std::uint64_t> shape = {shards_.back().count};
    shape.insert(shape.end(), options_.shape.begin(), options_.shape.end());
    file_->rewrite_start(bytes_of(dataset::npy_header(options_.dtype, shape)));
  } else {
    file_->append_zeros(kTarEnd);
    file_->sync();
  }
  shards_.back().bytes = file_->bytes();
  file_.reset();
  note(true);
}

void ShardsWriter::finish() {
  if (file_) close_shard();
}

}  // namespace stoker::prepare
