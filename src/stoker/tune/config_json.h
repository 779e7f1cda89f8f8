// config.json of a tuning run, to and from its struct. Reading refuses no shape: a run of others may have a file of
// that name. Pure; from any thread.
#pragma once

#include <string>

#include "stoker/base/json.h"
#include "stoker/tune/run_config.h"

namespace stoker::tune {

Json to_json(const RunConfig& config);
RunConfig parse_config(const Json& json);
// The config.json of a run of `stoker tune` in `folder`, to be resumed. Throws Error that names the file.
RunConfig read_config(const std::string& folder);

// A knob's word as what Python and JSON call it: 32, 0.5, true, null, "bf16".
Json value_of(const std::string& word);

}  // namespace stoker::tune
