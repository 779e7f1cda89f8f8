#include "stoker/dicom/index.h"

#include <optional>

#include <fmt/format.h>

#include "stoker/base/csv_text.h"
#include "stoker/dicom/values.h"

namespace stoker::dicom {
namespace {

// The shortest text that gives the same number again; nothing for none.
template <typename Number>
std::string cell(const std::optional<Number>& value) {
  return value ? fmt::format("{}", *value) : std::string();
}

// Positions carry the noise of a sum of products: a tenth of a micrometre is enough.
std::string millimetres(const std::optional<double>& value) {
  if (!value) return "";
  std::string text = fmt::format("{:.4f}", *value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace

std::string index_line(const IndexLine& line) {
  const FrameFacts& facts = line.header.facts_of(line.slice.frame);
  const auto spacing = [&](std::size_t i) {
    return facts.pixel_spacing ? std::optional((*facts.pixel_spacing)[i]) : std::nullopt;
  };
  std::string text;
  const auto add = [&](std::string_view field) {
    if (!text.empty()) text += ',';
    text += csv_field(field);
  };
  add(line.path);
  add(line.series.patient);
  add(line.series.study);
  add(line.series.series);
  add(line.series.modality);
  add(cell(line.header.instance));
  add(std::to_string(line.slice.frame + 1));
  add(millimetres(line.slice.position));
  add(millimetres(line.series.slice_spacing));
  add(cell(spacing(0)));
  add(cell(spacing(1)));
  add(std::to_string(kHuOffset));
  add(std::to_string(line.series.rows));
  add(std::to_string(line.series.columns));
  add(cell(facts.window_center));
  add(cell(facts.window_width));
  add(fmt::format("{}", facts.slope.value_or(1)));
  add(fmt::format("{}", facts.intercept.value_or(0)));
  add(line.header.photometric);
  add(std::to_string(line.row));
  add(line.source);
  return text;
}

}  // namespace stoker::dicom
