// What a search runs: our own loader, a function of a Python file, or any command; and how it becomes the command of
// one trial (tune/run_config.h). Plain values. One thread.
#pragma once

#include <string>
#include <vector>

#include "stoker/base/text.h"
#include "stoker/tune/knobs.h"

namespace stoker::tune {

inline constexpr int kBatchSize = 32;  // of our loader, where it is no knob

// Where a job makes the DataLoader that is tuned.
struct LoaderPlace {
  std::string file = {}, name = {};
  int line = 0;
};

struct Target {
  std::string address = {};               // data: of our loader, or for the function; may be empty
  std::string function = {};              // module:function or file.py:function; or
  std::vector<std::string> command = {};  // words with {knob}; neither: our loader
  std::string python = {};                // the interpreter of the function
  std::vector<std::string> passed = {};   // our loader: flags of `stoker load`
  Point settings = {};                    // the function: what it is given beside the knobs
  std::string template_file = {}, config_file = {};
  std::vector<std::string> config_keys = {};  // knobs that are dotted keys of the file
  std::vector<std::string> source_keys = {};  // knobs that are literals of a Python file: "builder.py:cpu_max_workers"
  // Knobs that the hook puts into a DataLoader of the command, and where the job makes that; empty: not known yet.
  std::vector<std::string> loader_knobs = {};
  LoaderPlace loader = {};

  bool is_ours() const { return command.empty() && function.empty(); }
  bool needs_look() const { return !command.empty() && !loader_knobs.empty() && loader.file.empty(); }
  std::string text() const;
};

// "batch_size=32,64 num_workers=0,4": one word or several. Throws Error(usage).
void add_knobs(Grid& grid, const std::string& text);
// The knobs of our loader that are tuned by default.
void add_loader_knobs(Grid& grid, int cores);
// Every value is one that our loader takes. Throws Error(usage).
void check_loader_knobs(const Grid& grid);
// Every knob must get somewhere: into a word of the command, its template or its config file. Reads the template.
// Throws Error(usage).
void check_command_knobs(const Grid& grid, const Target& target);
// Knobs that no word of the command takes, and that are arguments of a DataLoader: the hook puts them in.
void take_loader_knobs(const Grid& grid, Target& target);
// The grid as the target can be searched: our loader gets knobs and a batch size where there are none (a workload has a
// batch size of its own), and what cannot be tuned is refused. Looks at the machine. Throws Error(usage).
void settle_grid(Grid& grid, Target& target, bool has_workload);
// Words of the command that look like knobs and are none: the job will get them as they are.
std::vector<Text> notes_of_braces(const Target& target, const Grid& grid);

}  // namespace stoker::tune
