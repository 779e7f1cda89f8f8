#include "stoker/loader/job.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/dataset/listing.h"
#include "stoker/dataset/volumes.h"
#include "stoker/loader/chunk_store.h"
#include "stoker/loader/error_list.h"
#include "stoker/loader/option_table.h"
#include "stoker/loader/pending.h"
#include "stoker/loader/slab_layout.h"
#include "stoker/meter/counters.h"
#include "stoker/os/cpu.h"
#include "stoker/os/file_limit.h"
#include "stoker/os/memory.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/probe.h"
#include "stoker/storage/ram_store.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kMostElements = std::uint64_t{1}
                                        << 40;  // of a batch's rows: more cannot be, and would overflow
constexpr std::uint64_t kBlockBytes = 512 * kKiB;
constexpr std::uint64_t kMostStepsRead = 8;  // of a given order, from disks: a sampler may change its mind
constexpr std::uint64_t kLeastMixed = 16;    // blocks
constexpr std::uint64_t kChunksTogether = 4, kLeastTogether = 8, kMostTogether = 256;  // patches of volumes

// Patches that stay together: those of a few chunks, so that a chunk is decoded for all of them at once.
std::uint64_t neighbours_in_chunks(const dataset::PatchPlan& plan, std::uint64_t samples) {
  std::uint64_t chunks = 0;
  for (const dataset::PatchedVolume& volume : plan.volumes()) {
    std::uint64_t of_volume = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) of_volume *= (volume.extents[axis] - 1) / volume.cell[axis] + 1;
    chunks += of_volume;
  }
  return std::clamp<std::uint64_t>(kChunksTogether * samples / chunks, kLeastTogether, kMostTogether);
}

LoaderOptions checked(LoaderOptions options) {
  check_options(options);
  if (options.memory_limit == 0) options.memory_limit = default_memory_limit(os::local_ranks().count);
  return options;
}

// Samples of the last step of an epoch, over all ranks; 0: it is whole.
std::uint64_t last_step_samples(const dataset::Dataset& dataset, const LoaderOptions& options) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / std::max<std::uint64_t>(options.world_size, 1);
  if (options.batch_size > most) return dataset.size();
  const std::uint64_t step = options.batch_size * options.world_size;
  return step == 0 ? 0 : dataset.size() % step;
}

}  // namespace

Job::Job(dataset::DatasetPtr data, const LoaderOptions& asked)
    : dataset(std::move(data)),
      options(checked(asked)),
      recipe(*dataset, options),
      notes(dataset->facts().notes.begin(), dataset->facts().notes.end()),
      made_ns(meter::now_ns()),
      ranks(os::local_ranks()),
      auto_memory(asked.memory_limit == 0) {
  check_losses(*dataset, options.max_errors);
  const std::vector<std::string>& columns = dataset->facts().columns;
  for (const transform::IndexColumn& wanted : recipe.facts().columns) {
    if (std::find(columns.begin(), columns.end(), wanted.name) == columns.end())
      notes.emplace_back(wanted.when_missing);
  }
  if (options.last_batch == dataset::LastBatch::drop && dataset->size() > 0 && dataset->size() < options.batch_size) {
    notes.push_back(format_text("an epoch has no batch: {} is more than the {} samples, and {} drops the last batch",
                                option("batch_size", std::to_string(options.batch_size)), dataset->size(),
                                option("drop_last", "True")));
  }
  const std::uint64_t rest = last_step_samples(*dataset, options);
  if (options.last_batch == dataset::LastBatch::keep && rest > 0 && rest < options.world_size) {
    notes.push_back(format_text(
        "the last step of an epoch has {} for {} ranks: {} of them get a batch of no rows, and a mean over it is not a "
        "number; {} or {} avoids that",
        rest == 1 ? "1 sample" : fmt::format("{} samples", rest), options.world_size, options.world_size - rest,
        option("last_batch", "drop"), option("last_batch", "pad")));
  }
  if (options.pin_memory) {
    std::string why;
    device = DeviceRuntime::find(&why);
    if (!device) {
      notes.push_back(format_text("{} is off: {}", option("pin_memory"), why));
      options.pin_memory = false;
    }
  }
  const storage::Location first = dataset->size() > 0 ? dataset->location(0) : storage::Location{};
  many_parts = dataset->facts().most_parts > 1;
  in_place = recipe.facts().is_copy && first.source != nullptr && storage::advice_on(first).in_place;
  open_cache();
  // A batch whose length is known only when all of it was read might not fit into any sweep. A cache knows samples, and
  // the reads of a sweep are others in each epoch.
  const bool sweeps =
      first.source != nullptr && storage::advice_on(first).join && !recipe.varies() && !many_parts && !cache;
  choose_threads(sweeps);
  choose_io_depth();
  if (const storage::Source* const direct = direct_source();
      options.storage == storage::Storage::automatic && direct != nullptr) {
    options.storage = storage::Storage::direct;
    const storage::DiskRates disk = storage::probe_disk(*direct, usual_bytes().mean, std::chrono::seconds(1));
    notes.push_back(format_text("{}: the page cache of this machine ({}) cannot hold {}, and {}",
                                option("storage", "direct"), format_bytes(os::memory_limit().bytes),
                                format_bytes(direct->size_bytes()),
                                disk.describe(options.shuffle.how == dataset::Shuffle::How::full)));
  }
  choose_blocks();
  choose_nodes();
  divide(sweeps);
  note_ranks();
}

