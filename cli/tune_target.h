// What `stoker tune` runs: our own loader, a function of a Python file, or any command; and how it becomes the command
// of one trial. Plain values, written to config.json and read from it. One thread.
#pragma once

#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/tune/knobs.h"
#include "stoker/tune/trial.h"

#include "flags.h"

namespace stoker::cli {

inline constexpr int kBatchSize = 32;  // of our loader, where it is no knob

struct Target {
  std::string address;               // data: of our loader, or for the function; may be empty
  std::string function;              // module:function or file.py:function; or
  std::vector<std::string> command;  // words with {knob}; neither: our loader
  std::string python;                // the interpreter of the function
  std::vector<std::string> passed;   // our loader: flags of `stoker load`
  tune::Point settings;              // the function: what it is given beside the knobs
  std::string template_file, config_file;
  std::vector<std::string> config_keys;  // knobs that are dotted keys of the file

  bool is_ours() const { return command.empty() && function.empty(); }
  std::string text() const;
};

Target make_target(const Arguments& arguments);                    // throws Error(usage)
tune::Grid make_grid(const Arguments& arguments, Target& target);  // throws Error; the keys of --set go to the target
void write_target(const Target& target, Json& config);
Target read_target(const Json& config);
tune::Grid read_grid(const Json& config);

tune::StepsFrom steps_from(const Json& config, const Target& target);
// Files of the trial go to `folder`.
std::vector<std::string> command_for(const Target& target, const tune::Point& point, const std::string& folder,
                                     const Json& config);

// A knob's word as what Python and JSON call it: 32, 0.5, true, null, "bf16".
Json value_of(const std::string& word);

}  // namespace stoker::cli
