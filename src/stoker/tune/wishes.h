// What a caller asks to be tuned, and the rules by which it becomes a target and a grid. Plain values; the functions
// look at files. One thread. Errors name the options, and each face spells them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/tune/knobs.h"
#include "stoker/tune/target.h"

namespace stoker::tune {

// Options of our loader and of its step that every trial gets as they are; some are for functions too.
std::span<const std::string_view> passed_options() noexcept;

struct TargetWishes {
  std::vector<std::string> operands = {};  // data; or a function and its data; or nothing, where there is a command
  std::vector<std::string> command = {};   // words with {knob}
  std::string python = {};                 // the interpreter of a function
  std::string template_file = {}, config_file = {};
  std::vector<std::pair<std::string, std::string>> options = {};  // of passed_options(): name and value
  std::vector<std::string> with = {};                             // what a function is given: "img_size=224"
};
// Throws Error(usage) where the wishes contradict each other, or an option is not for that target.
Target make_target(const TargetWishes& wishes);

struct GridWishes {
  std::vector<std::string> knobs = {};  // "batch_size=32,64"; again for each knob
  std::vector<std::string> files = {};  // the same as YAML or JSON
  // Dotted keys of the target's config file: "training.workers=1,4"; literals of its sources: "job.py:workers=1,4".
  std::vector<std::string> config_knobs = {};
  std::string shuffle = {};   // how our loader shuffles; empty: nothing is said
  bool has_workload = false;  // an emulated accelerator brings its batch size
};
// The dotted keys go to the target. Throws Error(usage) where the target cannot be tuned so.
Grid make_grid(const GridWishes& wishes, Target& target);

// path/to/file.py:name=VALUES: a literal of a Python file of the job.
bool names_literal(const std::string& text);
// package.module:function or path/to/file.py:function, and no file of that very name.
bool names_function(const std::string& text);

}  // namespace stoker::tune