// What the processes of this job on this machine divide between them.
void Job::note_ranks() {
  if (ranks.count < 2 || !(auto_workers || auto_memory)) return;
  std::vector<Text> shares;
  if (auto_workers) shares.push_back(format_text("{}", option("num_workers", std::to_string(options.num_workers))));
  if (auto_memory) shares.push_back(format_text("{} {}", option("memory_limit"), format_bytes(options.memory_limit)));
  Text text = shares.front();
  if (shares.size() > 1) text = format_text("{} and {}", text, shares.back());
  notes.push_back(format_text("{} processes of this job share the machine ({}): this one has {}{}", ranks.count,
                              ranks.origin, text, numa_cpus.empty() ? "" : ", on one NUMA node"));
}

void Job::choose_threads(bool sweeps) {
  const os::Cores cores = os::effective_cores("/", ranks.count);
  auto_workers = options.num_workers == kAuto;
  if (auto_workers) options.num_workers = cores.whole();
  if (auto_workers && ranks.count > 1) numa_cpus = os::numa_cpus(ranks);
  max_workers = std::max(1, options.num_workers);
  is_inline = options.num_workers == 0;
  if (auto_workers && !cores.limited_by.empty() && ranks.count < 2) {
    notes.push_back(
        format_text("{}: limited by {}", option("num_workers", std::to_string(options.num_workers)), cores.limited_by));
  }
  if (options.io_threads == kAuto) {
    // Where decoding is light, reading is most of the work (51,000 WAV files on 2 cores: 200,000 files/s with one
    // I/O thread, 310,000 with two); where it is heavy, half the cores can feed the others.
    options.io_threads = sweeps ? 1 : std::clamp(recipe.facts().is_heavy ? cores.whole() / 2 : cores.whole(), 1, 4);
  }
}

void Job::choose_io_depth() {
  if (options.io_depth == 0) options.io_depth = 256;
  if (const std::uint64_t files = os::open_file_limit(); files != os::kNoFileLimit) {
    // Every request in flight may hold a descriptor; a few are left for the rest of the process.
    const std::uint64_t threads = is_far() ? 1 : static_cast<std::uint64_t>(options.io_threads);
    const std::uint64_t most = std::max<std::uint64_t>(1, files / 4 * 3 / threads);
    if (options.io_depth > most) {
      options.io_depth = most;
      if (files < 1024)
        notes.push_back(
            format_text("{}: limited by {} open files (`ulimit -n`)", option("io_depth", std::to_string(most)), files));
    }
  }
  options.io_depth = std::max<std::uint64_t>(options.io_depth, 1);
}

bool Job::is_far() const noexcept {
  return !dataset->backends().empty();
}

