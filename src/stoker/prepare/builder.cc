#include "stoker/prepare/builder.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/os/file.h"
#include "stoker/os/file_facts.h"
#include "stoker/prepare/built.h"
#include "stoker/prepare/finish.h"

namespace stoker::prepare {
namespace {

using dataset::LabelKind;
using dataset::PackRow;

std::string_view word_of(LabelKind kind) {
  return kind == LabelKind::none ? "none" : kind == LabelKind::integer ? "integer" : "real";
}

}  // namespace

PackBuilder::PackBuilder(BuilderOptions options) : options_(std::move(options)), folder_(options_.destination) {
  if (options_.shard_size < kMiB) throw Error(ErrorKind::usage, "shard_size must be at least 1MiB");
  pack_.stoker_version = kVersion;
  pack_.kind = dataset::PackKind::raw;
  pack_.content = "array";
  pack_.classes = options_.classes;
  open_base();
  folder_.make_part();
  resume();
}

PackBuilder::~PackBuilder() {
  abandon();
}

void PackBuilder::open_base() {
  const std::string& path = folder_.destination();
  if (!os::can_reach(path)) return;
  if (!os::can_reach(fmt::format("{}/{}", path, dataset::kPackJson))) {
    if (std::error_code error; std::filesystem::is_empty(path, error) && !error) return;
    throw Error(ErrorKind::usage,
                fmt::format("cannot write the pack `{}`: something that is not a pack has this name", path),
                "choose another name");
  }
  if (options_.force) return;
  auto base = dataset::open_packed(path);
  const dataset::PackManifest& there = base->manifest();
  if (there.kind != dataset::PackKind::raw || !there.source.empty()) {
    throw Error(ErrorKind::usage, fmt::format("cannot add to the pack `{}`: it was made from `{}`", path, there.source),
                "choose another name, or pass force=True to replace it");
  }
  if (!options_.classes.empty() && options_.classes != there.classes) {
    throw Error(ErrorKind::usage, fmt::format("cannot add to the pack `{}`: it has other classes", path),
                "choose another name, or pass force=True to replace it");
  }
  pack_.dtype = there.dtype;
  pack_.shape = there.shape;
  pack_.label_kind = there.label_kind;
  pack_.classes = there.classes;
  settled_ = true;
  base_ = std::move(base);
  for (std::uint64_t i = 0; i < base_->size(); ++i) ids_.insert(static_cast<std::int64_t>(base_->id(i)));
}

// Goes on with what a killed program left, if it fits what is there now.
void PackBuilder::resume() {
  const std::string path = fmt::format("{}/{}", folder_.part(), kShape);
  if (options_.force || !os::can_reach(path)) {
    folder_.empty_part();
    return;
  }
  const std::vector<std::byte> bytes = storage::read_file(path, kMiB);
  const auto json = Json::parse_or_null(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  // Rows that a program gave cannot be made again: nothing of them goes without being asked.
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot go on with the pack `{}`: an interrupted writer left rows in `{}`, and {}",
                            folder_.destination(), folder_.part(), why),
                "finish that pack first, choose another name, or pass force=True to throw those rows away");
  };
  dataset::PackManifest left = pack_;
  try {
    left.dtype = parse_dtype(json.at("dtype").get<std::string>()).value();
    left.shape = json.at("shape").get<std::vector<std::uint64_t>>();
    const std::string kind = json.at("label_kind").get<std::string>();
    left.label_kind = kind == "real" ? LabelKind::real : kind == "integer" ? LabelKind::integer : LabelKind::none;
    left.classes = json.at("classes").get<std::vector<std::string>>();
  } catch (const std::exception&) {
    refuse("what they are is unreadable");
  }
  if (settled_ && (left.dtype != pack_.dtype || left.shape != pack_.shape || left.label_kind != pack_.label_kind))
    refuse("they are of another kind than those in the pack");
  if (!options_.classes.empty() && left.classes != options_.classes) refuse("they have other classes");
  std::error_code error;
  const auto journal_bytes = std::filesystem::file_size(fmt::format("{}/{}", folder_.part(), kJournal), error);
  if (!error && journal_bytes > kJournalHead && read_journal(folder_.part(), plan_key()).empty())
    refuse("they were added to a pack that is no longer the same");
  pack_ = left;
  settled_ = true;
  start_writer();
  for (const JournalRow& row : writer_->rows()) ids_.insert(row.row.id);
}

std::uint64_t PackBuilder::plan_key() const noexcept {
  return mix(hash_text("builder"), base_ ? base_->manifest().fingerprint : 0);
}

void PackBuilder::start_writer() {
  ShardsOptions shards;
  shards.folder = folder_.part();
  shards.plan = plan_key();
  shards.kind = pack_.kind;
  shards.dtype = pack_.dtype;
  shards.shape = pack_.shape;
  shards.shard_bytes = options_.shard_size;
  if (base_) {
    shards.first_shard = base_->manifest().shards.size();
    for (const dataset::PackShard& shard : base_->manifest().shards)
      shards.first_number = std::max(shards.first_number, dataset::shard_number(shard.name) + 1);
  }
  writer_ = std::make_unique<ShardsWriter>(shards);
  next_position_ = (base_ ? base_->size() : 0) + writer_->cursor();
  thread_ = std::thread([this] { work_loop(); });
}

