// A regular expression from the command line. RE2 matches it in time linear in the text, so that no expression can
// hang the program or overflow its stack. Immutable: any thread may search.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace re2 {
class RE2;
}

namespace stoker::measure {

class UserRegex {
 public:
  // RE2's syntax, and (?<name>...) beside (?P<name>...). `option` is the option that holds the text, for messages.
  // Throws Error(usage) for a text that is no regular expression, uses syntax that RE2 lacks (look-ahead, look-behind,
  // back-references), or names two groups alike.
  UserRegex(const std::string& text, std::string_view option);

  std::size_t group_count() const noexcept { return group_count_; }
  // Each named group with its number, in the order of the text.
  const std::vector<std::pair<std::string, std::size_t>>& names() const noexcept { return names_; }

  // What the groups of the first match hold: [0] is the whole match, a group that took no part is none. The views point
  // into `line`. Empty: no match. The expression and the line are taken as bytes.
  std::vector<std::optional<std::string_view>> search(std::string_view line) const;

 private:
  std::shared_ptr<const re2::RE2> regex_;
  std::size_t group_count_ = 0;
  std::vector<std::pair<std::string, std::size_t>> names_;
};

}  // namespace stoker::measure