std::uint64_t Job::thread_depth() const noexcept {
  if (!is_far()) return options.io_depth;
  return std::max<std::uint64_t>(1, options.io_depth / static_cast<std::uint64_t>(options.io_threads));
}

void Job::open_cache() {
  if (options.cache_limit == 0) return;
  const auto backends = dataset->backends();
  const bool has_store = std::any_of(backends.begin(), backends.end(), [](const storage::Backend* backend) {
    return backend != nullptr && backend != &storage::local_files();
  });
  if (!has_store) {
    notes.push_back(format_text("{} is not used: the data set lies in local files", option("cache_limit")));
    return;
  }
  const std::string folder = dataset::listing_folder(options.cache_dir);
  if (folder.empty()) {
    throw Error(ErrorKind::usage, "cannot cache objects: neither $XDG_CACHE_HOME nor $HOME names a folder",
                format_text("give {}", option("cache_dir")))
        .about("cache_dir");
  }
  cache = std::make_shared<storage::ObjectCache>(folder, options.cache_limit);
  if (const std::uint64_t data_bytes = dataset->facts().total_bytes; data_bytes > options.cache_limit) {
    notes.push_back(format_text("{} {} holds a part of the data, which is {}: the rest comes from the store each epoch",
                                option("cache_limit"), format_bytes(options.cache_limit), format_bytes(data_bytes)));
  }
}

// Any of them: a volume may be in memory while its mask is read past the page cache.
const storage::Source* Job::direct_source() const noexcept {
  const auto sources = dataset->sources();
  const auto found =
      std::find_if(sources.begin(), sources.end(), [](const storage::Source* source) { return source->is_direct(); });
  return found == sources.end() ? nullptr : *found;
}

bool Job::reads_direct() const noexcept {
  return dataset->sources().empty() ? options.storage == storage::Storage::direct : direct_source() != nullptr;
}

std::uint64_t Job::slab_bytes_for(std::uint64_t length) const noexcept {
  const std::uint64_t possible = std::min(length, kMostElements / options.batch_size);
  if (recipe.packs_rows()) return packed_slab_bytes(options.batch_size * packed_bytes(possible));
  return os::Arena::rounded(lay_out(recipe, options.batch_size, possible).total);
}

std::uint64_t Job::packed_slab_bytes(std::uint64_t bytes) const noexcept {
  return os::Arena::rounded(lay_out(recipe, options.batch_size, bytes).total);
}

std::uint64_t Job::steps_ahead() const noexcept {
  const std::uint64_t made = options.prefetch_factor + 1;
  const std::uint64_t read = (options.io_depth + options.batch_size - 1) / options.batch_size;
  const std::uint64_t most = memory_facts.is_far ? memory.max_pendings : kMostStepsRead;
  return std::max<std::uint64_t>(2, std::min(made + std::clamp<std::uint64_t>(read, 1, most), memory.max_pendings));
}

dataset::Order Job::make_order(std::uint64_t epoch, std::uint64_t position) const {
  return dataset::Order({.size = dataset->size(),
                         .shuffle = shuffle_of(epoch),
                         .seed = options.seed,
                         .batch_size = options.batch_size,
                         .rank = options.rank,
                         .world_size = options.world_size,
                         .last_batch = options.last_batch},
                        epoch, position);
}

dataset::Shuffle Job::shuffle_of(std::uint64_t epoch) const {
  const std::scoped_lock lock(kept_mutex_);
  return kept_ && kept_->epoch == epoch ? kept_->shuffle : options.shuffle;
}

bool Job::keep_order(const std::optional<Kept>& kept) {
  const std::scoped_lock lock(kept_mutex_);
  if (kept_ == kept) return false;
  kept_ = kept;
  return true;
}

// The bytes of a row, of all its parts together.
std::uint64_t Job::encoded_bytes(std::uint64_t index) const noexcept {
  if (!many_parts) return dataset->location(index).bytes;
  const dataset::RowKey key{options.seed, 0, dataset->id(index)};
  std::uint64_t bytes = 0;
  for (std::uint32_t part = 0, count = dataset->parts(index, key); part < count; ++part) {
    bytes += dataset->locate_part(index, key, part, {}).bytes;
  }
  return bytes;
}