void PackBuilder::require_open() const {
  if (closed_) throw Error(ErrorKind::usage, "the pack writer is closed", "make a new one: it adds to the pack");
}

void PackBuilder::check_locked() const {
  if (error_) {
    throw Error(error_->kind(), error_->message(),
                fmt::format("{}{}a writer of the same pack goes on with what was written", error_->hint(),
                            error_->hint().empty() ? "" : "; "));
  }
}

// The first rows decide what the pack holds.
void PackBuilder::settle(const BuilderRows& rows) {
  const auto shape_text = [](DType dtype, const std::vector<std::uint64_t>& shape) {
    return fmt::format("{} [{}]", stoker::name(dtype), fmt::join(shape, ", "));
  };
  if (settled_) {
    if (rows.dtype != pack_.dtype || rows.shape != pack_.shape) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot append {} to the pack `{}`: it holds {}", shape_text(rows.dtype, rows.shape),
                              folder_.destination(), shape_text(pack_.dtype, pack_.shape)));
    }
    if (rows.label_kind != pack_.label_kind) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot append rows with labels of kind {} to the pack `{}`: those in it are {}",
                              word_of(rows.label_kind), folder_.destination(), word_of(pack_.label_kind)),
                  "all rows have whole numbers, all have reals, or none has a label");
    }
    if (!writer_) start_writer();
    return;
  }
  if (rows.shape.size() > 7) throw Error(ErrorKind::usage, "rows of a pack have at most 7 dimensions");
  pack_.dtype = rows.dtype;
  pack_.shape = rows.shape;
  pack_.label_kind = rows.label_kind;
  const Json json = {{"dtype", stoker::name(pack_.dtype)},
                     {"shape", pack_.shape},
                     {"label_kind", word_of(pack_.label_kind)},
                     {"classes", pack_.classes}};
  os::write_file(fmt::format("{}/{}", folder_.part(), kShape), json.dump());
  settled_ = true;
  start_writer();
}

std::uint64_t PackBuilder::append(const BuilderRows& rows, const Interrupted& interrupted) {
  require_open();
  const std::uint64_t count = rows.ids.size();
  std::uint64_t row_bytes = size_of(rows.dtype);
  for (const std::uint64_t n : rows.shape) row_bytes *= n;
  if (row_bytes == 0 || rows.bytes.size() != count * row_bytes ||
      (!rows.labels.empty() && rows.labels.size() != count) || (!rows.names.empty() && rows.names.size() != count)) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot append {} ids with {} bytes of rows, {} labels and {} names: each row of {} "
                            "bytes has one id, and one label and name if any has",
                            count, rows.bytes.size(), rows.labels.size(), rows.names.size(), row_bytes));
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    if (rows.ids[i] < 0)
      throw Error(ErrorKind::usage, fmt::format("cannot append a row with the id {}: ids begin at 0", rows.ids[i]));
    if (!pack_.classes.empty() && rows.label_kind == LabelKind::integer &&
        (rows.labels[i].integer < -1 || rows.labels[i].integer >= static_cast<std::int64_t>(pack_.classes.size()))) {
      throw Error(ErrorKind::usage, fmt::format("cannot append a row with the label {}: there are {} classes",
                                                rows.labels[i].integer, pack_.classes.size()));
    }
  }
  settle(rows);

  const std::uint64_t most = std::max<std::uint64_t>(1, options_.memory_limit / 4 / row_bytes);  // rows in a job
  std::uint64_t added = 0;
  for (std::uint64_t begin = 0; begin < count; begin += most) {
    const std::uint64_t end = std::min(count, begin + most);
    Job job;
    {
      std::unique_lock lock(mutex_);
      wait(
          lock,
          [&] { return waiting_bytes_ == 0 || waiting_bytes_ + (end - begin) * row_bytes <= options_.memory_limit; },
          interrupted);
      if (!free_.empty()) {
        job = std::move(free_.back());
        free_.pop_back();
      }
    }
    job.bytes.clear();
    job.rows.clear();
    job.names.clear();
    for (std::uint64_t i = begin; i < end; ++i) {
      if (!ids_.insert(rows.ids[i]).second) continue;
      PackRow row;
      row.id = rows.ids[i];
      row.label = dataset::label_bits(rows.labels.empty() ? dataset::Label{} : rows.labels[i], rows.label_kind);
      job.rows.push_back(row);
      job.names.push_back(rows.names.empty() ? std::to_string(rows.ids[i]) : rows.names[i]);
      const std::byte* const at = rows.bytes.data() + i * row_bytes;
      job.bytes.insert(job.bytes.end(), at, at + row_bytes);
    }
    added += job.rows.size();
    const std::scoped_lock lock(mutex_);
    waiting_bytes_ += job.bytes.size();
    if (!job.rows.empty()) jobs_.push_back(std::move(job));
    changed_.notify_all();
  }
  return added;
}

