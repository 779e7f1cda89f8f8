#include "demo_telling.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"

#include "own_verb.h"

namespace stoker::cli {
namespace {

constexpr char kGlue = '\1';  // between a flag and its value: a space that no line ends at

}  // namespace

DemoFolder::DemoFolder(const Arguments& arguments) : keep_(arguments.has("--dir") || arguments.has("--keep")) {
  if (arguments.has("--dir")) {
    path_ = arguments.text("--dir");
    return;
  }
  temporary_.emplace("stoker-demo-");
  path_ = temporary_->path();
  if (keep_) temporary_->keep();
}

std::string wrapped(const std::string& text, std::string_view more, std::string_view indent) {
  constexpr std::size_t kWidth = 78;
  std::string out, line(indent);
  bool begun = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (begun && line.size() + 1 + word.size() + more.size() > kWidth) {
      out += line + std::string(more) + "\n";
      line = std::string(indent) + (more.empty() ? "" : "    ");
      begun = false;
    }
    line += (begun ? " " : "") + word;
    begun = true;
    at = end + 1;
  }
  return out + line + "\n";
}

std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

Telling::Telling(const Face& face, std::string folder, std::map<std::string, std::string> environment)
    : face_(face), folder_(std::move(folder)), environment_(std::move(environment)) {}

void Telling::tell(const std::string& text) const {
  if (!face_.json) answer(text);
}

void Telling::heading(const std::string& text) {
  tell(fmt::format("{}\n", face_.out.paint(Paint::bold, fmt::format("{}. {}", ++number_, text))));
}

void Telling::command(const std::vector<std::string>& words) const {
  std::string text = "$ stoker";
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (word.starts_with(folder_ + "/")) word = word.substr(folder_.size() + 1);
    const bool is_value = i > 1 && !word.starts_with("-") && words[i - 1].starts_with("--");
    text += (is_value ? kGlue : ' ') + word;
  }
  std::string lines = wrapped(text, " \\");
  std::replace(lines.begin(), lines.end(), kGlue, ' ');
  tell(lines);
}

Json Telling::verb(const std::vector<std::string>& words, const std::string& label,
                   const std::vector<std::string>& shown) const {
  command(shown.empty() ? words : shown);
  Bar bar(face_, label);
  std::uint64_t lines = 0;
  VerbAnswer answer = run_own_verb(
      words,
      [&](std::string_view line) {
        if (!line.empty()) ++lines;
        bar.update(lines, "lines");
      },
      environment_);
  bar.clear();
  if (answer.json.is_null()) {
    throw Error(ErrorKind::internal, fmt::format("`stoker {}` ended with code {}: {}", words[0], answer.code,
                                                 answer.error.empty() ? "nothing was said" : answer.error));
  }
  return answer.json;
}

std::string Telling::inside(std::string_view name) const {
  return fmt::format("{}/{}", folder_, name);
}

}  // namespace stoker::cli