Job::Sizes Job::usual_bytes() const noexcept {
  std::array<std::uint64_t, 256> bytes;
  const std::uint64_t count = dataset->size(), looks = std::min<std::uint64_t>(count, bytes.size());
  if (looks == 0) return {};
  for (std::uint64_t i = 0; i < looks; ++i) bytes[i] = encoded_bytes(i * (count / looks));
  const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(looks),
             middle = bytes.begin() + (end - bytes.begin()) / 2;
  std::nth_element(bytes.begin(), middle, end);
  return {std::accumulate(bytes.begin(), end, std::uint64_t{0}) / looks, *middle};
}

// What shuffle=blocks leaves open: blocks that any disk reads at its full rate, and as many as mix well.
void Job::choose_blocks() {
  dataset::Shuffle& shuffle = options.shuffle;
  if (shuffle.how != dataset::Shuffle::How::blocks) return;
  std::uint64_t mean = std::max<std::uint64_t>(1, usual_bytes().mean);
  if (const auto& volumes = dataset->facts().volumes) {
    mean = std::max<std::uint64_t>(1, recipe.row_bytes(0, 0));
    if (shuffle.block == 0) {
      shuffle.block = std::min(neighbours_in_chunks(volumes->plan(), dataset->size()), dataset->size());
      shuffle.window = kLeastMixed * shuffle.block;
    }
  } else if (shuffle.block == 0) {
    shuffle.block = std::clamp<std::uint64_t>(kBlockBytes / mean, 1, std::max<std::uint64_t>(1, dataset->size()));
    shuffle.window = std::max(kMixedBytes / mean / shuffle.block, kLeastMixed) * shuffle.block;
  }
  memory_facts.window_rows = std::min(shuffle.window, dataset->size()) / options.world_size + 1;
  notes.push_back(format_text("{}: {} neighbours ({}) stay together, {} samples ({}) are mixed",
                              option("shuffle", "blocks"), format_count(shuffle.block),
                              format_bytes(shuffle.block * mean),
                              format_count(std::min(shuffle.window, dataset->size())),
                              format_bytes(std::min(shuffle.window, dataset->size()) * mean)));
}

// What shuffle=nodes leaves open: how many nodes there are, and what each takes of a step. Neighbouring ranks share a
// node.
void Job::choose_nodes() {
  dataset::Shuffle& shuffle = options.shuffle;
  if (shuffle.how != dataset::Shuffle::How::nodes || shuffle.of_node != 0) return;
  const auto local = static_cast<std::uint64_t>(std::max(1, ranks.count));
  const bool is_given = shuffle.nodes != 0;
  if (!is_given && options.world_size > local && options.world_size % local != 0) {
    throw Error(
        ErrorKind::usage,
        format_text("cannot tell how many nodes {} are: {} ranks, of which {} share this one ({})",
                    option("shuffle", "nodes"), options.world_size, local, ranks.origin),
        format_text("every node needs as many ranks; or give the count of nodes: {}", option("shuffle", "nodes:2")))
        .about("shuffle");
  }
  if (!is_given) shuffle.nodes = std::max<std::uint64_t>(1, options.world_size / local);
  if (options.world_size > 1 && options.world_size % shuffle.nodes != 0) {
    throw Error(ErrorKind::usage,
                format_text("cannot share {} ranks among {} nodes: every node needs as many ranks", options.world_size,
                            shuffle.nodes),
                format_text("give {} a count that divides {}", option("shuffle"), options.world_size))
        .about("shuffle");
  }
  shuffle.of_node = std::max<std::uint64_t>(1, options.batch_size * options.world_size / shuffle.nodes);
  notes.push_back(format_text("{}: each of {} nodes{} mixes samples of its own, {} of each step, in every epoch",
                              option("shuffle", "nodes"), shuffle.nodes,
                              is_given || ranks.origin.empty() ? "" : fmt::format(" ({})", ranks.origin),
                              format_count(shuffle.of_node)));
}

