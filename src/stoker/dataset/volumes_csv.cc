// A volumes.csv, and the words of the options of volumes.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/csv_text.h"
#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/dataset/pack_format.h"
#include "stoker/dataset/volume_pack.h"
#include "stoker/dataset/volumes.h"
#include "stoker/os/read_file.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {
namespace {

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  text = without_blanks(text);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string below_folder(const std::string& csv, const std::string& path) {
  if (path.empty() || path.front() == '/' || !storage::split_address(path).scheme.empty()) return path;
  const std::size_t slash = csv.rfind('/');
  std::string folder = slash == std::string::npos ? std::string() : csv.substr(0, slash + 1);
  if (folder == "_index/" || folder.ends_with("/_index/")) folder.resize(folder.size() - std::string("_index/").size());
  return folder + path;
}

struct Columns {
  std::optional<std::size_t> image, mask, weight;
  bool are_slices = false;  // of prepared DICOM: `image` is the path of a slice, and its folder is the volume
};

// The columns by which an index of prepared DICOM is known.
constexpr std::string_view kOfSlices[] = {"path", "series", "slice_spacing", "hu_offset", "row"};

Columns find_columns(const std::string& address, const std::vector<CsvField>& fields) {
  Columns columns;
  const auto has = [&](std::string_view wanted) {
    return std::ranges::any_of(fields, [&](const CsvField& field) { return field.raw == wanted; });
  };
  if (std::ranges::all_of(kOfSlices, has)) {
    columns.are_slices = true;
    columns.image = static_cast<std::size_t>(
        std::ranges::find_if(fields, [](const CsvField& field) { return field.raw == "path"; }) - fields.begin());
    return columns;
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string name = to_lower(std::string(without_blanks(fields[i].text())));
    if (name == "image") columns.image = i;
    if (name == "mask") columns.mask = i;
    if (name == "weight") columns.weight = i;
  }
  if (!columns.image) {
    throw Error(ErrorKind::usage, fmt::format("cannot read `{}`: it has no column `image`", address),
                "a volumes.csv has the column `image`, and where wanted `mask` and `weight`");
  }
  for (const CsvField& field : fields) {
    const std::string name = to_lower(std::string(without_blanks(field.text())));
    if (name == "image" || name == "mask" || name == "weight") continue;
    throw Error(ErrorKind::usage, fmt::format("cannot read `{}`: it has the column `{}`", address, name),
                "a volumes.csv has the columns `image`, `mask` and `weight` only");
  }
  return columns;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find_first_of(separators, begin);
    parts.push_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

}  // namespace

std::string volumes_csv_of(const std::string& given) {
  if (ends_with_any_case(given, ".csv")) return given;
  if (storage::store_of(given) != nullptr) return {};
  std::string address = given;
  while (address.size() > 1 && address.ends_with('/')) address.pop_back();
  if (find_volume_pack(address)) return fmt::format("{}/{}", address, kPackJson);
  for (const char* const name : {"volumes.csv", "index.csv"}) {
    const std::string csv = fmt::format("{}/_index/{}", address, name);
    if (os::exists(address + "/_index/prepare.json") && os::exists(csv)) return csv;
  }
  return {};
}

std::vector<VolumeAddress> read_volumes_csv(const std::string& address) {
  if (const std::string end = fmt::format("/{}", kPackJson); address.ends_with(end)) {
    const std::string folder = address.substr(0, address.size() - end.size());
    std::vector<VolumeAddress> packed;
    if (const std::optional<VolumePack> pack = find_volume_pack(folder)) {
      for (const VolumePack::Entry& entry : pack->volumes) {
        packed.push_back({fmt::format("{}/{}", folder, entry.image.file),
                          entry.mask ? fmt::format("{}/{}", folder, entry.mask->file) : std::string(), entry.weight});
      }
    }
    return packed;
  }
  const std::vector<std::byte> bytes = storage::read_address(address);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<VolumeAddress> volumes;
  std::vector<CsvField> fields;
  std::optional<Columns> columns;
  std::uint64_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CsvRow row = read_row(text, at, fields);
    at = row.end;
    ++line;
    if (row.problem != CsvProblem::none)
      throw Error(ErrorKind::corrupt,
                  fmt::format("cannot read `{}`: row {} has a quote that is not closed", address, line));
    if (row.is_blank) continue;
    if (!columns) {
      columns = find_columns(address, fields);
      continue;
    }
    const auto field = [&](const std::optional<std::size_t>& column) {
      return column && *column < fields.size() ? std::string(without_blanks(fields[*column].text())) : std::string();
    };
    VolumeAddress volume;
    std::string image = field(columns->image);
    if (columns->are_slices && !ends_with_any_case(image, ".npy"))
      image = image.substr(0, std::min(image.rfind('/'), image.size()));
    volume.image = below_folder(address, image);
    // The slices of a series follow one another.
    if (columns->are_slices && !volumes.empty() && volumes.back().image == volume.image) continue;
    volume.mask = below_folder(address, field(columns->mask));
    if (volume.image.empty())
      throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: row {} names no image", address, line));
    if (const std::string weight = field(columns->weight); !weight.empty()) {
      const std::optional<double> number = number_of<double>(weight);
      if (!number)
        throw Error(ErrorKind::corrupt,
                    fmt::format("cannot read `{}`: the weight `{}` of row {} is not a number", address, weight, line));
      volume.weight = *number;
    }
    volumes.push_back(std::move(volume));
  }
  if (volumes.empty())
    throw Error(ErrorKind::not_found, fmt::format("cannot find volumes in `{}`: it has no rows", address));
  return volumes;
}

Extents parse_extents(std::string_view text, std::string_view name) {
  const std::vector<std::string_view> parts = split(text, "x,");
  Extents extents{};
  bool is_good = parts.size() == 3 || parts.size() == 1;
  for (std::size_t axis = 0; is_good && axis < 3; ++axis) {
    const std::optional<std::uint64_t> number = number_of<std::uint64_t>(parts[parts.size() == 1 ? 0 : axis]);
    is_good = number.has_value();
    extents[axis] = number.value_or(0);
  }
  if (!is_good) {
    throw Error(ErrorKind::usage, format_text("{} is depth, height and width, not `{}`", option(name), text),
                "such as 72x136x136; one number stands for all three")
        .about(name);
  }
  return extents;
}

Normalize parse_normalize(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ":");
  Normalize normalize;
  if (text == "none") return normalize;
  if (text == "zscore") {
    normalize.how = Normalize::How::zscore;
    return normalize;
  }
  const bool is_window = parts.front() == "window";
  if ((is_window || parts.front() == "scale") && parts.size() == 3) {
    const std::optional<double> first = number_of<double>(parts[1]), second = number_of<double>(parts[2]);
    if (first && second && std::isfinite(*first) && std::isfinite(*second)) {
      normalize.how = is_window ? Normalize::How::window : Normalize::How::scale;
      normalize.first = *first;
      normalize.second = *second;
      return normalize;
    }
  }
  throw Error(ErrorKind::usage, format_text("{} is zscore, window:LOW:HIGH, scale:FACTOR:SUMMAND or none, not `{}`",
                                            option("normalize"), text))
      .about("normalize");
}

}  // namespace stoker::dataset
