// How memory_limit is divided: slabs, encoded bytes, working memory, places in JPEG files, chunks of volumes, the data
// itself. A pure
// function of plain values: it reads nothing and keeps nothing. Every share is fixed before the first thread starts,
// and the part that owns the share keeps it by admission.
#pragma once

#include <cstdint>

#include "stoker/loader/allowance.h"

namespace stoker::loader {

inline constexpr std::uint64_t kSweeps = 3;        // one being read, one waiting for the disk, one with the workers
inline constexpr std::uint64_t kMostAhead = 2048;  // units in a sweep, and batches in the making
inline constexpr std::uint64_t kMixedBytes = 64 * 1024 * 1024;  // samples that shuffle=blocks mixes, by default

// What is to be divided, and what decides how.
struct MemoryFacts {
  Demand demand;                       // what one sample and one batch need
  std::uint64_t mean_bytes = 0;        // of an encoded sample
  std::uint64_t samples = 0;           // of the data set
  std::uint64_t scratch_estimate = 0;  // working memory of one worker, for a usual sample
  bool is_heavy = false;               // decoding costs far more than handing over
  bool direct = false;                 // reads pass the page cache by, in whole pages
  bool sweeps = false;                 // rows are read many at a time (sweep.h)
  bool is_far = false;                 // the data lies in a store: each request waits for long
  std::uint64_t window_rows = 0;       // shuffled blocks: this rank's part of those that are mixed; else 0

  // Options.
  std::uint64_t batch_size = 1;
  std::uint64_t prefetch_factor = 2;
  std::uint64_t read_ahead = 0;  // bytes; 0: auto
  std::uint64_t io_depth = 256;
  std::uint64_t thread_depth = 256;  // of one I/O thread
  std::uint64_t workers = 1, io_threads = 1;

  // Places in JPEG files.
  enum class Seek : std::uint8_t { off, packed, noted } seek = Seek::off;  // packed: the pack brings them
  std::uint64_t stored_files = 0;
  std::uint32_t seekable_mcus = 0;  // of the first image

  // Decoded chunks of volumes.
  std::uint64_t chunk_bytes = 0, chunked_bytes = 0;  // what keeping one takes, and all; 0: there are none

  // The data itself.
  enum class Ram : std::uint8_t { off, if_all_fits, what_fits } ram = Ram::off;
  std::uint64_t data_bytes = 0, data_beside_bytes = 0;  // and what keeping them takes besides
  std::uint64_t hand_over_bytes = 0;                    // of it that opening has left in memory, for the first epoch
};

// The shares. Bytes, unless the name says otherwise.
struct Division {
  bool is_enough = false;                    // false: only `beside` and `allowance` are set, and the limit is too small
  std::uint64_t beside = 0;                  // threads and direct reads, beyond what the allowance counts in
  Allowance allowance;                       // of one sample and one batch
  std::uint64_t working = 0;                 // of all workers together
  std::uint64_t slabs = 0;                   // of all batches together
  std::uint64_t ring = 0;                    // encoded bytes that are not in a sweep
  std::uint64_t sweep_count = 0, sweep = 0;  // 0: rows are read one by one
  std::uint64_t first_sweep = 0;             // the first ones are smaller: at least this number of bytes
  std::uint64_t wanted_sweep = 0;            // what a sweep would have, were there room
  std::uint64_t seek = 0;                    // places in JPEG files
  std::uint32_t seek_step = 0;               // MCUs between places; 0: none are noted
  std::uint64_t chunks = 0;                  // decoded chunks of volumes
  std::uint64_t chunk_reads = 0;             // encoded ones of stores, on their way
  std::uint64_t ram_room = 0, ram = 0;       // what the data itself could have, and what it gets
  std::uint64_t hand_over = 0;               // what opening has left, where `ram` is 0: else that takes it over
  std::uint32_t unit_rows = 1;               // rows that are read and handed over together
  std::uint64_t unit = 0;                    // and their bytes, at most
  std::uint64_t max_pendings = 0, max_units = 0;  // batches and units in the making

  bool ram_holds_all(const MemoryFacts& facts) const noexcept {
    return facts.data_bytes + facts.data_beside_bytes <= ram_room;
  }
};

// Two batches, the largest sample and its working memory come first (allowance.h); what is left makes loading faster.
Division divide_memory(const MemoryFacts& facts) noexcept;

// The least memory_limit with which is_enough would be true; 0: there is none.
std::uint64_t least_limit(const MemoryFacts& facts);

}  // namespace stoker::loader
