#include "stoker/tune/model_trace.h"

#include <chrono>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/os/isolated.h"

namespace stoker::tune {

Json trace_model(const std::string& python, const TraceWishes& wishes) {
  using namespace std::chrono_literals;
  std::vector<std::string> command = {python, "-m", "stoker.model_memory", wishes.model, "--amp", wishes.amp};
  if (!wishes.optimizer.empty()) command.insert(command.end(), {"--optimizer", wishes.optimizer});
  if (wishes.checkpointing) command.emplace_back("--checkpointing");
  os::Isolated child(command, {});
  std::string out, err;
  const auto hear = [&](os::Stream stream, std::string_view text) {
    if (stream == os::Stream::out) out += text;
    if (stream == os::Stream::err) err += text;
  };
  const auto began = std::chrono::steady_clock::now();
  while (!child.ended() && std::chrono::steady_clock::now() - began < 10min) child.listen(100ms, hear);
  child.listen(10ms, hear);
  const std::size_t line = out.find('{');  // libraries may print before it
  Json json = Json::parse_or_null(line == std::string::npos ? "" : out.substr(line));
  if (json.is_object() && json["error"].is_string())
    throw Error(ErrorKind::usage, json["error"].text(), json["hint"].is_string() ? json["hint"].text() : "");
  if (!json.is_object()) {
    const std::size_t end = err.find_last_not_of('\n');
    const std::size_t begin = end == std::string::npos ? 0 : err.rfind('\n', end) + 1;
    throw Error(ErrorKind::usage,
                fmt::format("`{}` cannot trace `{}`: {}", python, wishes.model,
                            end == std::string::npos ? "it answered nothing" : err.substr(begin, end + 1 - begin)),
                format_text("choose an interpreter that has torch and the package stoker: {}",
                            option("python", "/path/to/python3")));
  }
  return json;
}

}  // namespace stoker::tune
