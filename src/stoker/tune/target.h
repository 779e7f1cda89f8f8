// What a search runs: our own loader, a function of a Python file, or any command; and how it becomes the command of
// one trial. Plain values, written to config.json and read from it. One thread.
#pragma once

#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/tune/knobs.h"
#include "stoker/tune/trial.h"

namespace stoker::tune {

inline constexpr int kBatchSize = 32;  // of our loader, where it is no knob

struct Target {
  std::string address = {};               // data: of our loader, or for the function; may be empty
  std::string function = {};              // module:function or file.py:function; or
  std::vector<std::string> command = {};  // words with {knob}; neither: our loader
  std::string python = {};                // the interpreter of the function
  std::vector<std::string> passed = {};   // our loader: flags of `stoker load`
  Point settings = {};                    // the function: what it is given beside the knobs
  std::string template_file = {}, config_file = {};
  std::vector<std::string> config_keys = {};  // knobs that are dotted keys of the file

  bool is_ours() const { return command.empty() && function.empty(); }
  std::string text() const;
};

// Into config.json, and back. Throws Error(corrupt).
void write_target(const Target& target, Json& config);
Target read_target(const Json& config);
Grid read_grid(const Json& config);
// Where the steps of a trial are seen: `steps_from` of the config, or what suits the target. Throws Error(usage).
StepsFrom steps_from(const Json& config, const Target& target);

// "batch_size=32,64 num_workers=0,4": one word or several. Throws Error(usage).
void add_knobs(Grid& grid, const std::string& text);
// What is tuned of our loader where nobody says.
void add_loader_knobs(Grid& grid, int cores);
// Every knob must get somewhere: into a word of the command, its template or its config file. Reads the template.
// Throws Error(usage).
void check_command_knobs(const Grid& grid, const Target& target);
// Words of the command that look like knobs and are none: the job will get them as they are.
std::vector<std::string> notes_of_braces(const Target& target, const Grid& grid);

// The command of one trial. Files of the trial go to `folder`. `program` is `stoker`, for our own loader.
std::vector<std::string> command_for(const Target& target, const Point& point, const std::string& folder,
                                     const Json& config, const std::string& program);

// A knob's word as what Python and JSON call it: 32, 0.5, true, null, "bf16".
Json value_of(const std::string& word);

}  // namespace stoker::tune