// Where the places in JPEG files come from.
void Job::choose_seek() {
  if (options.seek_index == UseSeekIndex::off) return;
  memory_facts.seek = MemoryFacts::Seek::noted;
  memory_facts.seekable_mcus = recipe.facts().seekable_mcus;
  const std::string& path = dataset->facts().pack_seek_path;
  if (path.empty()) return;
  std::string why;
  auto packed = std::make_shared<SeekFile>(SeekFile::open(path, why));
  if (!why.empty()) {
    notes.push_back(fmt::format("`{}` is not used: {}; `stoker check --repair` makes a new one", path, why));
  } else if (!packed->rows().empty()) {
    memory_facts.seek = MemoryFacts::Seek::packed;
    seek_options.packed = std::move(packed);
  }
}

// How much of the data itself may be kept in memory, and what that takes.
void Job::choose_ram() {
  using storage::Storage;
  if (options.storage != Storage::ram && options.storage != Storage::automatic) return;
  const auto sources = dataset->sources();
  const bool are_mapped = std::all_of(sources.begin(), sources.end(),
                                      [](const storage::Source* source) { return !source->view().empty(); });
  if (many_parts && are_mapped) {  // or there are none: parts are not the stored samples that RamStore knows
    if (options.storage == Storage::automatic) options.storage = Storage::buffered;
    return;
  }
  MemoryFacts& facts = memory_facts;
  facts.ram = options.storage == Storage::ram ? MemoryFacts::Ram::what_fits : MemoryFacts::Ram::if_all_fits;
  if (!keeps_samples()) {
    for (const storage::Source* const source : sources) {
      facts.data_bytes += source->size_bytes();
      facts.data_beside_bytes += os::Arena::rounded(source->size_bytes()) - source->size_bytes();
    }
  } else {
    facts.data_bytes = dataset->facts().total_bytes;
    shares_ram = ranks.count > 1;
    facts.data_beside_bytes = dataset->stored_count() * storage::RamStore::kBytesPerFile + 2 * kMiB;
  }
}

