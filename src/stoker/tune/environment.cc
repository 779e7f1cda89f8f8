#include "stoker/tune/environment.h"

#include <fstream>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"
#include "stoker/base/version.h"
#include "stoker/measure/accelerator.h"
#include "stoker/os/cpu.h"
#include "stoker/os/isolated.h"
#include "stoker/os/memory.h"

namespace stoker::tune {
namespace {

// torch's versions stand in a file of its own, so that nothing has to be imported, which takes seconds.
constexpr const char* kLook = R"(
import importlib.util, json, os, runpy, sys
found = {}
spec = importlib.util.find_spec("torch")
for folder in (spec.submodule_search_locations or []) if spec else []:
    file = os.path.join(folder, "version.py")
    if os.path.exists(file):
        found = runpy.run_path(file)
print(json.dumps({"python": sys.version.split()[0], "torch": found.get("__version__"), "cuda": found.get("cuda"),
                  "hip": found.get("hip"), "stoker": importlib.util.find_spec("stoker") is not None}))
)";

constexpr std::size_t kMostAnswer = 1 << 20;

std::optional<std::string> first_line(const char* file) {
  std::ifstream in(file);
  std::string line;
  return in && std::getline(in, line) && !line.empty() ? std::optional(line) : std::nullopt;
}

std::optional<std::string> cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return std::nullopt;
}

std::optional<std::string> version_at(const Json& json, const char* key) {
  return json[key].is_string() ? std::optional(json[key].text()) : std::nullopt;
}

std::string why_no_answer(const std::string& out, const std::string& err) {
  if (out.size() + err.size() >= kMostAnswer) return "it writes without end";
  const std::size_t end = err.find_last_not_of('\n');
  if (end == std::string::npos) return out.empty() ? "it answered nothing" : "it answered something else";
  const std::size_t before = err.rfind('\n', end);  // the last line of a traceback says what happened
  return err.substr(before + 1, end - before);
}

}  // namespace

PythonFacts look_at_python(const std::string& python, const std::function<bool()>& interrupted) {
  using namespace std::chrono_literals;
  os::Isolated child({python, "-c", kLook}, {});
  std::string out, err;
  const auto hear = [&](os::Stream stream, std::string_view text) {
    if (stream == os::Stream::out) out += text;
    if (stream == os::Stream::err) err += text;
  };
  const auto began = std::chrono::steady_clock::now();
  while (!child.ended() && std::chrono::steady_clock::now() - began < 60s && out.size() + err.size() < kMostAnswer) {
    if (interrupted && interrupted()) throw Error(ErrorKind::unavailable, "interrupted");
    child.listen(100ms, hear);
  }
  child.listen(10ms, hear);
  const auto json = Json::parse_or_null(out);
  if (!json.is_object() || !json.contains("stoker")) {
    throw Error(
        ErrorKind::usage, fmt::format("`{}` does not work as a Python: {}", python, why_no_answer(out, err)),
        format_text("choose an interpreter of version 3.10 or later: {}", option("python", "/path/to/python3")));
  }
  return {.torch = version_at(json, "torch"),
          .cuda = version_at(json, "cuda"),
          .hip = version_at(json, "hip"),
          .version = json.at("python").get<std::string>(),
          .has_stoker = json.at("stoker").get<bool>()};
}

Environment look_at_environment(const PythonFacts* python) {
  Environment environment{.driver = first_line("/sys/module/nvidia/version"), .cpu = cpu_name()};
  if (!environment.driver) environment.driver = first_line("/sys/module/amdgpu/version");
  if (const auto devices = measure::Accelerators().read(); !devices.empty())
    environment.device_name = devices.front().name;
  environment.cores = os::effective_cores().available;
  environment.memory_bytes = os::memory_limit().bytes;
  environment.stoker = kVersion;
  if (python == nullptr) return environment;
  environment.torch = python->torch, environment.cuda = python->cuda, environment.hip = python->hip;
  if (!python->version.empty()) environment.python = python->version;
  return environment;
}

}  // namespace stoker::tune
