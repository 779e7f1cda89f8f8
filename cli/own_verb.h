// Another verb of this program, run in a process of its own: what it answers with --json. One thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "stoker/base/json.h"

namespace stoker::cli {

std::string own_program();  // the path of this binary

struct VerbAnswer {
  int code = 0;  // 0 or 1: the answer is there
  Json json = nullptr;
  std::string error;  // its stderr, where there is no answer
};

// `words` without --json: `{"pack", "data", "x.pack"}`. `line` gets each line of its stderr as it comes, and an empty
// one now and then. `environment` is added to ours. Ends it on Ctrl-C, and throws Error(unavailable, "interrupted").
VerbAnswer run_own_verb(const std::vector<std::string>& words, const std::function<void(std::string_view)>& line,
                        const std::map<std::string, std::string>& environment = {});

}  // namespace stoker::cli