void PackBuilder::write_job(const Job& job) {
  const std::uint64_t row_bytes = job.bytes.size() / job.rows.size();
  for (std::size_t i = 0; i < job.rows.size(); ++i) {
    NewSample sample;
    sample.position = next_position_++;
    sample.row = job.rows[i];
    sample.payload = {job.bytes.data() + i * row_bytes, row_bytes};
    sample.name = job.names[i];
    writer_->append(sample);
  }
}

void PackBuilder::work_loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    // A program that is slow to append still has what it gave on the disk within seconds.
    const bool woken =
        changed_.wait_for(lock, std::chrono::seconds(1), [&] { return stopping_ || !jobs_.empty() || sync_wanted_; });
    if (stopping_ && jobs_.empty()) return;
    Job job;
    if (!jobs_.empty()) {
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    const bool sync = sync_wanted_ && job.rows.empty();
    writing_ = true;
    const bool broken = error_.has_value();
    lock.unlock();
    std::optional<Error> error;
    try {
      if (!broken && !job.rows.empty()) write_job(job);
      if (!broken && sync) writer_->checkpoint();
      if (!broken && !woken) writer_->checkpoint_if_due();
    } catch (const Error& caught) {
      error = caught;
    } catch (const std::exception& caught) {
      error = Error(ErrorKind::unavailable,
                    fmt::format("cannot write the pack `{}`: {}", folder_.destination(), caught.what()));
    }
    lock.lock();
    writing_ = false;
    if (error && !error_) error_ = std::move(error);
    if (sync) sync_wanted_ = false;
    waiting_bytes_ -= job.bytes.size();
    if (free_.size() < 8 && job.bytes.capacity() > 0) free_.push_back(std::move(job));
    changed_.notify_all();
  }
}

// Returns when `done`, throws what the writing thread threw.
void PackBuilder::wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done,
                       const Interrupted& interrupted) {
  while (!changed_.wait_for(lock, std::chrono::milliseconds(50), [&] { return error_ || done(); })) {
    if (!interrupted) continue;
    lock.unlock();
    if (interrupted()) throw Error(ErrorKind::unavailable, "interrupted");
    lock.lock();
  }
  check_locked();
}

void PackBuilder::wait_until_written(std::unique_lock<std::mutex>& lock, const Interrupted& interrupted) {
  wait(
      lock, [&] { return jobs_.empty() && !writing_ && !sync_wanted_; }, interrupted);
}

void PackBuilder::flush(const Interrupted& interrupted) {
  require_open();
  if (!writer_) return;
  std::unique_lock lock(mutex_);
  wait_until_written(lock, interrupted);
  sync_wanted_ = true;
  changed_.notify_all();
  wait_until_written(lock, interrupted);
}

void PackBuilder::close(const Interrupted& interrupted) {
  if (closed_) return;
  if (!writer_) {
    if (!base_ && !options_.force)
      throw Error(ErrorKind::usage,
                  fmt::format("cannot make the pack `{}`: no rows were appended", folder_.destination()));
    closed_ = true;
    remove_flat_folder(folder_.part());
    folder_.release();
    return;
  }
  {
    std::unique_lock lock(mutex_);
    wait_until_written(lock, interrupted);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  writer_->finish();
  std::vector<JournalRow> rows = writer_->rows();
  pack_.settings = "{}";
  pack_.shards.clear();
  pack_.files.clear();
  if (base_) {
    pack_.columns = base_->manifest().columns;
    for (const dataset::PackShard& shard : base_->manifest().shards) {
      pack_.shards.push_back(shard);
      folder_.take_over(shard.name);
    }
    for (std::uint64_t i = 0; i < base_->size(); ++i) rows.push_back({i, base_->row(i)});
  }
  pack_.shards.insert(pack_.shards.end(), writer_->shards().begin(), writer_->shards().end());
  if (rows.empty())
    throw Error(ErrorKind::usage,
                fmt::format("cannot make the pack `{}`: no rows were appended", folder_.destination()));
  write_index(folder_.part(), Built(pack_, base_.get(), writer_->names()), std::move(rows), pack_);
  folder_.commit(pack_);
  closed_ = true;
  writer_.reset();
  folder_.release();
}

void PackBuilder::abandon() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (closed_) return;  // the folder may be another builder's by now
  if (writer_ && !error_) {
    try {
      writer_->checkpoint();
    } catch (const Error&) {
      // Nobody is left to tell; the next builder has what the journal knows.
    }
  }
  writer_.reset();
  closed_ = true;
  if (folder_.is_part_unused()) remove_flat_folder(folder_.part());
  folder_.release();
}

}  // namespace stoker::prepare