void Job::divide(bool sweeps) {
  MemoryFacts& facts = memory_facts;
  const Sizes usual = usual_bytes();
  Demand& demand = facts.demand;
  // How large a padded batch is depends on the shapes that meet in it: half of the limit is kept for them.
  padding_bytes = options.shapes == Shapes::pad ? options.memory_limit / 2 : 0;
  demand.limit_bytes = options.memory_limit - padding_bytes;
  demand.batch_size = std::min<std::uint64_t>(options.batch_size, std::max<std::uint64_t>(1, dataset->size()));
  demand.usual_bytes = usual.median;
  demand.batch_bytes = slab_bytes_for(recipe.varies() ? recipe.length_of(demand.usual_bytes) : 0);
  demand.list_bytes = dataset->memory_bytes();
  demand.largest_bytes = dataset->facts().largest_bytes;
  demand.most_parts = dataset->facts().most_parts;
  demand.in_place = in_place;
  demand.decodes = !in_place && !recipe.facts().is_copy && !recipe.facts().is_encoded;
  demand.varies = recipe.varies();
  facts.mean_bytes = usual.mean;
  facts.samples = dataset->size();
  facts.scratch_estimate = recipe.facts().scratch_estimate;
  facts.is_heavy = recipe.facts().is_heavy;
  if (recipe.facts().chunk_bytes > 0) {
    facts.chunk_bytes = ChunkStore::bytes_for(recipe.facts().chunk_bytes);
    facts.chunked_bytes =
        recipe.facts().chunked_bytes / recipe.facts().chunk_bytes * facts.chunk_bytes + facts.chunk_bytes;
  }
  facts.direct = reads_direct();
  facts.sweeps = sweeps;
  facts.is_far = is_far();
  facts.batch_size = options.batch_size;
  facts.prefetch_factor = options.prefetch_factor;
  facts.read_ahead = options.read_ahead;
  facts.io_depth = options.io_depth;
  facts.thread_depth = thread_depth();
  facts.workers = static_cast<std::uint64_t>(max_workers);
  facts.io_threads = static_cast<std::uint64_t>(options.io_threads);
  facts.stored_files = dataset->stored_count();
  hand_over = dataset->hand_over();
  if (cache && hand_over) hand_over->clear();  // the cache gets everything from its fetcher
  facts.hand_over_bytes = hand_over ? hand_over->held_bytes() : 0;
  choose_seek();
  choose_ram();
  const std::uint64_t whole_bytes = facts.data_bytes;
  const auto share_out = [&] {
    facts.data_bytes = whole_bytes;  // a rank that has room for all of the data may hold all: others may not come
    memory = divide_memory(facts);
    if (!shares_ram || memory.ram_holds_all(facts)) return;
    facts.data_bytes = whole_bytes / static_cast<std::uint64_t>(ranks.count) + 1;
    memory = divide_memory(facts);
  };
  share_out();
  if (!memory.is_enough && auto_memory && ranks.count > 1) {  // a share must not refuse what a lone process may load
    demand.limit_bytes = options.memory_limit = default_memory_limit();
    share_out();
  }
  if (!memory.is_enough || recipe.look_bytes() > options.memory_limit) {
    std::uint64_t least = least_limit(facts);  // 0: no limit is enough
    if (padding_bytes != 0) least *= 2;
    if (least != 0) least = std::max(least, recipe.look_bytes());
    const std::string needed = least == 0 ? std::string("more memory than any machine has")
                                          : fmt::format("at least {} ({} bytes)", format_bytes(least), least);
    throw Error(
        ErrorKind::usage,
        format_text("{} {} is too small: two batches ({} each), a sample ({}) with its working memory, the list of "
                    "samples ({}) and {} threads need {}{}",
                    option("memory_limit"), format_bytes(options.memory_limit), format_bytes(demand.batch_bytes),
                    format_bytes(demand.usual_bytes), format_bytes(demand.list_bytes), facts.workers + facts.io_threads,
                    needed, padding_bytes != 0 ? ", of which padded batches have half" : ""),
        format_text("raise {}, or lower {} or {}", option("memory_limit"), option("batch_size"), option("num_workers")))
        .about("memory_limit");
  }
  if (hand_over && memory.ram == 0) hand_over->shrink(memory.hand_over);
  if (options.io_batch == 0) options.io_batch = in_place ? memory.unit_rows : Unit::kMaxRows;
  seek_options.limit_bytes = memory.seek;
  if (memory.seek_step != 0) {
    seek_options.step = memory.seek_step;
    seek_options.files = dataset->stored_count();
    if (options.seek_index == UseSeekIndex::automatic) seek_options.path = dataset->facts().seek_path;
  }
  if (facts.ram != MemoryFacts::Ram::off) {
    const Text sizes =
        format_text("{} is {}, and {} {} has room for {} of it",
                    facts.data_bytes < whole_bytes ? "the share of this process in the data" : "the data",
                    format_bytes(facts.data_bytes), option("memory_limit"), format_bytes(options.memory_limit),
                    format_bytes(memory.ram_room));
    if (options.storage == storage::Storage::automatic) {
      options.storage = memory.ram_holds_all(facts) ? storage::Storage::ram : storage::Storage::buffered;
      notes.push_back(format_text("{}: {}", option("storage", name(options.storage)), sizes));
    } else if (!memory.ram_holds_all(facts)) {
      notes.push_back(format_text("{}: {}; the rest is read from disk each epoch", option("storage", "ram"), sizes));
    }
  }
  if (facts.window_rows != 0 && facts.sweeps && memory.sweep < memory.wanted_sweep) {
    notes.push_back(
        format_text("{}: {} {} has room to read {} of the {} that are mixed at once: reads are smaller than blocks",
                    option("shuffle", "blocks"), option("memory_limit"), format_bytes(options.memory_limit),
                    format_bytes(memory.sweep), format_bytes(memory.wanted_sweep)));
  }
}

}  // namespace stoker::loader
