#include "stoker/prepare/part_name.h"

#include <charconv>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"

namespace stoker::prepare {
namespace {

bool read_pair(std::string_view text, std::string_view between, PartName& part) noexcept {
  const std::size_t at = text.find(between);
  if (at == std::string_view::npos) return false;
  const auto read = [](std::string_view digits, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  return read(text.substr(0, at), part.number) && read(text.substr(at + between.size()), part.of);
}

bool is_sound(const PartName& part) noexcept {
  return part.number >= 1 && part.number <= part.of && part.of <= kMostParts;
}

}  // namespace

std::string PartName::text() const {
  return fmt::format("{}/{}", number, of);
}

std::string PartName::folder() const {
  return fmt::format("{}-of-{}", number, of);
}

PartName parse_part(std::string_view text) {
  PartName part;
  if (read_pair(text, "/", part) && is_sound(part)) return part;
  throw Error(
      ErrorKind::usage,
      format_text("cannot read {}: it is a number from 1 to N, a slash and N", option("part", std::string(text))),
      "the parts of four machines are 1/4, 2/4, 3/4 and 4/4")
      .about("part");
}

bool read_part_folder(std::string_view name, PartName& part) noexcept {
  return read_pair(name, "-of-", part) && is_sound(part);
}

}  // namespace stoker::prepare
