#include "stoker/prepare/stage_index.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "stoker/base/csv_text.h"

namespace stoker::prepare {
namespace {

std::size_t count_empty_classes(const StagePart& part, const std::unordered_set<std::string>& left_out) {
  const dataset::Dataset& data = *part.data;
  const std::size_t classes = data.facts().classes.size();
  std::unordered_set<std::int64_t> seen;
  for (std::uint64_t i = 0; i < data.size() && seen.size() < classes; ++i) {
    if (!left_out.contains(part.path(i))) seen.insert(data.label(i).integer);
  }
  const std::int64_t last = seen.empty() ? -1 : *std::max_element(seen.begin(), seen.end());
  return seen.size() >= classes || last < static_cast<std::int64_t>(seen.size()) ? 0 : classes - seen.size();
}

}  // namespace

StageIndex make_index(const StagePart& part, const std::unordered_set<std::string>& left_out) {
  const dataset::Dataset& data = *part.data;
  const dataset::Facts& facts = data.facts();
  StageIndex index{.text = "path", .empty_classes = count_empty_classes(part, left_out)};
  std::string& text = index.text;
  if (facts.label_kind != dataset::LabelKind::none) text += ",label";
  for (const std::string& column : facts.columns) text += "," + csv_field(column);
  text += '\n';
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    if (left_out.contains(part.path(i))) continue;
    text += csv_field(data.name(i));
    const dataset::Label label = data.label(i);
    if (facts.label_kind == dataset::LabelKind::real) text += fmt::format(",{}", label.real);
    if (facts.label_kind == dataset::LabelKind::integer) {
      const bool is_class = !facts.classes.empty() && label.integer >= 0 && index.empty_classes == 0;
      text += "," + (is_class ? csv_field(facts.classes[static_cast<std::size_t>(label.integer)])
                              : std::to_string(label.integer));
    }
    for (std::size_t c = 0; c < facts.columns.size(); ++c) text += "," + csv_field(data.column_text(c, i));
    text += '\n';
  }
  return index;
}

}  // namespace stoker::prepare
