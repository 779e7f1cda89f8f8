#include "stoker/tune/template.h"

namespace stoker::tune {

std::string fill_in(std::string_view text, const Point& point, const Point& more, std::set<std::string>& used) {
  std::string out;
  while (true) {
    const std::size_t open = text.find('{');
    out += text.substr(0, open);
    if (open == std::string_view::npos) return out;
    const std::size_t close = text.find('}', open);
    const std::string_view name =
        close == std::string_view::npos ? std::string_view() : text.substr(open + 1, close - open - 1);
    const Point* const of = point.contains(name) ? &point : more.contains(name) ? &more : nullptr;
    if (of == nullptr) {
      out += '{';
      text.remove_prefix(open + 1);
      continue;
    }
    out += of->find(name)->second;
    used.emplace(name);
    text.remove_prefix(close + 1);
  }
}

}  // namespace stoker::tune
