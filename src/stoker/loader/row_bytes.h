// What is known of a row's bytes before they are read: how many they are, whether they are in memory already, and the
// room that reading them takes. Immutable, but storage=ram fills its store meanwhile; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "stoker/codec/codec.h"
#include "stoker/loader/job.h"
#include "stoker/loader/part_layout.h"
#include "stoker/loader/pending.h"
#include "stoker/storage/fetcher.h"
#include "stoker/storage/ram_store.h"

namespace stoker::loader {

class RowBytes {
 public:
  // `fetcher` is one of those that will read: it says what room a read takes. `ram` may be null. Borrows all.
  RowBytes(const Job& job, const storage::Fetcher& fetcher, const storage::RamStore* ram) noexcept
      : job_(job), fetcher_(fetcher), ram_(ram), alignment_(fetcher.alignment()) {}

  struct Need {
    std::uint64_t bytes = 0;  // of the row
    std::uint64_t room = 0;   // that reading it takes
  };
  Need need_of(const Row& row, std::uint64_t epoch) const noexcept;

  // A sample's bytes, or a part's, where storage=ram has them; what was there once stays. Empty: it has not.
  codec::Bytes resident(std::uint64_t index, const storage::Location& where) const noexcept;
  codec::Bytes resident_part(const storage::Location& where) const noexcept;

  std::size_t alignment() const noexcept { return alignment_; }  // of each read's room

 private:
  Need need_of_parts(const Row& row, std::uint64_t epoch) const noexcept;

  const Job& job_;
  const storage::Fetcher& fetcher_;
  const storage::RamStore* const ram_;
  const std::size_t alignment_;
};

// The store of storage=ram, which starts to fill itself; null where the data gets no memory.
std::unique_ptr<storage::RamStore> make_ram_store(const Job& job);

}  // namespace stoker::loader
