#include "stoker/measure/user_regex.h"

#include <algorithm>
#include <cstdint>

#include <re2/re2.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"

namespace stoker::measure {
namespace {

constexpr std::size_t kShownOfRegex = 200;  // characters of an expression that a message repeats
// Time is linear in the text, but each character costs what the expression is large.
constexpr std::size_t kLongestRegex = 4096, kMostGroups = 64;
constexpr std::int64_t kMostMemory = 1 << 20;

// What other engines have and RE2 has not, as it is written, and its name.
constexpr std::pair<std::string_view, std::string_view> kLacking[] = {
    {"(?=", "look-ahead"},   {"(?!", "look-ahead"},   {"(?<=", "look-behind"},
    {"(?<!", "look-behind"}, {"(?>", "atomic group"}, {"(?P=", "back-reference"}};

class Reader {
 public:
  Reader(const std::string& text, std::string_view option) : text_(text), option_(option) {}

  // The expression as RE2 writes it. Fills in `names`.
  std::string read(std::vector<std::pair<std::string, std::size_t>>& names) {
    std::string plain;
    std::size_t group = 0;
    if (text_.size() > kLongestRegex) fail(fmt::format("{} characters; the most are {}", text_.size(), kLongestRegex));
    for (std::size_t at = 0; at < text_.size();) {
      std::size_t taken = 1;
      const std::string_view rest = std::string_view(text_).substr(at);
      if (rest.front() == '\\') {
        if (rest.size() > 1 && rest[1] >= '1' && rest[1] <= '9') lacks(rest.substr(0, 2), "back-reference");
        if (rest.size() > 1 && rest[1] == 'k') lacks(rest.substr(0, 2), "back-reference");
        taken = std::min<std::size_t>(2, rest.size());
      } else if (rest.front() == '[') {
        taken = class_length(rest);
      } else if (rest.front() == '(') {
        for (const auto& [written, name] : kLacking) {
          if (rest.starts_with(written)) lacks(written, name);
        }
        const std::size_t skip = rest.starts_with("(?P<") ? 4 : rest.starts_with("(?<") ? 3 : 0;
        if (skip > 0 || !rest.starts_with("(?")) ++group;
        if (skip > 0) {
          const std::size_t end = rest.find('>', skip);
          if (end == std::string_view::npos) fail("a group whose name does not end");
          add_name(names, std::string(rest.substr(skip, end - skip)), group);
          plain += "(?P<" + names.back().first + ">";
          at += end + 1;
          continue;
        }
      }
      plain += rest.substr(0, taken);
      at += taken;
    }
    if (group > kMostGroups) fail(fmt::format("{} groups; the most are {}", group, kMostGroups));
    return plain;
  }

  std::string shown() const { return text_.size() <= kShownOfRegex ? text_ : as_utf8(text_, kShownOfRegex); }

 private:
  // Characters of the class that `rest` begins with: "[]a]", "[^]a]" and "[[:digit:]]" end where RE2 ends them.
  static std::size_t class_length(std::string_view rest) {
    std::size_t at = rest.starts_with("[^") ? 2 : 1;
    for (bool is_first = true; at < rest.size(); is_first = false) {
      if (rest[at] == ']' && !is_first) return at + 1;
      const std::size_t named = rest.substr(at).starts_with("[:") ? rest.find(":]", at + 2) : std::string_view::npos;
      at = named != std::string_view::npos ? named + 2 : at + (rest[at] == '\\' ? 2 : 1);
    }
    return rest.size();
  }

  void add_name(std::vector<std::pair<std::string, std::size_t>>& names, std::string name, std::size_t group) const {
    const bool is_word = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!is_word) fail(fmt::format("a group named `{}`: letters, digits and _ make a name", one_line(name)));
    if (std::any_of(names.begin(), names.end(), [&](const auto& one) { return one.first == name; }))
      fail(fmt::format("two groups named `{}`", name));
    names.emplace_back(std::move(name), group);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::usage, format_text("{} `{}` has {}", option(option_), shown(), what),
                "name a group like (?<step_s>[0-9.]+)")
        .about(option_);
  }

  [[noreturn]] void lacks(std::string_view written, std::string_view name) const {
    throw Error(ErrorKind::usage,
                format_text("{} `{}` has `{}` ({}), which the engine lacks: it matches in linear time (RE2)",
                            option(option_), shown(), written, name),
                "match what stands around it, and put only the number into a group")
        .about(option_);
  }

  const std::string& text_;
  std::string option_;
};

}  // namespace

UserRegex::UserRegex(const std::string& text, std::string_view option_name) {
  Reader reader(text, option_name);
  const std::string plain = reader.read(names_);
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMostMemory);
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // bytes: a log may be in any encoding
  regex_ = std::make_shared<const re2::RE2>(plain, options);
  if (!regex_->ok()) {
    throw Error(ErrorKind::usage,
                format_text("{} `{}` is no regular expression: {}", option(option_name), reader.shown(),
                            as_utf8(regex_->error(), kShownOfRegex)),
                "the syntax is RE2's; put '...' around it, so that the shell leaves it alone")
        .about(option_name);
  }
  group_count_ = static_cast<std::size_t>(regex_->NumberOfCapturingGroups());
}

std::vector<std::optional<std::string_view>> UserRegex::search(std::string_view line) const {
  const std::size_t count = group_count_ + 1;
  std::vector<re2::StringPiece> found(count);
  const re2::StringPiece text(line.data(), line.size());
  if (!regex_->Match(text, 0, line.size(), re2::RE2::UNANCHORED, found.data(), static_cast<int>(count))) return {};
  std::vector<std::optional<std::string_view>> groups(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (found[i].data() != nullptr) groups[i] = std::string_view(found[i].data(), found[i].size());
  }
  return groups;
}

}  // namespace stoker::measure
