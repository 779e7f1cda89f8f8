#include "pack_ray.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/os/child.h"

namespace stoker::cli {
namespace {

constexpr int kNoModule = 1;  // how Python ends without the package
constexpr int kInterrupted = 130;

// The flags as they were given, in the order of the table; `without`: these are for this machine alone.
std::vector<std::string> passed_on(const Arguments& arguments, const std::vector<std::string>& without) {
  std::vector<std::string> words;
  for (const Section& section : arguments.verb().sections) {
    for (const Flag& flag : section.flags) {
      if (!arguments.has(flag.name) || std::ranges::find(without, flag.name) != without.end()) continue;
      if (flag.value.empty()) {
        words.push_back(flag.name);
        continue;
      }
      for (const std::string& value : arguments.all(flag.name)) words.push_back(flag.name + "=" + value);
    }
  }
  return words;
}

}  // namespace

Section ray_flags() {
  return {"on a Ray cluster",
          {{"--ray", "ADDRESS", "",
            "make the parts as tasks of this cluster, and join them; auto is the one that runs here"},
           {"--ray-parts", "N", "", "how many tasks; without: one for each --ray-cpus CPUs of the cluster"},
           {"--ray-cpus", "N", "1", "CPUs of a task"},
           {"--python", "PROGRAM", "python3", "with --ray: the Python that has the packages stoker and ray"}}};
}

int run_pack_on_ray(const Arguments& arguments, const Face& face) {
  for (const char* flag : {"--part", "--join", "--dry-run"}) {
    if (arguments.has(flag))
      throw Error(ErrorKind::usage, fmt::format("`--ray` and `{}` exclude each other", flag),
                  "`--ray` makes all parts and joins them");
  }
  const std::string python = arguments.text("--python"), address = arguments.text("--ray");
  if (address.empty())
    throw Error(ErrorKind::usage, "`--ray` needs the address of a cluster", "--ray auto takes the one that runs here");
  std::vector<std::string> command = {python, "-m", "stoker.ray", arguments.operand(0), arguments.operand(1)};
  command.push_back("--address=" + address);
  if (arguments.has("--ray-parts")) command.push_back(fmt::format("--parts={}", arguments.count("--ray-parts", 1)));
  command.push_back(fmt::format("--num-cpus={}", arguments.number("--ray-cpus", 0)));
  if (face.json) command.emplace_back("--json");
  if (arguments.has("--quiet")) command.emplace_back("--quiet");
  for (std::string& word :
       passed_on(arguments, {"--ray", "--ray-parts", "--ray-cpus", "--python", "--json", "--quiet", "--color"}))
    command.push_back(std::move(word));
  os::SignalGate gate;
  os::Child child(command, {});
  std::optional<os::Ended> ended;
  bool stopped = false;
  while (!(ended = child.ended())) {
    const auto caught = gate.wait(std::chrono::milliseconds(200));
    if (!caught || caught->signal == SIGCHLD) continue;
    stopped = true;
    if (!caught->reached_group) child.send(caught->signal);
  }
  if (stopped) return kInterrupted;
  if (ended->code == kNoModule)
    throw Error(ErrorKind::not_found, fmt::format("`{} -m stoker.ray` did not run: what it said stands above", python),
                "it needs the packages stoker and ray: --python names another interpreter");
  return ended->code;
}

}  // namespace stoker::cli
