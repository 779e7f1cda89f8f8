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
#include "stoker/dataset/where.h"
#include "stoker/os/read_file.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {
namespace {

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  text = without_blanks(text);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string below_folder(const std::string& csv, const std::string& path) {
  if (path.empty() || path.front() == '/' || !storage::split_address(path).scheme.empty())
    return storage::without_file_scheme(path);
  const std::size_t slash = csv.rfind('/');
  std::string folder = slash == std::string::npos ? std::string() : csv.substr(0, slash + 1);
  if (folder == "_index/" || folder.ends_with("/_index/")) folder.resize(folder.size() - std::string("_index/").size());
  return storage::without_file_scheme(folder + path);
}

constexpr double kMostWeight = 1e18;  // as PatchPlan has it: the sum of many is still a number

// The columns by which an index of prepared DICOM is known.
constexpr std::string_view kOfSlices[] = {"path", "series", "slice_spacing", "hu_offset", "row"};

// Columns that are named so by mistake would be ignored in silence. Others are for `where`.
constexpr std::pair<std::string_view, std::string_view> kMistaken[] = {
    {"img", "image"}, {"label", "mask"}, {"labels", "mask"}, {"seg", "mask"}, {"segmentation", "mask"}};

// Whether `word` is `right` with letters that changed places, or with one too many or too few.
bool is_slip(std::string_view word, std::string_view right) {
  std::string a(word), b(right);
  if (a.size() < b.size()) a.swap(b);
  if (a.size() == b.size()) {
    std::ranges::sort(a);
    std::ranges::sort(b);
    return a == b;
  }
  const auto apart = std::ranges::mismatch(a, b);
  return a.size() == b.size() + 1 && std::equal(apart.in1 + 1, a.end(), apart.in2, b.end());
}

// A volumes.csv, row by row.
class VolumesCsv {
 public:
  VolumesCsv(const std::string& address, const std::string& where) : address_(address) {
    if (!where.empty()) where_.emplace(where);
    bytes_ = storage::read_address(address);
    text_ = {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  std::vector<VolumeAddress> read() {
    bool has_header = false;
    std::uint64_t rows = 0;
    for (std::size_t at = 0; at < text_.size();) {
      const CsvRow row = read_row(text_, at, fields_);
      begin_ = at;
      at = row.end;
      if (row.problem == CsvProblem::unclosed_quote) refuse("has a quote that is not closed", "close it");
      if (row.problem == CsvProblem::text_after_quote)
        refuse("has text behind a closing quote", "a quote inside a quoted field is written twice: \"\"");
      if (row.is_blank) continue;
      if (!has_header) {
        has_header = true;
        find_columns();
        continue;
      }
      ++rows;
      add_row();
    }
    if (rows == 0)
      throw Error(ErrorKind::not_found, fmt::format("cannot find volumes in `{}`: it has no rows", address_),
                  "write one volume per line, below the names of the columns");
    if (volumes_.empty()) {
      throw Error(ErrorKind::not_found,
                  format_text("{} matches none of the {} rows of `{}`", option("where"), rows, address_))
          .about("where");
    }
    return std::move(volumes_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what, std::string_view remedy, ErrorKind kind = ErrorKind::corrupt) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(begin_), '\n') + 1;
    throw Error(kind, fmt::format("cannot read `{}`: line {} {}", address_, line, what), std::string(remedy));
  }

  // Blanks inside quotes belong to the value.
  std::string value(std::size_t column) const {
    const CsvField& field = fields_[column];
    const bool is_quoted = field.raw.data() > text_.data() && field.raw.data()[-1] == '"';
    return is_quoted ? field.text() : std::string(without_blanks(field.raw));
  }
  std::string value(const std::optional<std::size_t>& column) const {
    return column && *column < fields_.size() ? value(*column) : std::string();
  }

  void find_columns() {
    for (std::size_t i = 0; i < fields_.size(); ++i) names_.push_back(to_lower(value(i)));
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!names_[i].empty() && *column_of(names_[i]) != i)
        refuse(fmt::format("has the column `{}` twice", names_[i]), "rename or remove one of them", ErrorKind::usage);
    }
    find_where();
    if (std::ranges::all_of(kOfSlices, [&](std::string_view name) { return column_of(name).has_value(); })) {
      are_slices_ = true;
      image_ = column_of("path");
      return;
    }
    image_ = column_of("image");
    mask_ = column_of("mask");
    weight_ = column_of("weight");
    for (const std::string& name : names_) {
      for (const std::string_view right : {"image", "mask", "weight"}) {
        const auto is_this = [&](const auto& pair) { return pair.first == name && pair.second == right; };
        if (column_of(right) || (!is_slip(name, right) && std::ranges::none_of(kMistaken, is_this))) continue;
        refuse(fmt::format("has the column `{}`, and none is `{}`", name, right),
               fmt::format("rename it to `{}`", right), ErrorKind::usage);
      }
    }
    if (!image_) {
      std::string list;
      for (const std::string& name : names_) list += fmt::format("{}`{}`", list.empty() ? "" : ", ", name);
      const bool has_other_marks = names_.size() == 1 && names_[0].find_first_of(";\t") != std::string::npos;
      refuse(fmt::format("has no column `image`: it names {}", list),
             has_other_marks ? "separate columns by commas"
                             : "name the column of the volumes `image`, and where wanted others `mask` and `weight`",
             ErrorKind::usage);
    }
  }

