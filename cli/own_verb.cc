#include "own_verb.h"

#include <filesystem>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/os/isolated.h"

#include "interrupt.h"

namespace stoker::cli {

std::string own_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "stoker" : path.string();
}

VerbAnswer run_own_verb(const std::vector<std::string>& words, const std::function<void(std::string_view)>& line,
                        const std::map<std::string, std::string>& environment) {
  std::vector<std::string> command = {own_program()};
  command.insert(command.end(), words.begin(), words.end());
  command.emplace_back("--json");
  std::map<std::string, std::string> variables = environment;
  variables["STOKER_NO_PROGRESS"] = "1";
  os::Isolated child(command, variables);
  std::string out, err, last;
  const auto use = [&](os::Stream stream, std::string_view text) {
    if (stream == os::Stream::out) out += text;
    if (stream != os::Stream::err) return;
    err += text;
    for (const char c : text) {
      if (c == '\n') {
        line(std::exchange(last, {}));
      } else {
        last += c;
      }
    }
  };
  while (!child.ended()) {
    if (interrupted()) throw Error(ErrorKind::unavailable, "interrupted");
    child.listen(std::chrono::milliseconds(100), use);
    line("");
  }
  child.listen(std::chrono::milliseconds(0), use);
  VerbAnswer answer;
  answer.code = child.ended()->code;
  answer.json = Json::parse_or_null(out);
  // A verb that fails says why on stderr too.
  if (const Json* const schema = answer.json.is_object() ? answer.json.find("schema") : nullptr;
      schema != nullptr && schema != answer.json.end() && schema->is_string() && schema->text() == "stoker.error/1") {
    answer.json = Json();
  }
  if (answer.json.is_null()) answer.error = err;
  return answer;
}

}  // namespace stoker::cli
