#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/utf8.h"

namespace stoker {

// Reads one document, and remembers where and why it stopped.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // byte order mark, from Windows editors
  }

  std::optional<Json> read() {
    Json json;
    skip_space();
    if (!read_value(json, 0)) return std::nullopt;
    skip_space();
    if (at_ < text_.size()) return fail("the end of the text"), std::nullopt;
    return json;
  }

  // "line 3, column 7: expected a value"
  std::string error() const {
    const std::string_view before = text_.substr(0, std::min(at_, text_.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;
    return fmt::format("line {}, column {}: expected {}", line, column, wanted_);
  }

 private:
  static constexpr int kDeepest = 500;  // the reader, the writer and the destructor recurse once per level

  bool fail(std::string_view wanted) {
    wanted_ = wanted;
    return false;
  }

  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos) ++at_;
  }

  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }

  bool read_word(std::string_view word, Json value, Json& into) {
    if (!text_.substr(at_).starts_with(word)) return fail("a value");
    at_ += word.size();
    into = std::move(value);
    return true;
  }

  bool read_value(Json& into, int depth) {
    if (depth > kDeepest) return fail(fmt::format("at most {} levels of nesting", kDeepest));
    switch (next()) {
      case '{':
        return read_object(into, depth);
      case '[':
        return read_array(into, depth);
      case '"': {
        std::string text;
        if (!read_text(text)) return false;
        into = std::move(text);
        return true;
      }
      case 't':
        return read_word("true", true, into);
      case 'f':
        return read_word("false", false, into);
      case 'n':
        return read_word("null", nullptr, into);
      default:
        return read_number(into);
    }
  }

  bool read_array(Json& into, int depth) {
    into = Json::array();
    ++at_;
    skip_space();
    if (take(']')) return true;
    while (true) {
      skip_space();
      into.values_.emplace_back();
      if (!read_value(into.values_.back(), depth + 1)) return false;
      skip_space();
      if (take(']')) return true;
      if (!take(',')) return fail("`,` or `]`");
    }
  }

  bool read_object(Json& into, int depth) {
    into = Json::object();
    ++at_;
    skip_space();
    if (take('}')) return true;
    while (true) {
      skip_space();
      into.add({}, nullptr);
      if (next() != '"') return fail("a key in double quotes");
      if (!read_text(into.keys_.back())) return false;
      skip_space();
      if (!take(':')) return fail("`:`");
      skip_space();
      if (!read_value(into.values_.back(), depth + 1)) return false;
      skip_space();
      if (take('}')) break;
      if (!take(',')) return fail("`,` or `}`");
    }
    drop_repeated_keys(into);
    return true;
  }

  // The last value of a key counts, as in Python. Sorting keeps hostile objects of a million keys cheap.
  static void drop_repeated_keys(Json& object) {
    std::vector<std::size_t> order(object.keys_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return object.keys_[a] < object.keys_[b]; });
    std::vector<bool> is_repeated(order.size());
    bool any = false;
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      if (object.keys_[order[i]] == object.keys_[order[i + 1]]) any = is_repeated[order[i]] = true;
    }
    if (!any) return;
    Json kept = Json::object();
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (!is_repeated[i]) kept.add(std::move(object.keys_[i]), std::move(object.values_[i]));
    }
    object = std::move(kept);
  }

  bool read_number(Json& into) {
    const std::size_t begin = at_;
    const auto digits = [&] {
      const std::size_t from = at_;
      while (next() >= '0' && next() <= '9') ++at_;
      return at_ > from;
    };
    const bool negative = take('-');
    if (next() < '0' || next() > '9') return at_ = begin, fail("a value");
    if (!take('0')) digits();
    bool is_real = false;
    if (take('.')) {
      is_real = true;
      if (!digits()) return fail("a digit");
    }
    if (next() == 'e' || next() == 'E') {
      is_real = true;
      ++at_;
      if (next() == '+' || next() == '-') ++at_;
      if (!digits()) return fail("a digit");
    }
    const char *const first = text_.data() + begin, *const last = text_.data() + at_;
    if (!is_real) {
      std::int64_t integer = 0;
      std::uint64_t natural = 0;
      if (negative && std::from_chars(first, last, integer).ec == std::errc()) return into = integer, true;
      if (!negative && std::from_chars(first, last, natural).ec == std::errc()) return into = natural, true;
    }
    double real = 0;
    if (std::from_chars(first, last, real).ec == std::errc::result_out_of_range) {
      real = std::strtod(std::string(first, last).c_str(), nullptr);  // 1e-999 is 0, 1e999 is no number
      if (!std::isfinite(real)) return at_ = begin, fail("a number below 1.8e308");
    }
    into = real;
    return true;
  }

  std::optional<unsigned> read_four_digits() {
    unsigned value = 0;
    if (text_.size() - at_ < 4) return std::nullopt;
    const char* const first = text_.data() + at_;
    if (std::from_chars(first, first + 4, value, 16).ptr != first + 4) return std::nullopt;
    at_ += 4;
    return value;
  }

  static void add_character(unsigned code, std::string& out) {
    const auto byte = [&](unsigned value) { out += static_cast<char>(value); };
    if (code < 0x80) return byte(code);
    if (code < 0x800) return byte(0xC0 | code >> 6), byte(0x80 | (code & 0x3F));
    if (code < 0x10000) {
      byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F));
      return;
    }
    byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 0x3F)), byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  }

  bool read_escaped_character(std::string& out) {
    const std::optional<unsigned> code = read_four_digits();
    if (!code) return fail("four hexadecimal digits");
    if (*code >= 0xDC80 && *code <= 0xDCFF) {  // a byte that is not UTF-8
      out += static_cast<char>(*code - 0xDC00);
      return true;
    }
    if (*code < 0xD800 || *code > 0xDFFF) return add_character(*code, out), true;
    if (*code < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      const std::optional<unsigned> low = read_four_digits();
      if (low && *low >= 0xDC00 && *low <= 0xDFFF)
        return add_character(0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00), out), true;
    }
    return fail("the second half of a character");
  }

  bool read_text(std::string& out) {
    ++at_;
    while (true) {
      const std::size_t plain = at_;
      while (at_ < text_.size() && static_cast<unsigned char>(text_[at_]) >= 0x20 && text_[at_] != '"' &&
             text_[at_] != '\\') {
        const std::size_t bytes = character_bytes(text_, at_);
        if (bytes == 0) return fail("text in UTF-8");
        at_ += bytes;
      }
      out += text_.substr(plain, at_ - plain);
      if (take('"')) return true;
      if (!take('\\'))
        return fail(at_ < text_.size() ? "an escape such as \\n for a control character" : "a closing `\"`");
      constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
      const char letter = next();
      ++at_;
      if (letter == 'u') {
        if (!read_escaped_character(out)) return false;
      } else if (const std::size_t found = kLetters.find(letter); letter != '\0' && found != std::string_view::npos) {
        out += kMeant[found];
      } else {
        return --at_, fail("one of \" \\ / b f n r t u after a backslash");
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string wanted_;
};

Json Json::parse(std::string_view text, std::string_view subject) {
  JsonReader reader(text);
  std::optional<Json> json = reader.read();
  if (!json) throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`, {}", subject, reader.error()));
  return std::move(*json);
}

std::optional<Json> Json::try_parse(std::string_view text) {
  return JsonReader(text).read();
}

}  // namespace stoker
