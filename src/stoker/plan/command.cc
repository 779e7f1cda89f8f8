#include "stoker/plan/command.h"

#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/shell.h"
#include "stoker/base/text.h"
#include "stoker/plan/job_command.h"

namespace stoker::plan {
namespace {

bool is_pack(Change change) {
  return change == Change::pack_raw || change == Change::pack_encoded;
}

std::string pack_command(const std::string& data, Change change) {
  return fmt::format("stoker pack {} train.pack --kind {}", data, change == Change::pack_raw ? "raw" : "encoded");
}

// The copy keeps the name that the data has: `s3://bucket/imagenet/train` becomes `staged/train`.
std::string stage_command(const std::string& data) {
  std::string name = data;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  name = name.substr(name.rfind('/') + 1);  // npos + 1 is 0
  return fmt::format("stoker stage {} {}", shell_word(data), shell_word("staged/" + name));
}

// All other settings stay as they are, or the figures cannot be compared.
std::string load_command(const PlanRun& run, const Option& option, const std::vector<std::string>& flags) {
  std::string command = fmt::format("stoker load {}", run.address);
  const auto is_given = [](const std::vector<std::string>& words, const std::string& flag) {
    return std::find(words.begin(), words.end(), flag) != words.end();
  };
  for (const auto& [knob, setting] : run.current) {
    const std::string flag = flag_of(knob);
    if (knob == option.knob || knob == "shuffle" || is_given(flags, flag) || is_given(run.flags, flag)) continue;
    command += fmt::format(" {} {}", flag, setting);
  }
  if (run.shuffle) command += " --shuffle";
  for (const std::string& flag : run.flags) command += " " + shell_word(flag);
  for (const std::string& flag : flags) command += " " + flag;
  if (flags.empty() && !option.knob.empty()) command += fmt::format(" {} {}", flag_of(option.knob), option.value);
  if (option.kind == Change::faster_decode) command += " --decode fast";
  return command + " --bench-steps 50";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool has_knob = word.find('{') != std::string::npos;
    text += (text.empty() ? "" : " ") + (has_knob ? word : shell_word(word));
  }
  return text;
}

Command measure_command(const PlanRun& run, const Option& option) {
  constexpr std::string_view kMeasure = "stoker measure --steps 100 --stop -- ";
  const std::string job = run.command.empty() ? "python train.py" : joined(run.command);
  if (option.kind == Change::local_copy) {
    return {"stoker stage s3://BUCKET/PREFIX staged   # write where the data is; then train from staged", true};
  }
  if (is_pack(option.kind)) {
    return {pack_command("DATA", option.kind) + "   # write where the data is; then train from train.pack", true};
  }
  if (option.knob == "storage") {  // of our loader, which the job does not have yet
    return {fmt::format(
                "stoker load DATA --storage {0} --bench-steps 50   # write where the data is; then feed the job from "
                "stoker.Loader(DATA, storage=\"{0}\")",
                option.value),
            true};
  }
  if (option.knob.empty())
    return {fmt::format("{}{}   # first make this change: {}", kMeasure, job, option.name), true};
  if (job.find("{" + option.knob + "}") != std::string::npos)
    return {fmt::format("stoker tune --grid {}={} -- {}", option.knob, option.value, job)};
  if (const auto now = run.current.find(option.knob); now != run.current.end()) {
    if (const auto changed = with_knob(run.command, option.knob, now->second, option.value))
      return {fmt::format("{}{}", kMeasure, joined(*changed))};
  }
  return {fmt::format("{}{}   # first set {}={} {}: stoker knows no flag of this command for it", kMeasure, job,
                      option.knob, option.value, run.place.empty() ? "in the program" : "at " + run.place),
          true};
}

}  // namespace

Command command_for(const PlanRun& run, const Option& option, const std::vector<std::string>& flags) {
  const std::string data = run.address.empty() ? run.data : run.address;
  if (is_pack(option.kind) && !data.empty()) return {pack_command(data, option.kind)};
  if (option.kind == Change::local_copy && !data.empty()) return {stage_command(data)};
  if (!run.address.empty()) return {load_command(run, option, flags)};
  if (!run.function.empty() && !option.knob.empty()) {
    return {fmt::format("stoker tune {}{}{} --grid {}={}", run.function, run.data.empty() ? "" : " ", run.data,
                        option.knob, option.value)};
  }
  return measure_command(run, option);
}

}  // namespace stoker::plan
