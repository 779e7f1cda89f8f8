#include "stoker/feed/advice.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/measure/answer.h"
#include "stoker/storage/fetcher.h"

namespace stoker::feed {
namespace {

constexpr std::uint64_t kGB = 1'000'000'000;
constexpr std::uint32_t kSmallBatch = 16;  // smaller ones are handed over one by one

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string gain_text(const meter::Verdict& verdict) {
  if (verdict.gain >= 20)
    return fmt::format("more than 20x faster if {} were free", measure::stage_name(verdict.bound));
  return fmt::format("{:.2f}x faster if {} were free", verdict.gain, measure::stage_name(verdict.bound));
}

OptionName workers(int count) {
  return option("num_workers", std::to_string(count));
}

OptionName more_threads(const loader::LoaderOptions& options) {
  return option("io_threads", std::to_string(2 * std::max(1, options.io_threads)));
}

Text faster_prep(const FedRun& run) {
  const int cores = std::max(1, static_cast<int>(run.cores));
  if (run.options.num_workers >= 0 && run.options.num_workers < cores) {
    const int ran = run.fed.stats.num_workers;
    return format_text("more workers: {} (this machine gives {} cores, {} worker{} ran)", option("num_workers", "auto"),
                       cores, ran, ran == 1 ? "" : "s");
  }
  if (is_crowded(run)) return "a quiet machine: other programs may be taking the cores (see the note above)";
  if (run.decodes_jpeg && run.options.decode == loader::Decode::exact) {
    return format_text("the workers are busy decoding on {} cores: {}, smaller files, or more cores", cores,
                       option("decode", "fast"));
  }
  return format_text("the workers are busy on {} cores: a cheaper {}, or more cores", cores, option("transform"));
}

Text faster_store(const FedRun& run) {
  const storage::StoreFigures& store = run.fed.stats.store;
  if (run.options.cache_limit == 0) {
    const std::string limit = run.total_bytes < kGB ? "1GB" : fmt::format("{}GB", run.total_bytes / kGB * 5 / 4 + 1);
    return format_text("later epochs from the local disk: {} keeps the objects (the data is {})",
                       option("cache_limit", limit), format_bytes(run.total_bytes));
  }
  if (store.cache_misses > store.cache_hits)
    return format_text("more epochs, or a larger {}: most reads still ask the store", option("cache_limit"));
  return format_text("more requests at once: {}", more_threads(run.options));
}

Text faster_fetch(const FedRun& run) {
  const loader::LoaderOptions& options = run.options;
  if (run.fed.stats.store.is_any()) return faster_store(run);
  if (run.is_warm) {
    if (run.file_per_sample)
      return format_text("more requests at once: {}, or one large file: `stoker pack`", more_threads(options));
    return format_text("more requests at once: {}, or {}", more_threads(options),
                       option("storage", options.storage == storage::Storage::mmap ? "ram" : "mmap"));
  }
  if (options.storage != storage::Storage::direct) {
    return format_text("more requests in flight past the page cache: {} {}", option("storage", "direct"),
                       option("io_depth", "256"));
  }
  const auto depth = std::clamp<std::uint64_t>(2 * options.io_depth, 256, storage::kMaxDepth);
  return format_text("the disk is the limit: {}, {}, or a faster disk", option("io_depth", std::to_string(depth)),
                     option("read_ahead", "256MB"));
}

}  // namespace

meter::Verdict verdict_of(const Span& span) {
  const auto ns = [](double seconds) { return static_cast<std::int64_t>(seconds * 1e9); };
  return meter::judge(ns(span.compute_s), span.wait, ns(span.other_s()));
}

std::string verdict_line(const Span& span) {
  const meter::Verdict verdict = verdict_of(span);
  if (verdict.bound == meter::Bound::compute) {
    return fmt::format("compute_bound {}: the loader keeps up", percent(span.au()));
  }
  const std::string_view bound = meter::name(verdict.bound), general = meter::general_name(verdict.bound);
  return fmt::format("{}{} {}, {}: {}", bound, bound == general ? "" : fmt::format(" ({})", general),
                     percent(verdict.share), verdict.severity, gain_text(verdict));
}

bool is_crowded(const FedRun& run) {
  const meter::Verdict verdict = verdict_of(run.fed.total);
  const double wanted = std::min(run.cores, static_cast<double>(std::max(1, run.fed.stats.num_workers)));
  return run.fed.total.steps > 0 && run.fed.wall_s > 0.5 && verdict.bound == meter::Bound::prep &&
         verdict.share + run.fed.total.other_share() > 0.5 && run.fed.cpu_s / run.fed.wall_s < 0.6 * wanted;
}

Text next_step(const FedRun& run) {
  const loader::LoaderOptions& options = run.options;
  switch (verdict_of(run.fed.total).bound) {
    case meter::Bound::compute:
      if (options.num_workers > 1)
        return format_text("see whether fewer workers feed it too: {}", workers(options.num_workers / 2));
      return format_text("nothing: the loader keeps up; a faster accelerator is {} with a smaller number",
                         option("step_ms"));
    case meter::Bound::prep:
      return faster_prep(run);
    case meter::Bound::fetch:
      return faster_fetch(run);
    case meter::Bound::handoff:
      if (options.batch_size < kSmallBatch) {
        return format_text("batches of {} are handed over one by one: {}", options.batch_size,
                           option("batch_size", "64"));
      }
      return format_text("more batches ready beforehand: {}",
                         option("prefetch_factor", std::to_string(2 * options.prefetch_factor)));
  }
  return {};
}

}  // namespace stoker::feed
