// A job that a test tells as the hook would, for the tests of what is collected and of what is said of it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stoker/measure/advice.h"
#include "stoker/measure/job.h"

namespace stoker::measure {

inline constexpr std::int64_t kMs = 1'000'000;

inline Offer machine(double cores) {
  Offer offer;
  offer.cores = cores;
  return offer;
}

// A job as the hook would tell it: time in milliseconds, one training process (pid 1) and its workers.
struct Teller {
  Job job;

  void loader(int number, const std::string& name, int workers = 0, int prefetch = 2, int pid = 1) {
    job.add(
        pid,
        fmt::format(
            R"({{"k":"loader","i":{},"place":{{"file":"/home/train.py","line":41,"name":"{}"}},"type":"DataLoader","batch_size":4,)"
            R"("num_workers":{},"prefetch_factor":{},"dataset":"Photos","start_method":"fork","collate":"default_collate"}})",
            number, name, workers, prefetch));
  }
  void iter(int loader, int number, std::int64_t from, std::int64_t to, const std::string& workers = "", int pid = 1) {
    job.add(pid,
            fmt::format(R"({{"k":"iter","i":{},"n":{},"t0":{},"t1":{},"workers":[{}],"seed":{},"rank":0,"world":1}})",
                        loader, number, from * kMs, to * kMs, workers, number + 100));
  }
  void worker(int pid, std::int64_t at) {
    job.add(pid, fmt::format(R"({{"k":"worker","id":0,"seed":1,"thread":{},"t":{}}})", pid, at * kMs));
  }
  std::string own;  // what the training thread made itself, for the next `next`
  // Samples from `start` to `collate`, `cpu` of it computing and `delay` without a core; collated by `end`,
  // `collate_delay` of it without a core. A `number` from 0 on: by the training thread, in that iteration.
  void batch(int pid, int number, int batch, std::int64_t start, std::int64_t collate, std::int64_t end,
             std::int64_t cpu, std::int64_t delay = 0, std::int64_t collate_delay = 0) {
    const std::string times =
        fmt::format(R"("s":{},"c":{},"e":{},"samples":4,"cpu":{},"delay":{},"collate_delay":{})", start * kMs,
                    collate * kMs, end * kMs, cpu * kMs, delay * kMs, collate_delay * kMs);
    if (number >= 0) {
      own = "," + times;
      return;
    }
    job.add(pid, fmt::format(R"({{"k":"batch","w":{},"b":{},"r":{},"d":{},{}}})", pid, batch, start * kMs, end * kMs,
                             times));
  }
  void next(int number, int batch, std::int64_t from, std::int64_t to, bool grad = true, int pid = 1) {
    job.add(pid, fmt::format(R"({{"k":"next","n":{},"b":{},"t0":{},"t1":{},"g":{}{}}})", number, batch, from * kMs,
                             to * kMs, grad ? 1 : 0, std::exchange(own, "")));
  }
  void end(int number, std::int64_t from, std::int64_t to, int pid = 1) {
    job.add(pid, fmt::format(R"({{"k":"end","n":{},"t0":{},"t1":{}}})", number, from * kMs, to * kMs));
  }
  const LoaderRun& run(int number = 0, int pid = 1) {
    job.settle(true);
    return job.loaders().at({pid, number});
  }
  // `steps` steps of a loader without workers: each takes these ms of fetch, prep and compute.
  void train(int loader, int number, std::int64_t at, int steps, std::int64_t fetch, std::int64_t prep,
             std::int64_t compute, bool grad = true, int pid = 1) {
    iter(loader, number, at, at, "", pid);
    for (int i = 0; i < steps; ++i) {
      batch(pid, number, i, at, at + fetch + prep, at + fetch + prep, prep);
      next(number, i, at, at + fetch + prep, grad, pid);
      at += fetch + prep + compute;
    }
    end(number, at, at, pid);
  }
};

}  // namespace stoker::measure
