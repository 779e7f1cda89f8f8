#include "stoker/measure/metrics.h"

#include <utility>

#include <fmt/format.h>

#include "stoker/base/version.h"

namespace stoker::measure {
namespace {

constexpr std::size_t kLongestRequest = 8192;

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

class Writer {
 public:
  explicit Writer(MetricsFormat format) : open_(format == MetricsFormat::openmetrics) {}

  // `name` as OpenMetrics has it: without _total and _info.
  void family(std::string_view name, std::string_view type, std::string_view unit, std::string_view help) {
    name_ = name;
    const bool is_info = type == "info", is_counter = type == "counter";
    suffix_ = is_info ? "_info" : is_counter ? "_total" : "";
    const std::string declared = open_ ? name_ : name_ + suffix_;  // 0.0.4 declares what it then writes
    out_ += fmt::format("# TYPE {} {}\n", declared, is_info && !open_ ? "gauge" : type);
    if (open_ && !unit.empty()) out_ += fmt::format("# UNIT {} {}\n", declared, unit);
    out_ += fmt::format("# HELP {} {}\n", declared, help);
  }
  void value(double value, std::string_view labels = {}) { line(suffix_, labels, value); }
  void histogram(const StepHistogram& steps, std::string_view labels) {
    for (std::size_t i = 0; i < steps.up_to.size(); ++i) {
      const double bound = StepHistogram::kBounds[i];
      const std::string text =
          bound >= 1 && bound == static_cast<int>(bound) ? fmt::format("{:.1f}", bound) : fmt::format("{}", bound);
      line("_bucket", fmt::format("{},le=\"{}\"", labels, text), static_cast<double>(steps.up_to[i]));
    }
    line("_bucket", fmt::format("{},le=\"+Inf\"", labels), static_cast<double>(steps.count));
    line("_count", labels, static_cast<double>(steps.count));
    line("_sum", labels, steps.sum_s);
  }
  std::string finish() {
    if (open_) out_ += "# EOF\n";
    return std::move(out_);
  }

 private:
  void line(std::string_view suffix, std::string_view labels, double value) {
    out_ += fmt::format("{}{}{} {}\n", name_, suffix, labels.empty() ? "" : fmt::format("{{{}}}", labels), value);
  }

