// The verbs of the program: one file each, each with its table of flags.
#pragma once

#include <string>
#include <vector>

#include "flags.h"

namespace stoker::cli {

const Verb& check_verb();
const Verb& completions_verb();
const Verb& demo_verb();
const Verb& doctor_verb();
const Verb& inspect_verb();
const Verb& load_verb();
const Verb& measure_verb();
const Verb& pack_verb();
const Verb& plan_verb();
const Verb& prepare_verb();
const Verb& report_verb();
const Verb& run_verb();
const Verb& stage_verb();
const Verb& tune_verb();

// In the order of the help.
const std::vector<const Verb*>& all_verbs();

// What `stoker --version` says of sources and volumes.
std::string sources_version();
std::string volumes_version();
// What `stoker --version` says of DICOM: "dicom (GDCM 3.0.21)", or how to build with it.
std::string dicom_version();
// The worker process of `prepare dicom`. Not listed: people do not run it.
inline constexpr const char* kDicomWorker = "dicom-worker";
int run_dicom_worker(const std::vector<std::string>& words);

}  // namespace stoker::cli
