// A running job's figures for monitoring systems: OpenMetrics text, and a port on this machine that serves it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "stoker/measure/host.h"
#include "stoker/measure/live.h"
#include "stoker/os/listener.h"

namespace stoker::measure {

// OpenMetrics 1.0, or the older text format 0.0.4. No paths and no process ids: labels stay few.
enum class MetricsFormat : std::uint8_t { openmetrics, text };
std::string metrics_text(const Live& live, const HostFacts& host, MetricsFormat format);

// The reply to one HTTP request, whole. Pure.
std::string reply_to(const std::string& request, const std::string& openmetrics, const std::string& text);

// Serves /metrics on 127.0.0.1 from a thread of its own until it is destroyed. publish() may be called from any thread.
class MetricsServer {
 public:
  explicit MetricsServer(std::uint16_t port);  // 0: any that is free. Throws Error.
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  std::uint16_t port() const noexcept { return listener_.port(); }
  void publish(std::string openmetrics, std::string text);

 private:
  void serve();

  os::Listener listener_;
  std::mutex mutex_;
  std::string openmetrics_ = "# EOF\n", text_;
  std::thread thread_;
};

}  // namespace stoker::measure
