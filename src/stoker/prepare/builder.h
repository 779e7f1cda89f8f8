// A pack of what a program makes, batch by batch: results of a GPU loop, say. append() copies the rows and returns; a
// thread of the builder's own writes them. What was written survives a kill, and a builder of the same destination goes
// on with it. The pack has its name when close() returns. One thread calls.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/dataset/packed.h"
#include "stoker/prepare/pack_folder.h"
#include "stoker/prepare/shards_writer.h"

namespace stoker::prepare {

struct BuilderOptions {
  std::string destination;
  std::vector<std::string> classes;          // names, where labels are their indices
  std::uint64_t shard_size = 1'000'000'000;  // bytes
  std::uint64_t memory_limit = std::uint64_t{256}
                               << 20;  // bytes that wait to be written; append() waits when there are more
  bool force = false;                  // start over where a pack is; otherwise it is continued
};

// Rows of one shape and dtype, one after another, and what is known of each.
struct BuilderRows {
  DType dtype = DType::u8;
  std::vector<std::uint64_t> shape;  // of one row
  std::span<const std::byte> bytes;
  std::span<const std::int64_t> ids;  // as many as there are rows; from 0 on, each once in a pack
  dataset::LabelKind label_kind = dataset::LabelKind::none;
  std::span<const dataset::Label> labels;  // empty, or as many
  std::span<const std::string> names;      // empty: the id, in digits
};

class PackBuilder {
 public:
  using Interrupted = std::function<bool()>;

  // Throws Error: another program is making this pack, or something else has its name.
  explicit PackBuilder(BuilderOptions options);
  ~PackBuilder();  // without close(): what was written waits for the next builder
  PackBuilder(const PackBuilder&) = delete;
  PackBuilder& operator=(const PackBuilder&) = delete;

  std::uint64_t count() const noexcept { return ids_.size(); }  // samples, with those that were there before
  bool has(std::int64_t id) const noexcept { return ids_.contains(id); }

  // Rows whose id is there already are passed over, so that a program may simply run again. Returns how many were new.
  // `interrupted` is asked about every 50 ms while it waits for the disk: true ends it with Error(unavailable,
  // "interrupted"); what it had not taken yet may be appended again.
  std::uint64_t append(const BuilderRows& rows, const Interrupted& interrupted = {});
  void flush(const Interrupted& interrupted = {});  // everything appended so far is on the disk
  void close(const Interrupted& interrupted = {});  // makes the pack. Nothing can be appended afterwards
  void abandon() noexcept;  // ends the thread and gives the lock back; what was written stays for the next builder

 private:
  struct Job {
    std::vector<std::byte> bytes;
    std::vector<dataset::PackRow> rows;
    std::vector<std::string> names;
  };
  void open_base();
  void resume();
  void settle(const BuilderRows& rows);
  void start_writer();
  std::uint64_t plan_key() const noexcept;
  void work_loop();
  void write_job(const Job& job);
  void check_locked() const;
  void require_open() const;
  void wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done, const Interrupted& interrupted);
  void wait_until_written(std::unique_lock<std::mutex>& lock, const Interrupted& interrupted);

  BuilderOptions options_;
  PackFolder folder_;
  std::shared_ptr<const dataset::Packed> base_;
  dataset::PackManifest pack_;  // kind, dtype, shape, labels, classes
  bool settled_ = false;        // dtype and shape are known
  bool closed_ = false;
  std::unordered_set<std::int64_t> ids_;
  std::unique_ptr<ShardsWriter> writer_;
  std::uint64_t next_position_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::vector<Job> free_;  // their memory is used again
  std::uint64_t waiting_bytes_ = 0;
  bool writing_ = false, stopping_ = false, sync_wanted_ = false;
  std::optional<Error> error_;
  std::thread thread_;
};

}  // namespace stoker::prepare
