#include "stoker/loader/row_bytes.h"

#include <vector>

#include "stoker/base/round.h"

namespace stoker::loader {

RowBytes::Need RowBytes::need_of(const Row& row, std::uint64_t epoch) const noexcept {
  if (job_.many_parts) return need_of_parts(row, epoch);
  const storage::Location where = job_.dataset->location(row.index);
  const bool in_memory = job_.in_place || storage::has_view(where) || !resident(row.index, where).empty();
  return {where.bytes, in_memory ? 0 : round_up(fetcher_.buffer_bytes(where.bytes), alignment_)};
}

RowBytes::Need RowBytes::need_of_parts(const Row& row, std::uint64_t epoch) const noexcept {
  const dataset::RowKey key{job_.options.seed, epoch, row.id};
  PartLayout layout(fetcher_, alignment_);
  Need need;
  for (std::uint32_t part = 0, count = job_.dataset->parts(row.index, key); part < count; ++part) {
    const storage::Location where = job_.dataset->locate_part(row.index, key, part, {});
    need.bytes += where.bytes;
    if (!job_.in_place && !storage::has_view(where) && resident_part(where).empty()) layout.add(where);
  }
  need.room = layout.total();
  return need;
}

codec::Bytes RowBytes::resident(std::uint64_t index, const storage::Location& where) const noexcept {
  if (ram_ == nullptr) return {};
  return job_.keeps_samples() ? ram_->find_file(job_.dataset->stored(index), where.bytes)
                              : ram_->find(*where.source, where.offset, where.bytes);
}

codec::Bytes RowBytes::resident_part(const storage::Location& where) const noexcept {
  return ram_ != nullptr && where.source != nullptr ? ram_->find(*where.source, where.offset, where.bytes)
                                                    : codec::Bytes{};
}

std::unique_ptr<storage::RamStore> make_ram_store(const Job& job) {
  if (job.memory.ram == 0) return nullptr;
  auto ram = std::make_unique<storage::RamStore>(job.memory.ram);
  const dataset::Dataset& dataset = *job.dataset;
  if (!job.keeps_samples()) {
    for (const storage::Source* const source : dataset.sources()) {
      ram->add(*source, job.hand_over ? job.hand_over->take(*source) : os::Arena());
    }
    if (job.hand_over) job.hand_over->clear();
  } else {
    // By their stored numbers: a subset keeps only what it has, and copies share.
    std::vector<std::uint64_t> bytes(dataset.stored_count(), 0);
    for (std::uint64_t i = 0; i < dataset.size(); ++i) bytes[dataset.stored(i)] = dataset.location(i).bytes;
    ram->add_files(bytes.size(), [&](std::uint64_t number) { return bytes[number]; });
  }
  ram->start();
  return ram;
}

}  // namespace stoker::loader
