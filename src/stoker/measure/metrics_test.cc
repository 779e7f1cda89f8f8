#include "stoker/measure/metrics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stoker::measure {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// `steps` steps of a loader without workers, each 30 ms for its batch (20 of them computing) and 12 ms of training.
void train(Job& job, int from, int steps) {
  if (from == 0) {
    job.add(1, R"({"k":"loader","i":0,"type":"DataLoader","num_workers":0,"place":{"name":"train_loader"}})");
    job.add(1, R"({"k":"iter","i":0,"n":0,"t0":0,"t1":0,"workers":[],"seed":1})");
  }
  for (int i = from; i < from + steps; ++i) {
    const std::int64_t at = i * 42 * kMs;
    job.add(1, fmt::format(R"({{"k":"next","n":0,"b":{},"t0":{},"t1":{},"g":1,"s":{},"c":{},"e":{},"samples":8,)"
                           R"("cpu":{},"delay":0,"helpers":0}})",
                           i, at, at + 30 * kMs, at, at + 30 * kMs, at + 30 * kMs, 20 * kMs));
  }
  job.settle(true);
}

TEST(Live, CountsEachStepOnceAndOnlyWhenItIsOver) {
  Job job;
  Live live;
  train(job, 0, 11);
  live.update(job, 1);
  live.update(job, 2);
  EXPECT_EQ(live.training().steps, 10u);  // the eleventh goes on
  train(job, 11, 5);
  live.update(job, 3);
  EXPECT_EQ(live.training().steps, 15u);
  EXPECT_EQ(live.training().wait.prep_ns, 15 * 20 * kMs);
  EXPECT_EQ(live.training().wait.fetch_ns, 15 * 10 * kMs);
  EXPECT_EQ(live.training().compute_ns, 15 * 12 * kMs);
  const StepHistogram& histogram = live.sums().begin()->second.histogram;
  EXPECT_EQ(histogram.count, 15u);
  EXPECT_EQ(histogram.up_to[4], 0u);  // 25 ms
  EXPECT_EQ(histogram.up_to[5], 15u);
}

TEST(Live, RemembersTheLastHalfMinute) {
  Job job;
  Live live;
  for (int second = 0; second < 60; ++second) {
    train(job, 10 * second, 10);
    live.update(job, second * 1000 * kMs);
  }
  EXPECT_EQ(live.training().steps, 599u);
  EXPECT_NEAR(static_cast<double>(live.recent().steps), 300, 20);
  EXPECT_EQ(live.recent().wait.prep_ns, static_cast<std::int64_t>(live.recent().steps) * 20 * kMs);
}

TEST(Metrics, SaysTheSameInBothFormats) {
  Job job;
  Live live;
  train(job, 0, 11);
  live.update(job, 1);
  HostFacts host;
  host.disk_read_bytes = 5000;
  host.cache_read_bytes = 2000;
  host.accelerators = {{"Fake", 0.37, {}, {}}};
  host.pss_bytes = 4096;
  const std::string open = metrics_text(live, host, MetricsFormat::openmetrics),
                    text = metrics_text(live, host, MetricsFormat::text);
  for (const char* line : {"stoker_samples_total{role=\"train\",rank=\"0\"} 80\n",
                           "stoker_stall_seconds_total{role=\"train\",rank=\"0\",stage=\"prep\"} 0.2\n",
                           "stoker_step_seconds_bucket{role=\"train\",rank=\"0\",le=\"0.05\"} 10\n",
                           "stoker_read_bytes_total{tier=\"disk\"} 5000\n", "stoker_memory_bytes{kind=\"job\"} 4096\n",
                           "stoker_accelerator_utilization_ratio{accelerator=\"0\"} 0.37\n"}) {
    EXPECT_NE(open.find(line), std::string::npos) << line << open;
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  EXPECT_TRUE(open.ends_with("# EOF\n"));
  EXPECT_NE(open.find("# TYPE stoker_samples counter\n"), std::string::npos);
  EXPECT_NE(text.find("# TYPE stoker_samples_total counter\n"), std::string::npos);
  EXPECT_EQ(open.find("h2d"), std::string::npos);  // no device told
}

TEST(Metrics, CountsWhatALoaderAskedOfStores) {
  Job job;
  Live live;
  job.add(1, R"({"k":"loader","i":0,"kind":"stoker","type":"Loader","num_workers":2})");
  job.add(1, R"({"k":"iter","i":0,"n":0,"t0":0,"t1":0,"workers":[],"seed":1})");
  for (int i = 0; i < 4; ++i) {
    job.add(
        1,
        fmt::format(
            R"({{"k":"next","n":0,"b":{},"t0":{},"t1":{},"g":1,"fetch":1,"prep":1,"samples":8,)"
            R"("store":{{"requests":5,"retries":1,"doubled":2,"store_bytes":100,"cache_hits":3,"cache_misses":5}}}})",
            i, i * 10 * kMs, i * 10 * kMs + kMs));
  }
  job.settle(true);
  live.update(job, 1);
  const std::string open = metrics_text(live, {}, MetricsFormat::openmetrics);
  for (const char* line : {"stoker_store_requests_total{role=\"train\",rank=\"0\"} 15\n",
                           "stoker_store_retries_total{role=\"train\",rank=\"0\"} 3\n",
                           "stoker_store_doubled_total{role=\"train\",rank=\"0\"} 6\n",
                           "stoker_store_read_bytes_total{role=\"train\",rank=\"0\"} 300\n",
                           "stoker_cache_hits_total{role=\"train\",rank=\"0\"} 9\n",
                           "stoker_cache_misses_total{role=\"train\",rank=\"0\"} 15\n"}) {
    EXPECT_NE(open.find(line), std::string::npos) << line << open;
  }
}

TEST(Metrics, AnswersRequestsAndRefusesOthersInAWord) {
  const auto reply = [](const std::string& request) { return reply_to(request + "\r\n\r\n", "open", "text"); };
  EXPECT_TRUE(reply("GET /metrics HTTP/1.1").ends_with("\r\n\r\ntext"));
  EXPECT_TRUE(reply("GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text; version=1.0.0").ends_with("open"));
  EXPECT_TRUE(reply("HEAD /metrics HTTP/1.0").ends_with("Content-Length: 4\r\nConnection: close\r\n\r\n"));
  EXPECT_TRUE(reply("GET /else HTTP/1.1").starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(reply("POST /metrics HTTP/1.1").starts_with("HTTP/1.1 405"));
  EXPECT_TRUE(reply("what?").starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(reply("GET /metrics").starts_with("HTTP/1.1 400"));
}

}  // namespace
}  // namespace stoker::measure
