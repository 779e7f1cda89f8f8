#include "stoker/loader/row_bytes.h"

#include <optional>
#include <vector>

#include "stoker/base/hash.h"
#include "stoker/base/round.h"
#include "stoker/os/file_facts.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kStatFiles = 64;  // that are looked at; a data set that was made again differs in all of them

// Tells files or objects apart that have the same names and sizes: by their place, or by what their store calls their
// version.
std::uint64_t identity_of_files(const dataset::Dataset& dataset) {
  std::uint64_t identity = mix(dataset.facts().fingerprint, dataset.size());
  std::vector<char> text(storage::kLocationText);
  const std::uint64_t step = dataset.size() / kStatFiles + 1;
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    if (dataset.backends().empty() && i % step != 0) continue;
    const storage::Location where = dataset.locate(i, text);
    if (where.name == nullptr) continue;
    if (where.is_file()) {
      const os::FileFacts facts = os::facts_of(where.directory, where.name);
      identity = mix(mix(identity, facts.device), mix(facts.inode, static_cast<std::uint64_t>(facts.modified_ns)));
    } else {
      identity = mix(hash_text(where.name, identity), hash_text(where.version == nullptr ? "" : where.version));
    }
  }
  return identity;
}

}  // namespace

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
    std::optional<storage::RamStore::Sharing> sharing;
    if (job.shares_ram) {
      const std::uint64_t job_key = mix(hash_text(job.ranks.job), static_cast<std::uint64_t>(job.ranks.count));
      sharing = {.key = mix(job_key, identity_of_files(dataset)), .processes = job.ranks.count, .folder = {}};
    }
    ram->add_files(
        bytes.size(), [&](std::uint64_t number) { return bytes[number]; }, sharing);
  }
  ram->start();
  return ram;
}

}  // namespace stoker::loader