  void find_where() {
    if (!where_) return;
    for (const std::string& name : where_->columns()) {
      const std::optional<std::size_t> column = column_of(to_lower(name));
      if (!column) {
        std::string list;
        for (const std::string& other : names_) list += fmt::format("{}`{}`", list.empty() ? "" : ", ", other);
        throw Error(ErrorKind::usage,
                    format_text("{} names the column `{}`, and the columns of `{}` are {}", option("where"), name,
                                address_, list),
                    "write texts in quotes")
            .about("where");
      }
      where_columns_.push_back(*column);
    }
  }

  std::optional<std::size_t> column_of(std::string_view name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - names_.begin());
  }

  void add_row() {
    if (fields_.size() > names_.size()) {
      refuse(fmt::format("has {} values, and the first line names {} columns", fields_.size(), names_.size()),
             "put a name with a comma in quotes");
    }
    if (where_ && !where_->matches([&](std::size_t column) { return value(std::optional(where_columns_[column])); }))
      return;
    VolumeAddress volume;
    std::string image = value(image_);
    if (image.empty()) refuse("names no image", "write the path of the volume into the column `image`");
    if (are_slices_ && !ends_with_any_case(image, ".npy"))
      image = image.substr(0, std::min(image.rfind('/'), image.size()));
    volume.image = below_folder(address_, image);
    // The slices of a series follow one another.
    if (are_slices_ && !volumes_.empty() && volumes_.back().image == volume.image) return;
    volume.mask = below_folder(address_, value(mask_));
    if (const std::string weight = value(weight_); !weight.empty()) {
      const std::optional<double> number = number_of<double>(weight);
      if (!number || !(*number >= 0 && *number <= kMostWeight)) {
        refuse(fmt::format("has the weight `{}`, which is not a number from 0 to {:g}", weight, kMostWeight),
               "weights are shares of the samples relative to each other, such as 1 and 3");
      }
      volume.weight = *number;
    }
    volumes_.push_back(std::move(volume));
  }

  const std::string& address_;
  std::optional<Where> where_;
  std::vector<std::size_t> where_columns_;  // by the columns of where_
  std::vector<std::byte> bytes_;
  std::string_view text_;
  std::size_t begin_ = 0;  // of the row at hand
  std::vector<CsvField> fields_;
  std::vector<std::string> names_;  // of the columns, in lower case
  std::optional<std::size_t> image_, mask_, weight_;
  bool are_slices_ = false;  // of prepared DICOM: `image_` is the path of a slice, and its folder is the volume
  std::vector<VolumeAddress> volumes_;
};

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find_first_of(separators, begin);
    parts.push_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

constexpr std::string_view kPrepared = "_index/volumes.csv";  // of `stoker prepare dicom`: it has no further columns

std::string index_beside(const std::string& volumes_csv) {
  return volumes_csv.substr(0, volumes_csv.size() - kPrepared.size()) + "_index/index.csv";
}

// False: what `where` names stands in the index.csv of the slices, beside this volumes.csv.
bool has_columns(const std::string& address, const std::string& where) {
  if (where.empty() || !address.ends_with(kPrepared) || storage::store_of(address) != nullptr) return true;
  const std::string folder = address.substr(0, address.size() - kPrepared.size());
  if (!os::exists(folder + "_index/prepare.json") || !os::exists(index_beside(address))) return true;
  return std::ranges::all_of(Where(where).columns(), [](const std::string& name) { return to_lower(name) == "image"; });
}

}  // namespace

std::string volumes_csv_of(const std::string& given) {
  if (storage::store_of(given) != nullptr) return ends_with_any_case(given, ".csv") ? given : std::string();
  std::string address = storage::without_file_scheme(given);
  if (ends_with_any_case(address, ".csv")) return address;
  while (address.size() > 1 && address.ends_with('/')) address.pop_back();
  if (find_volume_pack(address)) return fmt::format("{}/{}", address, kPackJson);
  for (const char* const name : {"volumes.csv", "index.csv"}) {
    const std::string csv = fmt::format("{}/_index/{}", address, name);
    if (os::exists(address + "/_index/prepare.json") && os::exists(csv)) return csv;
  }
  return {};
}

std::vector<VolumeAddress> read_volumes_csv(const std::string& address, const std::string& where) {
  if (const std::string end = fmt::format("/{}", kPackJson); address.ends_with(end)) {
    if (!where.empty()) {
      throw Error(ErrorKind::usage,
                  format_text("{} does not go with `{}`: a pack of volumes has no columns", option("where"),
                              address.substr(0, address.size() - end.size())),
                  "select rows of the volumes.csv that the pack was made from")
          .about("where");
    }
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
  const std::string csv = has_columns(address, where) ? address : index_beside(address);
  return VolumesCsv(csv, where).read();
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
