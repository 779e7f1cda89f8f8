#include "stoker/dataset/narrowing.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/plain_text.h"
#include "stoker/os/read_file.h"

namespace stoker::dataset {

void Narrowing::put_into(OpenOptions& options) const {
  options.where = where;
  options.class_list = class_list;
  options.class_subset = class_subset;
  options.class_subset_seed = class_subset_seed;
  options.subset = subset;
  options.subset_seed = subset_seed;
}

Json Narrowing::to_json() const {
  Json json = Json::object();
  if (!where.empty()) json["where"] = where;
  if (!class_list.empty()) json["class_list"] = class_list;
  if (class_subset != 0) {
    json["class_subset"] = class_subset;
    json["class_subset_seed"] = class_subset_seed;
  }
  if (subset != 0) {
    json["subset"] = subset;
    json["subset_seed"] = subset_seed;
  }
  return json;
}

Narrowing Narrowing::from_json(const Json& json) {
  Narrowing narrowing;
  const auto take = [&](std::string_view key, std::uint64_t& into) {
    if (json[key].is_natural()) into = json[key].get<std::uint64_t>();
  };
  if (json["where"].is_string()) narrowing.where = json["where"].text();
  if (json["class_list"].is_array()) {
    for (const Json& name : json["class_list"]) {
      if (name.is_string()) narrowing.class_list.push_back(name.text());
    }
  }
  take("class_subset", narrowing.class_subset);
  take("class_subset_seed", narrowing.class_subset_seed);
  take("subset", narrowing.subset);
  take("subset_seed", narrowing.subset_seed);
  return narrowing;
}

std::vector<std::string> read_class_list(const std::string& path) {
  const std::string text = utf8_of_marked(os::read_text(path));
  std::vector<std::string> names;
  std::unordered_set<std::string_view> seen;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#') || line.find_first_not_of(" \t") == std::string_view::npos) continue;
    if (seen.insert(line).second) names.emplace_back(line);
  }
  if (names.empty()) {
    throw Error(ErrorKind::usage, fmt::format("cannot take classes from `{}`: it names none", path),
                "write the name of one class on each line");
  }
  return names;
}

}  // namespace stoker::dataset
