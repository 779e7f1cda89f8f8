// What was measured in this process: records to an answer.
#include "stoker/base/json.h"
#include "stoker/base/version.h"
#include "stoker/measure/answer.h"
#include "stoker/measure/record_file.h"
#include "stoker/os/cpu.h"
#include "stoker/os/process.h"

#include "bindings/bindings.h"

namespace stoker::bindings {
namespace {

std::string measured(const std::string& folder) {
  return wait_for([&](const std::function<bool()>&) {
    measure::Job job;
    measure::RecordFolder records(folder);
    records.poll([&](int pid, std::string_view line) { job.add(pid, line); });
    job.settle(true);
    measure::Offer offer;
    const os::Cores cores = os::effective_cores();
    offer.cores = cores.available;
    offer.cores_limited_by = cores.limited_by;
    offer.memory_bytes = os::available_memory().value_or(0);
    Json json = {{"schema", "stoker.measure/1"}, {"stoker_version", kVersion}};
    json.update(measure::to_json(measure::answer(job, offer)));
    return json.dump();
  });
}

}  // namespace

void bind_measure(nb::module_& module) {
  module.def("measured", &measured, nb::arg("folder"), "The answer from the records in a folder, as JSON.");
}

}  // namespace stoker::bindings
