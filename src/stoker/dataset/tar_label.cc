#include "stoker/dataset/tar_label.h"

#include <charconv>
#include <string_view>

#include "stoker/base/json.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kMostLabelBytes = 4096;
constexpr std::uint64_t kMostJsonBytes = 1 << 20;

std::string_view without_space(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

FoundLabel label_of_text(std::string_view text) {
  text = without_space(text);
  FoundLabel label;
  if (text.empty()) return label;
  label.text = text;
  const char* const end = text.data() + text.size();
  if (const auto [at, error] = std::from_chars(text.data(), end, label.integer); error == std::errc() && at == end) {
    label.kind = FoundLabel::Kind::integer;
  } else if (const auto [stop, wrong] = std::from_chars(text.data(), end, label.real);
             wrong == std::errc() && stop == end) {
    label.kind = FoundLabel::Kind::real;
  } else {
    label.kind = FoundLabel::Kind::text;
  }
  return label;
}

FoundLabel label_of_json(const Json& json) {
  if (!json.is_object()) return {};
  for (const char* const key : {"label", "cls", "class"}) {
    const auto found = json.find(key);
    if (found == json.end()) continue;
    FoundLabel label;
    if (found->is_whole() && found->as<std::int64_t>()) {
      label.kind = FoundLabel::Kind::integer;
      label.integer = found->get<std::int64_t>();
    } else if (found->is_number()) {
      label.kind = FoundLabel::Kind::real;
      label.real = found->get<double>();
    } else if (found->is_string()) {
      label.kind = FoundLabel::Kind::text;
      label.text = found->get<std::string>();
    }
    return label;
  }
  return {};
}

}  // namespace

FoundLabel read_label(TarReader& reader, const TarMember& member, bool is_json, const char*& problem) {
  const std::uint64_t most = is_json ? kMostJsonBytes : kMostLabelBytes;
  if (member.bytes > most) {
    problem = is_json ? "is larger than 1 MiB" : "is larger than 4 KiB";
    return {};
  }
  const std::string text = reader.content(member, most);
  if (without_space(text).empty()) {
    problem = "is empty";
    return {};
  }
  if (!is_json) return label_of_text(text);
  const Json json = Json::parse_or_null(text);
  if (json.is_null() && without_space(text) != "null") problem = "is not valid JSON";
  return label_of_json(json);
}

}  // namespace stoker::dataset
