#include "stoker/tune/target.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/loader/option_table.h"
#include "stoker/os/cpu.h"
#include "stoker/os/read_file.h"
#include "stoker/tune/job_loader.h"
#include "stoker/tune/template.h"

namespace stoker::tune {
namespace {

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::string Target::text() const {
  if (is_ours()) return fmt::format("our loader on `{}`", address);
  if (!function.empty())
    return fmt::format("`{}`{}", function, address.empty() ? "" : fmt::format(" on `{}`", address));
  std::string out;
  for (const std::string& word : command) out += (out.empty() ? "" : " ") + word;
  return fmt::format("`{}`", out);
}

void add_knobs(Grid& grid, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {  // one word may hold several
    const std::size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
    if (end > at) grid.add(text.substr(at, end - at));
    at = end + 1;
  }
}

void add_loader_knobs(Grid& grid, int cores) {
  std::string workers = "num_workers=1";
  for (int count = 2; count <= 2 * cores; count *= 2) workers += fmt::format(",{}", count);
  grid.add(workers);
  grid.add("prefetch_factor=1,2,4");
  grid.add("batch_size=32,64,128");
}

void check_loader_knobs(const Grid& grid) {
  std::vector<std::string_view> names;
  for (const loader::Option& one : loader::option_table()) {
    if (one.is_knob) names.push_back(one.name);
  }
  for (const Knob& knob : grid.knobs()) {
    if (std::find(names.begin(), names.end(), knob.name) == names.end()) {
      const std::string near = nearest(knob.name, names.data(), names.size());
      throw Error(ErrorKind::usage, fmt::format("our loader has no knob `{}`", knob.name),
                  near.empty() ? fmt::format("its knobs are {}", fmt::join(names, ", "))
                               : fmt::format("did you mean `{}`?", near));
    }
    for (const std::string& value : knob.values) loader::check_value(loader::find_option(knob.name), value);
  }
}

void check_command_knobs(const Grid& grid, const Target& target) {
  std::set<std::string> used;
  const Point first = grid.point(0);
  const Point files = {{"config", ""}, {"template", ""}};
  for (const std::string& word : target.command) fill_in(word, first, files, used);
  for (const auto& [what, file] :
       {std::pair("config", target.config_file), std::pair("template", target.template_file)}) {
    if (file.empty() || used.contains(what)) continue;
    throw Error(ErrorKind::usage, fmt::format("nothing in the command takes the copy of `{}`", file),
                fmt::format("write `{{{}}}` where its path belongs", what));
  }
  if (!target.template_file.empty()) fill_in(os::read_text(target.template_file), first, {}, used);
  for (const Knob& knob : grid.knobs()) {
    if (used.contains(knob.name) || has(target.config_keys, knob.name) || has(target.loader_knobs, knob.name) ||
        has(target.source_keys, knob.name))
      continue;
    throw Error(ErrorKind::usage, fmt::format("nothing in the command takes `{}`", knob.name),
                fmt::format("write `{{{}}}` where its value belongs", knob.name));
  }
}

void take_loader_knobs(const Grid& grid, Target& target) {
  std::set<std::string> used;
  const Point first = grid.point(0);
  for (const std::string& word : target.command) fill_in(word, first, {}, used);
  if (!target.template_file.empty()) fill_in(os::read_text(target.template_file), first, {}, used);
  for (const Knob& knob : grid.knobs()) {
    const bool is_taken = used.contains(knob.name) || has(target.config_keys, knob.name);
    if (!is_taken && is_loader_argument(knob.name)) target.loader_knobs.push_back(knob.name);
  }
}

void settle_grid(Grid& grid, Target& target, bool has_workload) {
  if (target.is_ours()) {
    if (grid.knobs().empty()) add_loader_knobs(grid, os::effective_cores().whole());
    check_loader_knobs(grid);
    if (grid.find("batch_size") == nullptr && !has_workload)
      target.passed.insert(target.passed.end(), {"--batch-size", std::to_string(kBatchSize)});
    return;
  }
  if (grid.knobs().empty() && !target.command.empty()) return;  // what its DataLoader has decides
  if (grid.knobs().empty()) {
    throw Error(
        ErrorKind::usage, "there is no knob to tune",
        format_text("say which: {} {}", option("grid", "batch_size=32,64"), option("grid", "num_workers=0,4,8")));
  }
  for (const Knob& knob : grid.knobs()) {
    if (!target.settings.contains(knob.name)) continue;
    throw Error(ErrorKind::usage, fmt::format("`{}` is a knob and a setting at once", knob.name),
                "leave one of the two out");
  }
  if (target.command.empty()) return;
  take_loader_knobs(grid, target);
  check_command_knobs(grid, target);
}

std::vector<Text> notes_of_braces(const Target& target, const Grid& grid) {
  std::vector<Text> notes;
  for (const std::string& word : target.command) {
    if (word.size() < 3 || word.front() != '{' || word.back() != '}') continue;
    const std::string name = word.substr(1, word.size() - 2);
    const bool is_name =
        std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    const bool is_knob =
        std::any_of(grid.knobs().begin(), grid.knobs().end(), [&](const Knob& knob) { return knob.name == name; });
    if (!is_name || is_knob || name == "config" || name == "template" || name == "trial") continue;
    notes.push_back(format_text("`{}` matches no knob and is passed to the job unchanged; add `{}` to tune it", word,
                                option("grid", name + "=...")));
  }
  return notes;
}

}  // namespace stoker::tune
