#include <string>

#include <fmt/format.h>

#include "stoker/dataset/dataset.h"
#include "stoker/os/file.h"

namespace stoker::dataset {
namespace {

// Bytes of the UTF-8 character that `text` begins with, or 0 if it does not begin with one.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool in_range = !(first == 0xE0 && second < 0xA0) && !(first == 0xED && second > 0x9F);
    return in_range && follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool in_range = !(first == 0xF0 && second < 0x90) && !(first == 0xF4 && second > 0x8F);
    return in_range && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

// Bytes that are not UTF-8 become \udc80 to \udcff, as Python's file names have them: os.fsencode gives the bytes back.
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto c = static_cast<unsigned char>(text.front());
    if (length == 0) {
      out += fmt::format("\\udc{:02x}", c);
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += text.front();
    } else if (c < 0x20) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

}  // namespace

void write_subset_json(const Dataset& dataset, std::uint64_t seed, const std::string& path) {
  std::string out = fmt::format("{{\n\"seed\": {},\n\"count\": {},\n\"ids\": [", seed, dataset.size());
  for (std::uint64_t i = 0; i < dataset.size(); ++i) out += fmt::format("{}\n{}", i == 0 ? "" : ",", dataset.id(i));
  out += "\n],\n\"paths\": [";
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    out += i == 0 ? "\n" : ",\n";
    append_quoted(out, dataset.name(i));
  }
  out += "\n]\n}\n";
  os::write_file(path, out);
}

}  // namespace stoker::dataset