  bool open_;
  std::string name_, suffix_, out_;
};

std::string labels_of(const Live::Role& role) {
  return fmt::format("role=\"{}\",rank=\"{}\"", role.evaluation ? "val" : "train", role.rank);
}

}  // namespace

std::string metrics_text(const Live& live, const HostFacts& host, MetricsFormat format) {
  Writer out(format);
  const auto each = [&](const auto& write) {
    for (const auto& [role, sums] : live.sums()) write(labels_of(role), sums);
  };
  out.family("stoker_build", "info", "", "The program that measures.");
  out.value(1, fmt::format("version=\"{}\"", kVersion));
  out.family("stoker_step_seconds", "histogram", "seconds", "From asking for a batch to asking for the next one.");
  each([&](const std::string& labels, const LiveSums& sums) { out.histogram(sums.histogram, labels); });
  out.family("stoker_samples", "counter", "", "Samples of finished steps.");
  each([&](const std::string& labels, const LiveSums& sums) {
    out.value(static_cast<double>(sums.steps.samples), labels);
  });
  out.family("stoker_stall_seconds", "counter", "seconds", "Waiting for a batch, by what the batch waited for.");
  each([&](const std::string& labels, const LiveSums& sums) {
    const meter::WaitSplit split = sums.steps.wait.split();
    out.value(seconds(split.fetch_ns), labels + ",stage=\"fetch\"");
    out.value(seconds(split.prep_ns), labels + ",stage=\"prep\"");
    out.value(seconds(split.handoff_ns), labels + ",stage=\"handoff\"");
  });
  out.family("stoker_compute_seconds", "counter", "seconds", "From a batch until the loop asks for the next one.");
  each([&](const std::string& labels, const LiveSums& sums) { out.value(seconds(sums.steps.compute_ns), labels); });
  bool copies_known = false;
  each([&](const std::string&, const LiveSums& sums) { copies_known = copies_known || sums.steps.h2d_steps > 0; });
  if (copies_known) {
    out.family("stoker_h2d_seconds", "counter", "seconds", "Copies to the device that nothing hid.");
    each([&](const std::string& labels, const LiveSums& sums) {
      if (sums.steps.h2d_steps > 0) out.value(seconds(sums.steps.h2d_ns), labels);
    });
  }
  bool has_store = false;
  each([&](const std::string&, const LiveSums& sums) { has_store = has_store || sums.steps.store.is_any(); });
  if (has_store) {
    const auto counter = [&](std::string_view name, std::string_view unit, std::string_view help,
                             std::uint64_t StoreUse::*count) {
      out.family(name, "counter", unit, help);
      each([&](const std::string& labels, const LiveSums& sums) {
        out.value(static_cast<double>(sums.steps.store.*count), labels);
      });
    };
    counter("stoker_store_requests", "", "Requests that stoker.Loader sent to stores.", &StoreUse::requests);
    counter("stoker_store_retries", "", "Requests to stores that were sent again.", &StoreUse::retries);
    counter("stoker_store_doubled", "", "Requests that were slow to be answered, and were sent a second time.",
            &StoreUse::doubled);
    counter("stoker_store_read_bytes", "bytes", "What stores sent.", &StoreUse::bytes);
    counter("stoker_cache_hits", "", "Reads that the disk cache answered.", &StoreUse::cache_hits);
    counter("stoker_cache_misses", "", "Reads that the disk cache could have answered, and a store did.",
            &StoreUse::cache_misses);
  }
  out.family("stoker_queue_batches", "gauge", "batches", "Finished batches that lay waiting, over half a minute.");
  out.value(live.ready());
  if (host.disk_read_bytes && host.cache_read_bytes) {
    out.family("stoker_read_bytes", "counter", "bytes", "What the job's processes have read, by where it came from.");
    out.value(static_cast<double>(*host.disk_read_bytes), "tier=\"disk\"");
    out.value(static_cast<double>(*host.cache_read_bytes), "tier=\"page_cache\"");
  }
  if (!host.accelerators.empty()) {
    out.family("stoker_accelerator_utilization_ratio", "gauge", "ratio", "Share of the time in which a kernel ran.");
    for (std::size_t i = 0; i < host.accelerators.size(); ++i) {
      if (host.accelerators[i].busy) out.value(*host.accelerators[i].busy, fmt::format("accelerator=\"{}\"", i));
    }
  }
  out.family("stoker_memory_bytes", "gauge", "bytes",
             "job: PSS of its processes; workers: what only they have; limit and available: of the machine or cgroup.");
  const auto memory = [&](std::string_view kind, std::optional<std::uint64_t> bytes) {
    if (bytes && *bytes > 0) out.value(static_cast<double>(*bytes), fmt::format("kind=\"{}\"", kind));
  };
  memory("job", host.pss_bytes);
  memory("job_peak", host.pss_peak_bytes);
  memory("workers", host.worker_uss_bytes);
  memory("limit", host.memory_limit_bytes);
  memory("available", host.memory_available_bytes);
  memory("shm", host.shm_used_peak_bytes);
  return out.finish();
}

std::string reply_to(const std::string& request, const std::string& openmetrics, const std::string& text) {
  const std::string line = request.substr(0, request.find("\r\n"));
  const std::size_t first = line.find(' '), second = line.find(' ', first == std::string::npos ? first : first + 1);
  std::string_view status = "200 OK", type = "text/plain; charset=utf-8";
  std::string body;
  const std::string verb = line.substr(0, first);
  if (first == std::string::npos || second == std::string::npos || line.compare(second + 1, 5, "HTTP/") != 0) {
    status = "400 Bad Request", body = "this is no HTTP request\n";
  } else if (verb != "GET" && verb != "HEAD") {
    status = "405 Method Not Allowed", body = "only GET is answered here\n";
  } else {
    std::string path = line.substr(first + 1, second - first - 1);
    path = path.substr(0, path.find('?'));
    if (path == "/metrics") {
      const bool open = request.find("application/openmetrics-text") != std::string::npos;
      type = open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                  : "text/plain; version=0.0.4; charset=utf-8";
      body = open ? openmetrics : text;
    } else if (path == "/") {
      body = "stoker measure: the figures are at /metrics\n";
    } else {
      status = "404 Not Found", body = "the figures are at /metrics\n";
    }
  }
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n{}", status,
                     type, body.size(), status.starts_with("405") ? "Allow: GET, HEAD\r\n" : "",
                     verb == "HEAD" ? std::string() : body);
}

MetricsServer::MetricsServer(std::uint16_t port) : listener_(port) {
  const os::NoSignals none;  // they are for the thread that runs the job
  thread_ = std::thread([this] { serve(); });
}

MetricsServer::~MetricsServer() {
  listener_.wake();
  thread_.join();
}

void MetricsServer::publish(std::string openmetrics, std::string text) {
  const std::lock_guard lock(mutex_);
  openmetrics_ = std::move(openmetrics);
  text_ = std::move(text);
}

void MetricsServer::serve() {
  while (const os::Fd visitor = listener_.next(std::chrono::seconds(1))) {
    const std::string request = os::hear(visitor.get(), "\r\n\r\n", kLongestRequest);
    if (request.empty()) continue;
    std::string openmetrics, text;
    {
      const std::lock_guard lock(mutex_);
      openmetrics = openmetrics_, text = text_;
    }
    os::tell(visitor.get(), reply_to(request, openmetrics, text));
  }
}

}  // namespace stoker::measure
