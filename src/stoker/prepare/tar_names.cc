#include "stoker/prepare/tar_names.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/dataset/tar_format.h"

namespace stoker::prepare {

std::string member_key(std::string_view name) {
  const std::string_view stem = name.substr(0, extension_of(name));
  std::string key;
  for (std::size_t at = 0; at <= stem.size();) {
    const std::size_t end = std::min(stem.find('/', at), stem.size());
    std::string part(stem.substr(at, end - at));
    const bool last = end == stem.size();
    at = end + 1;
    if (!last && (part.empty() || part == ".")) continue;  // leading and doubled slashes
    if (part == "..") part = "__";
    if (last) std::replace(part.begin(), part.end(), '.', '_');
    if (last && (part.empty() || part.starts_with("__"))) part.insert(0, "sample");  // WebDataset leaves out __names__
    key += (key.empty() ? "" : "/") + part;
  }
  return key;
}

std::string member_name(std::string_view name, std::uint64_t id, bool clashes) {
  std::string out = member_key(name);
  if (clashes) out += fmt::format("-{:016x}", id);
  return out + to_lower(name.substr(extension_of(name)));
}

std::size_t extension_of(std::string_view name) noexcept {
  const std::size_t slash = name.rfind('/') + 1;  // npos + 1 is 0
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot <= slash ? name.size() : dot;
}

TarNames::TarNames(const dataset::Dataset& dataset) : dataset_(dataset) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> keys(dataset_.size());
  for (std::uint64_t i = 0; i < keys.size(); ++i) keys[i] = {hash_text(member_key(dataset_.name(i))), i};
  std::sort(keys.begin(), keys.end());
  for (std::size_t i = 1; i < keys.size(); ++i) {
    if (keys[i].first != keys[i - 1].first) continue;
    clashes_.insert(keys[i - 1].second);
    clashes_.insert(keys[i].second);
  }
}

std::string TarNames::member(std::uint64_t index, std::string_view extension) const {
  std::string name = dataset_.name(index);
  if (!codec::media_of_name(name).is_known()) name += extension;
  return member_name(name, dataset_.id(index), clashes_.contains(index));
}

std::string TarNames::cls(std::uint64_t index) const {
  if (dataset_.facts().label_kind != dataset::LabelKind::integer) return {};
  return fmt::format("{}", dataset_.label(index).integer);
}

std::uint64_t TarNames::bytes(std::uint64_t index, std::uint64_t payload_bytes) const {
  const std::string name = member(index, {}), key = name.substr(0, extension_of(name));
  const auto needed = [](std::string_view of, std::uint64_t bytes) {
    return dataset::tar_header_bytes(of, bytes) + dataset::tar_padded(bytes);
  };
  std::uint64_t all = needed(name, payload_bytes);
  if (const std::string text = cls(index); !text.empty()) all += needed(key + ".cls", text.size());
  if (const std::string text = json(index); !text.empty()) all += needed(key + ".json", text.size());
  return all;
}

std::string TarNames::json(std::uint64_t index) const {
  const dataset::Facts& facts = dataset_.facts();
  if (facts.label_kind != dataset::LabelKind::real && facts.columns.empty()) return {};
  Json json = Json::object();
  const dataset::Label label = dataset_.label(index);
  if (facts.label_kind == dataset::LabelKind::real) json["label"] = label.real;
  if (facts.label_kind == dataset::LabelKind::integer) json["label"] = label.integer;
  for (std::size_t c = 0; c < facts.columns.size(); ++c) json[facts.columns[c]] = dataset_.column_text(c, index);
  return json.dump();
}

}  // namespace stoker::prepare
