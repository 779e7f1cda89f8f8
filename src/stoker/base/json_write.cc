#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "stoker/base/json.h"
#include "stoker/base/utf8.h"

namespace stoker {
namespace {

void write_text(std::string_view text, std::string& out) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[i++];
    } else if (byte < 0x20) {
      constexpr std::string_view kShort = "\b\t\n\f\r", kLetters = "btnfr";
      if (const std::size_t at = kShort.find(text[i]); at != std::string_view::npos) {
        out += '\\';
        out += kLetters[at];
      } else {
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
      }
      ++i;
    } else if (const std::size_t bytes = byte < 0x7F ? 1 : character_bytes(text, i); bytes > 0) {
      const std::string_view character = text.substr(i, bytes);
      if (byte < 0x7F || !commands_terminal(character)) {
        out += character;
      } else {
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", code_of(character));
      }
      i += bytes;
    } else {
      fmt::format_to(std::back_inserter(out), "\\udc{:02x}", byte);
      ++i;
    }
  }
  out += '"';
}

// The shortest digits that read back as the same number; a point or an exponent marks it as a real one.
void write_real(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view all(buffer, static_cast<std::size_t>(end - buffer));  // -d.ddde+XX
  const std::size_t mark = all.find('e');
  const bool negative = all.front() == '-';
  std::string digits;
  for (const char c : all.substr(negative, mark - negative))
    if (c != '.') digits += c;
  int exponent = 0;
  std::from_chars(all.data() + mark + (all[mark + 1] == '+' ? 2 : 1), end, exponent);
  const int before_point = exponent + 1, count = static_cast<int>(digits.size());

  constexpr int kLeast = -4, kMost = 15;  // digits before the point; beyond them an exponent is shorter to read
  if (negative) out += '-';
  if (before_point > 0 && before_point <= kMost) {
    if (count <= before_point) {
      out += digits;
      out.append(static_cast<std::size_t>(before_point - count), '0');
      out += ".0";
    } else {
      out.append(digits, 0, static_cast<std::size_t>(before_point));
      out += '.';
      out.append(digits, static_cast<std::size_t>(before_point));
    }
  } else if (before_point > kLeast && before_point <= 0) {
    out += "0.";
    out.append(static_cast<std::size_t>(-before_point), '0');
    out += digits == "0" && value == 0 ? "0" : digits;
  } else {
    out += digits[0];
    if (count > 1) out.append(".").append(digits, 1);
    fmt::format_to(std::back_inserter(out), "e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
}

void new_line(int indent, int depth, std::string& out) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth), ' ');
}

void write(const Json& json, int indent, int depth, std::string& out) {
  switch (json.kind()) {
    case Json::Kind::null:
      out += "null";
      return;
    case Json::Kind::boolean:
      out += json.get<bool>() ? "true" : "false";
      return;
    case Json::Kind::integer:
      fmt::format_to(std::back_inserter(out), "{}", json.get<std::int64_t>());
      return;
    case Json::Kind::natural:
      fmt::format_to(std::back_inserter(out), "{}", json.get<std::uint64_t>());
      return;
    case Json::Kind::real:
      write_real(json.get<double>(), out);
      return;
    case Json::Kind::text:
      write_text(json.text(), out);
      return;
    case Json::Kind::array:
    case Json::Kind::object:
      break;
  }
  const bool is_object = json.is_object();
  out += is_object ? '{' : '[';
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (i > 0) out += ',';
    new_line(indent, depth + 1, out);
    if (is_object) {
      write_text(json.keys()[i], out);
      out += indent < 0 ? ":" : ": ";
    }
    write(*(json.begin() + i), indent, depth + 1, out);
  }
  if (!json.empty()) new_line(indent, depth, out);
  out += is_object ? '}' : ']';
}

}  // namespace

std::string Json::dump(int indent) const {
  std::string out;
  write(*this, indent, 0, out);
  return out;
}

}  // namespace stoker
