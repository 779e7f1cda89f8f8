#include <algorithm>
#include <memory>
#include <new>
#include <set>

#include <fmt/format.h>
#include <libdeflate.h>

#include "stoker/measure/answer.h"

namespace stoker::measure {
namespace {

class Trace {
 public:
  explicit Trace(std::int64_t origin_ns) : origin_(origin_ns) {}

  void name(int pid, int tid, std::string_view what, std::string_view text) {
    add(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":"{}"}}}})", what, pid, tid, text));
  }
  void span(int pid, int tid, std::string_view text, std::int64_t from, std::int64_t to, std::uint64_t batch) {
    if (to <= from) return;
    add(fmt::format(R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"batch":{}}}}})",
                    text, pid, tid, us(from), static_cast<double>(to - from) * 1e-3, batch));
  }
  void arrow(std::uint64_t id, int pid, int from_tid, std::int64_t from, int to_tid, std::int64_t to) {
    add(fmt::format(R"({{"ph":"s","name":"batch","cat":"batch","id":{},"pid":{},"tid":{},"ts":{:.3f}}})", id, pid,
                    from_tid, us(from)));
    add(fmt::format(R"({{"ph":"f","bp":"e","name":"batch","cat":"batch","id":{},"pid":{},"tid":{},"ts":{:.3f}}})", id,
                    pid, to_tid, us(to)));
  }
  void counter(int pid, std::string_view text, std::int64_t at, std::uint64_t value) {
    add(fmt::format(R"({{"ph":"C","name":"{}","pid":{},"ts":{:.3f},"args":{{"batches":{}}}}})", text, pid, us(at),
                    value));
  }
  std::string whole() && { return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + events_ + "\n]}\n"; }

 private:
  double us(std::int64_t ns) const { return static_cast<double>(ns - origin_) * 1e-3; }
  void add(const std::string& event) {
    if (!events_.empty()) events_ += ",\n";
    events_ += event;
  }

  std::int64_t origin_;
  std::string events_;
};

}  // namespace

std::string trace_json(const Job& job, std::size_t most_steps) {
  std::int64_t origin = INT64_MAX;
  for (const auto& [key, run] : job.loaders()) {
    for (const Step& step : run.steps) {
      origin = std::min(origin, step.asked_ns);
      if (step.made.started_ns > 0) origin = std::min(origin, step.made.started_ns);
    }
  }
  Trace trace(origin == INT64_MAX ? 0 : origin);
  std::set<int> training;
  std::set<std::pair<int, int>> workers;
  std::uint64_t arrows = 0;
  for (const auto& [key, run] : job.loaders()) {
    const int pid = run.pid;
    if (training.insert(pid).second) {
      trace.name(pid, 0, "process_name", fmt::format("rank {}", run.rank));
      trace.name(pid, 0, "thread_name", "training");
    }
    const std::size_t first = run.steps.size() > most_steps ? run.steps.size() - most_steps : 0;
    for (std::size_t i = first; i < run.steps.size(); ++i) {
      const Step& step = run.steps[i];
      trace.span(pid, 0, run.is_evaluation() ? "wait (val)" : "wait", step.asked_ns, step.got_ns, step.batch);
      trace.span(pid, 0, run.is_evaluation() ? "compute (val)" : "compute", step.got_ns, step.got_ns + step.compute_ns,
                 step.batch);
      if (run.facts.num_workers > 0 && run.facts.kind == LoaderKind::torch)
        trace.counter(pid, fmt::format("ready batches of loader {}", run.number), step.asked_ns, step.ready);
      const BatchTimes& made = step.made;
      if (made.started_ns == 0 || made.worker == 0) continue;
      if (workers.insert({pid, made.worker}).second)
        trace.name(pid, made.worker, "thread_name", fmt::format("worker {}", made.worker));
      trace.span(pid, made.worker, "samples", made.started_ns, made.collating_ns, step.batch);
      trace.span(pid, made.worker, "collate", made.collating_ns, made.ended_ns, step.batch);
      trace.arrow(++arrows, pid, made.worker, made.collating_ns, 0, step.got_ns);
    }
  }
  return std::move(trace).whole();
}

std::string gzipped(std::string_view text) {
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
      libdeflate_alloc_compressor(6), libdeflate_free_compressor);
  if (!compressor) throw std::bad_alloc();
  std::string out(libdeflate_gzip_compress_bound(compressor.get(), text.size()), '\0');
  out.resize(libdeflate_gzip_compress(compressor.get(), text.data(), text.size(), out.data(), out.size()));
  return out;
}

}  // namespace stoker::measure
