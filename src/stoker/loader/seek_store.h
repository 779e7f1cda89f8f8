// Places inside JPEG files from which decoding can start (codec/jpeg/seek_index.h), for as many files as memory allows.
// They are noted when a file is decoded for the first time, and from then on a crop costs only what it touches. A file
// is known by its whole content (identity_of), so that copies, subsets and inflated data sets share what was learnt,
// and a file that was changed in any byte is another one. Safe from any thread.
//
// On disk: one file per data set, read like hostile input; see seek_file.h. A pack may bring such a file, which is
// mapped and takes no memory of the store's: its pages are the page cache's.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "stoker/base/budget.h"
#include "stoker/codec/codec.h"
#include "stoker/loader/seek_file.h"
#include "stoker/os/arena.h"

namespace stoker::loader {

struct SeekOptions {
  std::uint64_t limit_bytes = 0;  // of memory, hard
  std::uint32_t step = 8;         // MCUs between places
  std::string path;               // loaded now and saved later; empty: neither
  std::uint64_t files = 0;        // in the data set; once as many were seen, save() forgets those that were not
  std::shared_ptr<const SeekFile> packed;  // seek.bin of a pack, asked first; null: there is none
};

class SeekStore {
  struct Entry;

 public:
  explicit SeekStore(SeekOptions options);
  ~SeekStore();

  // What is known of one file, for the time of one decode. Only one lease of a file may extend it at a time.
  class Lease {
   public:
    Lease() noexcept = default;
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease();

    codec::SeekIndex* index() noexcept { return store_ != nullptr ? &index_ : nullptr; }  // null: nothing to gain

   private:
    friend class SeekStore;
    SeekStore* store_ = nullptr;
    Entry* entry_ = nullptr;  // null: the places are those of a pack
    bool extends_ = false;
    codec::SeekIndex index_;
  };
  void lease(codec::Bytes file, Lease& lease) noexcept;

  struct Figures {
    std::uint64_t files = 0, places = 0, unsaved_places = 0, memory_bytes = 0;
  };
  Figures figures() const noexcept;
  const std::string& note() const noexcept { return note_; }  // what was wrong with the saved one, if anything

  // Saving adds what others saved meanwhile, and makes the file whole or not at all. These calls belong to one thread.
  void save_soon();       // in the background, if there is enough that is new
  void finish_saving();   // now, whatever is new
  std::string problem();  // why the last save failed; empty: it did not

 private:
  struct Entry {
    std::atomic<std::uint32_t> known{0}, total{0};  // total 0: of no use
    std::uint32_t step = 0;
    std::atomic<bool> extending{false}, seen{false};
    // From the saved file and not looked at yet; then `places` lies in that file, and is copied before it is extended.
    std::atomic<const SeekRow*> saved{nullptr};
    std::atomic<codec::Checkpoint*> places{nullptr};  // stored before `known`
  };
  struct Slot {
    std::uint64_t identity = 0;  // 0: free
    Entry* entry = nullptr;
  };
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    std::vector<Slot> slots;  // open addressing; a power of two
    std::size_t used = 0;
  };

  // Whether an entry is worth saving, and what to save.
  bool is_kept(const Entry& entry, bool all_seen, std::uint32_t& known, std::uint32_t& total) const noexcept;
  Shard& shard_of(std::uint64_t identity) noexcept { return shards_[identity >> 60]; }
  static std::uint64_t slot_bytes(std::size_t slots) noexcept;
  static Slot* find(Shard& shard, std::uint64_t identity) noexcept;
  bool make_room_locked(Shard& shard) noexcept;
  Entry* add_locked(Shard& shard, std::uint64_t identity, std::uint32_t total, const SeekRow* saved) noexcept;
  bool check_saved(Entry& entry, std::uint32_t total) noexcept;
  std::byte* take(std::size_t bytes) noexcept;
  void load();
  void save();
  void try_save() noexcept;
  void finish(Lease& lease) noexcept;

  const SeekOptions options_;
  Budget budget_;
  std::array<Shard, 16> shards_;
  std::mutex chunks_mutex_;
  std::vector<os::Arena> chunks_;
  std::size_t chunk_used_ = 0;
  SeekFile saved_;
  std::string note_;
  std::thread saver_;
  std::atomic<bool> is_saving_{false};
  std::mutex problem_mutex_;
  std::string problem_;
  std::atomic<std::uint64_t> files_{0}, places_{0}, unsaved_places_{0}, seen_{0};
};

}  // namespace stoker::loader
