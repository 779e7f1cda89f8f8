#include "stoker/plan/what_if.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"

namespace stoker::plan {
namespace {

// What reading costs an I/O thread per sample beyond copying the bytes: `stoker load --bench-steps` of 7 KB recordings
// in the page cache, one worker on two cores.
constexpr double kRequest = 3.5e-6;  // a range of an open file
constexpr double kFile = 7e-6;       // a file: opened, read, closed
constexpr double kInMemory = 0.6e-6;
constexpr double kPage = 0.12e-6;  // touching a page of a mapping
constexpr double kPageBytes = 4096;
// decode=fast against exact, on photos of 500 x 375: 1.28 to 1.34 times (docs/background/decoding.md, "Exact and
// fast").
constexpr double kFastDecode = 1.3;

std::string limit_text(const Predicted& predicted) {
  const bool is_thing = predicted.limit == Limit::cores || predicted.limit == Limit::storage;
  return fmt::format("then {}{} {} the limit", is_thing ? "the " : "", meter::name(predicted.limit),
                     predicted.limit == Limit::cores ? "are" : "is");
}

// A change of one knob, by its name.
WhatIf of_knob(const Stages& now, std::string_view knob, std::string value, std::string change) {
  WhatIf what{.name = fmt::format("{}={}", knob, value), .change = std::move(change), .stages = now};
  what.knob = knob;
  what.value = std::move(value);
  return what;
}

WhatIf finish(WhatIf what, const Stages& now) {
  what.predicted = predict(what.stages);
  const Predicted before = predict(now);
  what.gain = before.per_s > 0 ? what.predicted.per_s / before.per_s : 1;
  if (what.why.empty()) what.why = limit_text(what.predicted);
  return what;
}

// What changes in a stage changes the CPU time of the whole. In a torch worker fetching is waiting, and takes none.
void set_fetch(Stages& stages, double fetch_s) {
  if (stages.cpu_s > 0 && !stages.fetch_in_workers)
    stages.cpu_s = std::max(1e-12, stages.cpu_s + fetch_s - stages.fetch_s);
  stages.fetch_s = fetch_s;
}

void set_prep(Stages& stages, double prep_s) {
  if (stages.cpu_s > 0) stages.cpu_s = std::max(1e-12, stages.cpu_s + prep_s - stages.prep_s);
  stages.prep_s = prep_s;
}

// What memory or the disk's queue gave must be asked of the kernel then.
void read_through_cache(Stages& stages, const Setting& setting) {
  if (setting.access != Access::ram && setting.access != Access::direct) return;
  const double copy = setting.sample_bytes / setting.memory_bytes_per_s;
  set_fetch(stages, (setting.is_file_per_sample ? kFile : kRequest) + copy);
}

}  // namespace

std::string_view name(Access access) noexcept {
  switch (access) {
    case Access::buffered:
      return "buffered";
    case Access::direct:
      return "direct";
    case Access::mmap:
      return "mmap";
    case Access::ram:
      return "ram";
    case Access::remote:
      return "remote";
  }
  return "buffered";
}

std::string_view name(Evidence evidence) noexcept {
  switch (evidence) {
    case Evidence::model:
      return "model";
    case Evidence::ratio:
      return "ratio";
    case Evidence::measured:
      return "measured";
  }
  return "model";
}

WhatIf with_workers(const Stages& now, double workers) {
  WhatIf what = of_knob(now, "num_workers", fmt::format("{:g}", workers),
                        fmt::format("{:g} workers instead of {:g}", workers, now.workers));
  what.stages = meter::stages_with_workers(now, workers);
  what.flags = {"--num-workers", fmt::format("{:g}", workers)};
  return finish(what, now);
}

WhatIf with_storage(const Stages& now, const Setting& setting, Access access) {
  WhatIf what = of_knob(now, "storage", std::string(name(access)), "");
  what.flags = {"--storage", std::string(name(access))};
  switch (access) {
    case Access::ram:
      what.change = "encoded bytes kept in memory after the first epoch";
      set_fetch(what.stages, std::min(now.fetch_s, kInMemory));
      what.stages.storage_per_s = 0;
      what.most_bytes = setting.dataset_bytes;
      if (setting.memory_bytes > 0 && setting.dataset_bytes > setting.memory_bytes) {
        what.feasible = false;
        what.why = "the data is larger than the memory that is free";
      }
      break;
    case Access::mmap:
      if (setting.is_file_per_sample) {
        what.change = "loose files are read, not mapped: as storage=buffered";
        read_through_cache(what.stages, setting);
      } else {
        what.change = "files mapped instead of read";
        set_fetch(what.stages, std::ceil(setting.sample_bytes / kPageBytes) * kPage);
      }
      break;
    case Access::direct:
      what.change = "reads past the page cache, many in flight";
      if (setting.disk_bytes_per_s > 0 && setting.sample_bytes > 0) {
        what.stages.storage_per_s = setting.disk_bytes_per_s / setting.sample_bytes;
        if (now.fetch_in_workers) what.stages.fetch_s = 0;  // workers wait no longer, the disk's queue does
      } else {
        what.feasible = false;
        what.why = "what the disk gives is not known: `stoker load --cold` measures it";
      }
      break;
    case Access::buffered:
    case Access::remote:
      what.change = "reads through the page cache";
      read_through_cache(what.stages, setting);
      break;
  }
  return finish(what, now);
}

WhatIf with_pack(const Stages& now, const Setting& setting, bool raw) {
  WhatIf what{.name = raw ? "pack raw" : "pack encoded",
              .kind = raw ? Change::pack_raw : Change::pack_encoded,
              .stages = now,
              .needs_pack = true};
  const double bytes = raw && setting.decoded_bytes > 0 ? setting.decoded_bytes : setting.sample_bytes;
  const double copy = bytes / setting.memory_bytes_per_s;
  if (raw && setting.is_random) {
    what.feasible = false;
    what.why = "its transforms are random, and a raw pack would hold one draw of each";
    return finish(what, now);
  }
  if (bytes <= 0) {
    what.feasible = false;
    what.why = raw ? "the size of a decoded sample is not known" : "the size of a sample is not known";
    return finish(what, now);
  }
  what.change = raw ? "decoded and transformed once (nothing random), read as rows of a few large files"
                    : "the same bytes in a few large files";
  const double request = kRequest + copy;
  if (raw) {
    // A row is read straight into its slot of the batch.
    set_prep(what.stages, std::min(now.prep_s, copy));
    set_fetch(what.stages, request);
    if (setting.disk_bytes_per_s > 0 && now.storage_per_s > 0 && bytes > 0) {
      what.stages.storage_per_s = setting.disk_bytes_per_s / bytes;
    }
  } else {
    set_fetch(what.stages, std::min(now.fetch_s, request));
    if (setting.disk_bytes_per_s > 0 && now.storage_per_s > 0 && bytes > 0) {
      what.stages.storage_per_s = std::max(now.storage_per_s, setting.disk_bytes_per_s / bytes);
    }
  }
  return finish(what, now);
}

WhatIf with_local_copy(const Stages& now, const Setting& setting) {
  WhatIf what{.name = "stage locally", .kind = Change::local_copy, .change = "a copy on a local disk", .stages = now};
  what.stages.storage_per_s = setting.local_per_s.value_or(
      setting.disk_bytes_per_s > 0 && setting.sample_bytes > 0 ? setting.disk_bytes_per_s / setting.sample_bytes : 0);
  if (now.fetch_in_workers) what.stages.fetch_s = 0;
  return finish(what, now);
}

WhatIf with_cache(const Stages& now, const Setting& setting, double cache_bytes) {
  WhatIf what{.name = fmt::format("cache {:.3g} GB", cache_bytes / 1e9),
              .kind = Change::cache,
              .change = "a fixed share of the data kept in memory",
              .stages = now,
              .most_bytes = cache_bytes};
  const double share = setting.dataset_bytes > 0 ? std::min(1.0, cache_bytes / setting.dataset_bytes) : 0;
  if (now.storage_per_s > 0) what.stages.storage_per_s = share >= 1 ? 0 : now.storage_per_s / (1 - share);
  if (now.fetch_in_workers) what.stages.fetch_s = now.fetch_s * (1 - share);
  return finish(what, now);
}

WhatIf with_faster_prep(const Stages& now, double times, std::string_view how) {
  WhatIf what{.name = std::string(how),
              .kind = Change::faster_prep,
              .change = fmt::format("decoding and transforms {:.3g} times as fast", times),
              .stages = now};
  set_prep(what.stages, now.prep_s / times);
  return finish(what, now);
}

WhatIf with_compute(const Stages& now, double compute_s) {
  WhatIf what{.name = "compute", .kind = Change::accelerator, .change = "another accelerator", .stages = now};
  what.stages.compute_s = compute_s;
  what.flags = {"--step-ms", fmt::format("{:.4f}", compute_s * now.batch_size * 1e3)};
  return finish(what, now);
}

WhatIf with_ranks(const Stages& now, double ranks) {
  WhatIf what{.name = fmt::format("ranks={:g}", ranks),
              .kind = Change::ranks,
              .change = fmt::format("{:g} ranks share the disk and the cores", ranks),
              .stages = now};
  what.stages.ranks = ranks;
  return finish(what, now);
}

WhatIf with_batch(const Stages& now, double batch_size) {
  WhatIf what = of_knob(now, "batch_size", fmt::format("{:g}", batch_size),
                        fmt::format("batches of {:g} instead of {:g}", batch_size, now.batch_size));
  // The hand-off is paid per batch; what prep and fetch cost, per sample.
  what.stages.batch_size = batch_size;
  what.stages.handoff_s = now.handoff_s * now.batch_size / batch_size;
  what.flags = {"--batch-size", fmt::format("{:g}", batch_size)};
  return finish(what, now);
}

WhatIf with_cores(const Stages& now, double cores) {
  WhatIf what{.name = fmt::format("cores={:g}", cores),
              .kind = Change::cores,
              .change = fmt::format("{:g} cores instead of {:g}", cores, now.cores),
              .stages = now};
  what.stages.cores = cores;
  what.stages.free_cores = 0;
  return finish(what, now);
}

WhatIf asked(const Stages& now, const Setting& setting, std::string_view text) {
  constexpr std::string_view names[] = {"num_workers", "storage", "pack",  "local_copy", "cache",
                                        "prep",        "step_ms", "ranks", "batch_size", "cores"};
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::string_view what = text.substr(0, equals);
  const std::string value(text.substr(std::min(equals + 1, text.size())));
  const auto refuse = [&](const std::string& hint) {
    return Error(ErrorKind::usage, fmt::format("cannot ask what if `{}`", text), hint);
  };
  if (what == "local_copy") return with_local_copy(now, setting);
  if (what == "storage") {
    for (const Access access : {Access::buffered, Access::direct, Access::mmap, Access::ram}) {
      if (value == name(access)) return with_storage(now, setting, access);
    }
    throw refuse("storage is buffered, direct, mmap or ram");
  }
  if (what == "pack") {
    if (value != "raw" && value != "encoded") throw refuse("pack is raw or encoded");
    return with_pack(now, setting, value == "raw");
  }
  if (what == "cache") return with_cache(now, setting, static_cast<double>(parse_bytes(value)));
  double number = 0;
  const auto [after, code] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool is_number = code == std::errc{} && after == value.data() + value.size() && number > 0 && number < 1e9;
  if (std::find(std::begin(names), std::end(names), what) == std::end(names)) {
    throw refuse(fmt::format("there are: {}", fmt::join(names, ", ")));
  }
  if (!is_number) throw refuse(fmt::format("{} is a number, such as {}=2", what, what));
  const bool is_count = what == "num_workers" || what == "ranks" || what == "batch_size";
  if (is_count && number != std::floor(number)) throw refuse(fmt::format("{} is a whole number", what));
  const double most = what == "step_ms" || what == "batch_size" ? 1e6 : what == "ranks" ? 1e5 : 1e4;
  if (number > most) throw refuse(fmt::format("{} is at most {:g}", what, most));
  if (what == "num_workers") return with_workers(now, number);
  if (what == "prep") return with_faster_prep(now, number, text);
  if (what == "step_ms") {
    WhatIf faster = with_compute(now, number * 1e-3 / now.batch_size);
    faster.name = text;
    return faster;
  }
  if (what == "ranks") return with_ranks(now, number);
  if (what == "batch_size") return with_batch(now, number);
  return with_cores(now, number);
}

std::vector<WhatIf> what_ifs(const Stages& now, const Setting& setting) {
  std::vector<WhatIf> all;
  if (now.cores > 0) {
    double best = 0;
    std::vector<WhatIf> counts;
    // One more is always shown, also where no core is free for it.
    const double most = std::max(meter::most_workers(now), std::min(now.cores, now.workers + 1));
    for (double workers = std::max(1.0, now.workers + 1); workers <= most;
         workers = workers < 4 ? workers + 1 : std::min(std::ceil(workers * 1.5), std::max(most, workers + 1))) {
      counts.push_back(with_workers(now, workers));
      best = std::max(best, counts.back().predicted.per_s);
    }
    for (const WhatIf& one : counts) {  // the fewest within 2 % of the best
      if (one.predicted.per_s < 0.98 * best) continue;
      all.push_back(one);
      break;
    }
  }
  if (setting.access == Access::remote) all.push_back(with_local_copy(now, setting));
  if (now.fetch_s > 0 || now.storage_per_s > 0) {
    for (const Access access : {Access::ram, Access::mmap, Access::direct}) {
      if (access == setting.access || setting.access == Access::remote) continue;
      if (!setting.is_ours) continue;  // a torch DataLoader has no such knob
      if (access == Access::direct && setting.warm) continue;
      if (access == Access::mmap && setting.is_file_per_sample) continue;
      all.push_back(with_storage(now, setting, access));
    }
    if (setting.is_file_per_sample) all.push_back(with_pack(now, setting, false));
  }
  if (setting.decodes) {
    all.push_back(with_pack(now, setting, true));
  }
  if (setting.is_ours && setting.decodes_jpeg) {
    all.push_back(with_faster_prep(now, kFastDecode, "faster decode"));
    all.back().kind = Change::faster_decode;
    all.back().evidence = Evidence::ratio;
  }
  all.push_back(with_ranks(now, 2));
  std::stable_sort(all.begin(), all.end(), [](const WhatIf& a, const WhatIf& b) {
    return std::tuple(!a.feasible, -a.gain) < std::tuple(!b.feasible, -b.gain);
  });
  return all;
}

void set_base(WhatIf& what, double base_per_s) {
  if (base_per_s <= 0) return;
  const bool by_step = what.kind == Change::accelerator && what.predicted.limit == Limit::compute;
  double& per_s = what.predicted.per_s;
  if (!by_step) per_s = base_per_s * what.gain;
  if (what.stages.compute_s > 0) {
    const double allowed = std::max(1.0, what.stages.ranks) / what.stages.compute_s;
    per_s = std::min(per_s, what.kind == Change::accelerator ? allowed : std::max(allowed, base_per_s));
  }
  what.gain = per_s / base_per_s;
}

std::vector<ScaleOut> scale_out(const Stages& one_node, std::span<const double> nodes) {
  Stages alone = one_node;
  alone.storage_per_s = 0;
  const double each = predict(alone).per_s;
  std::vector<ScaleOut> all;
  for (const double count : nodes) {
    const double wanted = count * each;
    const double got = one_node.storage_per_s > 0 ? std::min(wanted, one_node.storage_per_s) : wanted;
    all.push_back({count, got, wanted > 0 ? got / wanted : 1});
  }
  return all;
}

std::optional<double> saturating_nodes(const Stages& one_node) {
  Stages alone = one_node;
  alone.storage_per_s = 0;
  const double each = predict(alone).per_s;
  if (one_node.storage_per_s <= 0 || each <= 0) return std::nullopt;
  return one_node.storage_per_s / each;
}

EpochSplit split_epochs(double images, double first_per_s, double later_per_s, double workers) {
  EpochSplit split{.images = images, .first_s = images / first_per_s, .later_s = images / later_per_s};
  split.fetch_stall_s = std::max(0.0, split.first_s - split.later_s);
  split.later_per_worker = later_per_s / std::max(1.0, workers);
  split.local_copy_first = std::max(1.0, later_per_s / first_per_s);
  return split;  // later epochs do not fetch from afar: a local copy leaves them as they are
}

}  // namespace stoker::plan
