// The command of a training job with one of its knobs changed. Pure; from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::plan {

// Changes the flag that sets `knob` ("num_workers": -j 0, --workers 0, --num-workers=0, data.num_workers=0) from `now`
// to `value`. None where no word, or more than one, sets it to `now`: then the job sets it elsewhere.
std::optional<std::vector<std::string>> with_knob(const std::vector<std::string>& command, std::string_view knob,
                                                  std::string_view now, std::string_view value);

}  // namespace stoker::plan
