#include "stoker/measure/advice.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "stoker/base/units.h"

namespace stoker::measure {
namespace {

constexpr double kCrowded = 0.2;                 // of the time to make a batch spent ready, without a core
constexpr double kNoCore = 0.5;                  // of the time to collate spent ready, without a core
constexpr double kCheapWork = 0.5;               // of the hand-off: work that is not worth a worker
constexpr double kStartMatters = 0.1;            // of the running time
constexpr double kOthersMatter = 0.25;           // of the cores, kept busy by other programs
constexpr double kCopyMatters = 0.05;            // of the running time
constexpr double kSpinnersMatter = 0.2;          // of the time to make a batch
constexpr double kGrowthMatters = 100e6 / 3600;  // bytes per second and worker: 100 MB an hour

double mean_ns(std::int64_t sum, std::uint64_t count) {
  return static_cast<double>(sum) / static_cast<double>(std::max<std::uint64_t>(1, count));
}
std::string ms(double ns) {
  return fmt::format("{:.3g} ms", ns * 1e-6);
}
std::string cores_text(const Offer& offer) {
  return fmt::format("{:.3g} core{}", offer.cores, offer.cores == 1 ? "" : "s");
}

std::string at_place(const LoaderAnswer& loader) {
  if (loader.facts.file.empty()) return "";
  const std::size_t slash = loader.facts.file.rfind('/');
  return fmt::format(" at {}:{}", slash == std::string::npos ? loader.facts.file : loader.facts.file.substr(slash + 1),
                     loader.facts.line);
}

double share_of(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(1, whole));
}

bool is_loader_bound(const meter::Verdict& verdict) {
  return verdict.bound != meter::Bound::compute;
}

// Whether the training loop waits longer than it computes: then the rate is the loader's.
bool is_the_limit(const LoaderAnswer& loader) {
  if (loader.steady) return 2 * static_cast<double>(loader.steady->wait.total_ns()) > loader.steady->step_ns;
  return 2 * loader.steps.work_ns() < loader.steps.running_ns();
}

// Who holds the cores that threads of the loader were ready for.
std::string crowd_text(const LoaderAnswer& loader, const Offer& offer) {
  if (static_cast<double>(loader.facts.num_workers) > offer.cores)
    return fmt::format("more workers ({}) than cores ({:.3g})", loader.facts.num_workers, offer.cores);
  if (others_matter(offer)) return others_text(offer);
  return loader.facts.num_workers > 0 ? "other programs, or the training itself, take the cores"
                                      : "other programs take the cores";
}

// "num_workers=4 at train.py:41 (now 1 on 12 cores): about 2.5x", or nothing if more would not help.
std::string worker_advice(const LoaderAnswer& loader, const Offer& offer) {
  const meter::Stages now = stages_of(loader, offer);
  const int workers = meter::suggested_workers(now);
  if (workers == 0) return "";
  std::string text = fmt::format(
      "num_workers={}{} (now {} on {}{}): about {:.1f}x", workers, at_place(loader), loader.facts.num_workers,
      cores_text(offer), others_matter(offer) ? fmt::format(", other programs hold {:.1f}", offer.cores_of_others) : "",
      meter::gain_of_workers(now, workers));
  if (offer.worker_bytes > 0 && offer.memory_bytes > 0) {
    const std::uint64_t more = static_cast<std::uint64_t>(workers) * offer.worker_bytes;
    text += fmt::format("; {} workers hold about {} of the {} that are free", workers, format_bytes(more),
                        format_bytes(offer.memory_bytes));
    if (more > offer.memory_bytes) text += ": too much, so take fewer";
  }
  return text;
}

void advise_fetch(Answer& answer, const LoaderAnswer& loader, const Offer& offer) {
  const double fetch = mean_ns(loader.made.fetch_ns, loader.made.samples);
  answer.why.push_back(
      fmt::format("each sample spends {} waiting for its bytes ({} of the time to get it), not computing{}", ms(fetch),
                  percent_text(share_of(loader.made.fetch_ns, loader.made.fetch_ns + loader.made.prep_ns)),
                  offer.data_file_system.empty() ? "" : fmt::format("; the data lies on {}", offer.data_file_system)));
  if (const std::string more = worker_advice(loader, offer); !more.empty())
    answer.advice.push_back(more + ", as waiting overlaps");
  answer.advice.push_back(
      "move the data closer or into fewer, larger files: a local copy, or `stoker pack`; stoker.Loader keeps many "
      "reads "
      "in flight");
}

void advise_prep(Answer& answer, const LoaderAnswer& loader, const Offer& offer) {
  const double prep = mean_ns(loader.made.prep_ns - loader.made.delay_ns, loader.made.samples);
  const double crowded = share_of(loader.made.delay_ns, loader.made.build_ns());
  answer.why.push_back(fmt::format("each sample takes {} of CPU in `{}`", ms(prep), loader.facts.dataset));
  const bool has_workers = loader.facts.num_workers > 0;
  const bool too_many = static_cast<double>(loader.facts.num_workers) > offer.cores;
  if (crowded > kCrowded) {
    answer.why.push_back(fmt::format("{} for {} of {} time: {}",
                                     has_workers ? "the workers were ready but had no core"
                                                 : "the loading in the training process was ready but had no core",
                                     percent_text(crowded), has_workers ? "their" : "its", crowd_text(loader, offer)));
  }
  const std::string more = too_many ? "" : worker_advice(loader, offer);
  if (!more.empty()) answer.advice.push_back(more);
  if (crowded > kCrowded && !too_many) {
    answer.advice.emplace_back(
        has_workers && loader.compute_threads() != 1
            ? "a quieter machine, or fewer compute threads in the training process (torch.set_num_threads)"
            : kQuieterMachine);
  }
  if (more.empty() || crowded > kCrowded) {
    answer.advice.emplace_back(
        "a cheaper transform, smaller files, or stoker.Loader, which decodes in threads of one process");
  }
}

void advise_collate(Answer& answer, const LoaderAnswer& loader, const Offer& offer) {
  const Made& made = loader.made;
  const double without_core = share_of(made.collate_delay_ns, made.collate_ns);
  std::string why = fmt::format("`{}` takes {} per batch to put {:.0f} samples together", loader.facts.collate,
                                ms(mean_ns(made.collate_ns - made.collate_delay_ns, made.batches)),
                                mean_ns(static_cast<std::int64_t>(made.samples), made.batches));
  if (without_core > kCrowded)
    why += fmt::format(", and is ready without a core for {} more: {}",
                       ms(mean_ns(made.collate_delay_ns, made.batches)), crowd_text(loader, offer));
  answer.why.push_back(why);
  const std::string more = worker_advice(loader, offer);
  if (without_core < kNoCore)
    answer.advice.push_back(fmt::format("a cheaper collate_fn{}: samples as equal arrays, and torch.stack{}",
                                        at_place(loader), more.empty() ? "" : "; or " + more));
  if (without_core > kCrowded) answer.advice.emplace_back(kQuieterMachine);
  if (without_core >= kNoCore && !more.empty()) answer.advice.push_back(more);
}

// What to change where finished batches come late, or tasks do.
std::string delivery_advice(const LoaderAnswer& loader) {
  const Waited& wait = loader.steps.wait;
  if (loader.facts.num_workers == 0) {
    return loader.facts.pin_memory
               ? fmt::format("num_workers=1{}, so that batches are pinned and sent beside the step", at_place(loader))
               : fmt::format("larger batches, or a cheaper sampler{}", at_place(loader));
  }
  const double work = mean_ns(loader.made.work_ns(), loader.made.batches);
  const double late = mean_ns(wait.task_ns + wait.deliver_ns, loader.steps.steps);
  if (loader.made.batches > 0 && work < kCheapWork * late)
    return fmt::format("num_workers=0{}: a batch is made in {}, and takes {} to come from a worker", at_place(loader),
                       ms(work), ms(late));
  if (loader.sent_bytes > 100'000)
    return "tensors or numpy arrays instead of Python objects in the samples: tensors travel in shared memory, "
           "unpickled";
  return fmt::format("larger batches, or stoker.Loader, whose threads hand batches over without copying{}",
                     loader.facts.prefetch_factor < 4 ? "; prefetch_factor=4 evens out short delays" : "");
}

void advise_handoff(Answer& answer, const LoaderAnswer& loader, const Offer& offer) {
  const Waited& wait = loader.steps.wait;
  const std::int64_t worst = std::max({wait.start_ns, wait.task_ns, wait.collate_ns, wait.deliver_ns, wait.unknown_ns});
  if (worst == wait.start_ns) {
    answer.why.push_back(
        fmt::format("{} of the running time goes into starting and stopping workers, for each of {} epochs",
                    percent_text(loader.start_share), loader.epochs.size()));
    answer.advice.push_back(loader.facts.persistent_workers
                                ? fmt::format("longer epochs{}: the workers are kept already", at_place(loader))
                                : fmt::format("persistent_workers=True{}", at_place(loader)));
  } else if (worst == wait.collate_ns) {
    advise_collate(answer, loader, offer);
  } else if (worst == wait.unknown_ns) {
    answer.why.emplace_back("no record of the workers came, so what they did during the wait is not known");
  } else {
    const bool is_task = worst == wait.task_ns;
    std::string what = is_task
                           ? fmt::format("{} per step pass before {} the batch that the loop waits for",
                                         ms(mean_ns(wait.task_ns, loader.steps.steps)),
                                         loader.facts.num_workers > 0 ? "a worker starts on" : "the sampler has chosen")
                           : fmt::format("batches were ready but took {} to reach the training loop",
                                         ms(mean_ns(wait.deliver_ns, loader.steps.steps)));
    if (!is_task && loader.sent_bytes > 100'000)
      what += fmt::format(": {} each are pickled ({}), sent through a pipe and unpickled",
                          format_bytes(loader.sent_bytes), ms(static_cast<double>(loader.pickle_ns)));
    answer.why.push_back(what);
    if (others_matter(offer)) {
      answer.why.push_back(others_text(offer) + ": batches that are ready wait for a core");
      answer.advice.push_back(kQuieterMachine);
    }
    answer.advice.push_back(delivery_advice(loader));
  }
}

void advise_compute(Answer& answer, const LoaderAnswer& loader, const Offer& offer) {
  if (others_matter(offer)) {
    answer.why.push_back(others_text(offer) + ": the training step waits for a core");
    answer.advice.emplace_back(kQuieterMachine);
  }
  answer.why.emplace_back("the loader keeps up: nearly all the time is the training step itself");
  if (others_matter(offer)) return;
  answer.advice.emplace_back(
      loader.facts.num_workers > 2 && loader.ready_mean > 0.5 * static_cast<double>(loader.facts.num_workers)
          ? fmt::format("nothing in the loader; fewer workers would feed it too (num_workers={}{})",
                        meter::fewest_workers(stages_of(loader, offer)), at_place(loader))
          : "nothing in the loader; the step is what to make faster");
}

// A loader that tells where its time goes, but has no workers that could be watched: stoker.Loader, or any iterable.
void advise_unseen(Answer& answer, const LoaderAnswer& loader, const Offer& offer) {
  const meter::WaitSplit wait = loader.steps.wait.split();
  const bool is_ours = loader.facts.kind == LoaderKind::stoker;
  const auto each = [&](std::int64_t ns) { return ms(mean_ns(ns, loader.steps.steps)); };
  switch (answer.verdict->bound) {
    case meter::Bound::prep:
      answer.why.push_back(
          is_ours ? fmt::format("the loop waits {} per step for decoding and transforming", each(wait.prep_ns))
                  : fmt::format("the loop's own thread computes {} per step inside the loader", each(wait.prep_ns)));
      answer.advice.emplace_back(
          is_ours && loader.facts.workers_are_auto ? "decode=\"fast\", or a pack of prepared samples (`stoker pack`)"
          : is_ours ? "more num_workers, decode=\"fast\", or a pack of prepared samples (`stoker pack`)"
                    : "move that work to other threads or processes: a DataLoader with num_workers, or stoker.Loader");
      break;
    case meter::Bound::fetch:
      answer.why.push_back(is_ours ? fmt::format("the loop waits {} per step for bytes", each(wait.fetch_ns))
                                   : fmt::format("the loop waits {} per step inside the loader without computing: for "
                                                 "bytes, or for workers of its own",
                                                 each(wait.fetch_ns)));
      answer.advice.emplace_back(is_ours ? "more io_depth or read_ahead, storage=\"direct\", or data nearer"
                                         : "read ahead in other threads, or stoker.Loader");
      break;
    default:
      answer.why.push_back(
          fmt::format("batches were ready but took {} per step to reach the loop", each(wait.handoff_ns)));
      answer.advice.emplace_back("more prefetch_factor, or larger batches");
  }
  if (others_matter(offer)) {
    answer.why.push_back(others_text(offer) + ": the loader waits for a core");
    answer.advice.emplace_back(kQuieterMachine);
  }
}

void note_epochs(Answer& answer, const LoaderAnswer& loader) {
  if (loader.epochs.size() < 2) return;
  const EpochAnswer& first = loader.epochs.front();
  Steps later;
  Made made;
  for (std::size_t i = 1; i < loader.epochs.size(); ++i) {
    later.add(loader.epochs[i].steps);
    made.samples += loader.epochs[i].made.samples;
    made.fetch_ns += loader.epochs[i].made.fetch_ns;
  }
  const meter::Verdict rest = meter::judge(later.work_ns(), later.wait.split());
  if (first.steps.steps < 3 || later.steps < 3 || first.verdict.bound == rest.bound) return;
  std::string note = fmt::format("epoch {} was {} ({}), later ones are {} ({})", first.epoch, name(first.verdict.bound),
                                 percent_text(first.verdict.share), name(rest.bound), percent_text(rest.share));
  const double before = mean_ns(first.made.fetch_ns, first.made.samples), after = mean_ns(made.fetch_ns, made.samples);
  if (first.verdict.bound == meter::Bound::fetch && after < 0.5 * before) {
    note +=
        fmt::format(": the bytes come {:.0f} times faster by now, so faster storage would help the first epoch only",
                    before / std::max(1.0, after));
    if (rest.bound == meter::Bound::prep) note += "; what limits now is the CPU work per sample";
  }
  answer.notes.push_back(note);
}

std::string queue_text(std::int64_t change) {
  if (change == 0) return "the queue is as long as before";
  const std::int64_t batches = std::abs(change);
  return fmt::format("the queue {} by {} {} meanwhile", change < 0 ? "shrank" : "grew", batches,
                     batches == 1 ? "batch" : "batches");
}

void note_window(Answer& answer, const LoaderAnswer& loader) {
  if (!loader.short_window) return;
  const std::int64_t queued = loader.facts.queued();
  if (!loader.verdict) {
    answer.notes.push_back(fmt::format(
        "{} steps are too few for a verdict: up to {} batches were queued before the first one; run at least {} steps",
        loader.steps.steps, queued, 2 * queued));
  } else if (loader.steady) {
    answer.notes.push_back(
        fmt::format("corrected for the queue: {} steps were served from up to {} batches made beforehand, and {}; the "
                    "verdict is what the workers' own rate gives in the long run ({} per step, seen {})",
                    loader.steps.steps, queued, queue_text(loader.queue_change), ms(loader.steady->step_ns),
                    ms(mean_ns(loader.steps.running_ns(), loader.steps.steps))));
  } else {
    answer.notes.push_back(
        fmt::format("a short window: {} steps, and up to {} batches were queued beforehand; run at least {} steps",
                    loader.steps.steps, queued, 2 * queued));
  }
}

// What a device spends on copies, and whether it may compute in less than float32.
void advise_device(Answer& answer, const LoaderAnswer& loader) {
  const double copying = share_of(loader.steps.h2d_ns, loader.steps.running_ns());
  if (copying > kCopyMatters) {
    answer.advice.push_back(
        loader.facts.pin_memory
            ? fmt::format(
                  "copies to the device take {} of the time: `.to(device, non_blocking=True)`, the next batch on "
                  "a stream of its own, or smaller types (uint8, normalized on the device)",
                  percent_text(copying))
            : fmt::format("pin_memory=True{} and `.to(device, non_blocking=True)`: copies to the device take {} of the "
                          "time",
                          at_place(loader), percent_text(copying)));
  }
  if (answer.verdict->bound != meter::Bound::compute || !loader.batch || loader.batch->device.empty()) return;
  if (loader.arithmetic.watched && loader.arithmetic.autocast_dtype.empty() && loader.batch->tf32 == false)
    answer.advice.push_back(
        "torch.autocast, or torch.set_float32_matmul_precision(\"high\"): everything is computed in full float32");
}

void note_slow_samples(Answer& answer, const LoaderAnswer& loader) {
  if (loader.slow.size() < 2) return;
  const SlowSample& worst =
      *std::max_element(loader.slow.begin(), loader.slow.end(),
                        [](const SlowSample& a, const SlowSample& b) { return a.took_ns < b.took_ns; });
  answer.notes.push_back(
      fmt::format("{}{} sample{} took more than 10 times the usual: {}{} against {}; in order, a batch waits for its "
                  "slowest sample",
                  loader.slow.size() >= 50 ? "at least " : "", loader.slow.size(), loader.slow.size() == 1 ? "" : "s",
                  worst.sample.empty() ? "one " : fmt::format("index {} ", worst.sample),
                  ms(static_cast<double>(worst.took_ns)), ms(static_cast<double>(worst.mean_ns))));
}

void note_spinners(Answer& answer, const LoaderAnswer& loader) {
  const double each = mean_ns(loader.made.spinners_ns, loader.made.samples);
  if (loader.made.spinners_ns <= 0 || share_of(loader.made.spinners_ns, loader.made.build_ns()) < kSpinnersMatter)
    return;
  answer.notes.push_back(fmt::format(
      "other threads of each worker used {} of CPU per sample, which is not counted as prep: OpenMP and BLAS threads "
      "spin while they wait; OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1 free the cores",
      ms(each)));
}

}  // namespace

std::string percent_text(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

bool others_matter(const Offer& offer) {
  return offer.cores > 0 && offer.cores_of_others >= kOthersMatter * offer.cores;
}

std::string others_text(const Offer& offer) {
  return fmt::format("other programs keep {:.1f} of {:.3g} cores busy", offer.cores_of_others, offer.cores);
}

meter::Stages stages_of(const LoaderAnswer& loader, const Offer& offer) {
  const double steps = static_cast<double>(std::max<std::uint64_t>(1, loader.steps.steps)) * 1e6;
  const double batches = static_cast<double>(std::max<std::uint64_t>(1, loader.made.batches)) * 1e6;
  meter::LoaderFigures figures;
  if (loader.facts.batch_size > 0) figures.batch_size = static_cast<double>(loader.facts.batch_size);
  figures.num_workers = static_cast<double>(loader.facts.num_workers);
  figures.fetch_ms = static_cast<double>(loader.made.fetch_ns) / batches;
  figures.prep_ms = static_cast<double>(loader.made.prep_ns) / batches;
  figures.delay_ms = static_cast<double>(loader.made.delay_ns) / batches;
  figures.collate_ms = static_cast<double>(loader.made.collate_ns) / batches;
  figures.collate_delay_ms = static_cast<double>(loader.made.collate_delay_ns) / batches;
  figures.compute_ms = static_cast<double>(loader.steps.compute_ns) / steps;
  figures.compute_cpu_ms = mean_ns(loader.steps.compute_cpu_ns, loader.steps.compute_cpu_steps) * 1e-6;
  figures.cores = offer.cores;
  figures.cores_of_others = offer.cores_of_others;
  return stages_of(figures);
}

void advise(Answer& answer, const Offer& offer) {
  if (answer.stages) {
    answer.why = answer.stages->why;
    answer.advice = answer.stages->advice;
    answer.notes = answer.stages->notes;
  }
  if (answer.loaders.empty() && answer.stages) return;
  if (answer.loaders.empty()) {
    answer.why.push_back(answer.saw_torch ? "torch was imported, but no DataLoader was iterated"
                                          : "no Python with torch was seen: the job uses another loader, or its Python "
                                            "ignores PYTHONPATH (-E, -I or -S)");
    answer.advice.push_back(
        "put the loop's own iterable into a block: `with stoker.measure(batches) as m: for batch in m: ...`, then "
        "`print(m.summary())`");
    answer.advice.push_back(
        "or name the stages of a pipeline: `with stoker.span(\"read\"): ...`, `with stoker.span(\"device\"): ...`");
    return;
  }
  const LoaderAnswer& loader = answer.loaders[*answer.main];
  note_window(answer, loader);
  if (!answer.verdict) {
    if (!loader.short_window)
      answer.notes.push_back(
          fmt::format("{} step{} are too few for a verdict", loader.all_steps, loader.all_steps == 1 ? "" : "s"));
    return;
  }
  if (loader.made.batches == 0 && is_loader_bound(*answer.verdict)) {
    advise_unseen(answer, loader, offer);
    note_epochs(answer, loader);
    return;
  }
  switch (answer.verdict->bound) {
    case meter::Bound::compute:
      advise_compute(answer, loader, offer);
      break;
    case meter::Bound::fetch:
      advise_fetch(answer, loader, offer);
      break;
    case meter::Bound::prep:
      advise_prep(answer, loader, offer);
      break;
    case meter::Bound::handoff:
      advise_handoff(answer, loader, offer);
      break;
  }
  if (is_loader_bound(*answer.verdict) && answer.verdict->bound != meter::Bound::handoff && is_the_limit(loader))
    answer.notes.push_back(
        "a larger batch_size would not help: the loader makes as many samples per second as before, and activations "
        "grow with it");
  if (loader.start_share > kStartMatters && answer.verdict->bound != meter::Bound::handoff &&
      !loader.facts.persistent_workers && loader.facts.num_workers > 0 && loader.facts.kind == LoaderKind::torch)
    answer.advice.push_back(fmt::format("persistent_workers=True{}: starting workers each epoch takes {} of the time",
                                        at_place(loader), percent_text(loader.start_share)));
  advise_device(answer, loader);
  note_epochs(answer, loader);
  note_slow_samples(answer, loader);
  note_spinners(answer, loader);
  if (offer.worker_bytes_per_s > kGrowthMatters)
    answer.notes.push_back(fmt::format(
        "each worker's own memory grows steadily, by {} an hour: a leak, or objects of the data set that are "
        "copied as they are touched (keep arrays, not lists)",
        format_bytes(static_cast<std::uint64_t>(offer.worker_bytes_per_s * 3600))));
  if (answer.slowest_rank >= 0)
    answer.notes.push_back(
        fmt::format("the figures are of rank {} alone, which waits most for its own loader; the job has "
                    "{} ranks{}",
                    answer.slowest_rank, answer.ranks,
                    is_loader_bound(*answer.verdict) ? ", and they wait for it where they step together" : ""));
}

}  // namespace stoker::measure
