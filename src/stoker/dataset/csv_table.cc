#include "stoker/dataset/csv_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/units.h"
#include "stoker/dataset/files.h"
#include "stoker/dataset/paced_progress.h"
#include "stoker/dataset/scan.h"
#include "stoker/os/fd.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {
namespace {

// Below this the text is copied: a file that is rewritten in place while mapped would end the process.
constexpr std::uint64_t kCopyBelow = 256 * kMiB;
constexpr std::uint64_t kCountEvery = 65536;

// Columns that hold paths, by preference. Names are compared without regard to case.
constexpr std::array<std::string_view, 21> kPathColumns = {
    "path",      "file",     "filename",   "file_name",  "filepath", "file_path", "relative_path",
    "rel_path",  "image",    "image_path", "img_path",   "img",      "png_path",  "jpg_path",
    "jpeg_path", "wav_path", "flac_path",  "audio_path", "audio",    "npy_path",  "npz_path"};

bool is_path_column(std::string_view name) {
  return std::find(kPathColumns.begin(), kPathColumns.end(), to_lower(name)) != kPathColumns.end();
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  return text;
}

}  // namespace

CsvTable::CsvTable(const std::string& address) : address_(address) {
  const std::size_t slash = address.rfind('/');
  file_name_ = slash == std::string::npos ? address : address.substr(slash + 1);
  if (storage::store_of(address) != nullptr) {
    copy_ = storage::read_address(address);
  } else {
    const os::Fd file = os::open_file(address, O_RDONLY | O_NONBLOCK);
    const std::uint64_t bytes = os::file_size(file.get(), address);
    if (bytes >= kCopyBelow) {
      mapping_ = os::Mapping(file.get(), bytes, address);
      text_ = {reinterpret_cast<const char*>(mapping_.bytes().data()), mapping_.bytes().size()};
      return;
    }
    copy_.resize(bytes);
    copy_.resize(os::read_up_to(file.get(), copy_, 0, address));
  }
  text_ = {reinterpret_cast<const char*>(copy_.data()), copy_.size()};
}

Error CsvTable::error_at(ErrorKind kind, std::size_t offset, std::string_view cause, const Text& hint) const {
  const auto end = text_.begin() + static_cast<std::ptrdiff_t>(offset);
  return Error(kind, fmt::format("{} line {}: {}", file_name_, 1 + std::count(text_.begin(), end, '\n'), cause), hint);
}

void CsvTable::read_header(const OpenOptions& options, const IsFile& is_file, Facts& facts) {
  std::size_t begin = text_.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF")) {
    throw Error(ErrorKind::unsupported, fmt::format("cannot read `{}`: it is UTF-16 text", address_),
                "save it as UTF-8");
  }
  if (text_.find('\n') == std::string_view::npos && text_.find('\r') != std::string_view::npos) {
    throw Error(ErrorKind::unsupported,
                fmt::format("cannot read `{}`: its lines end with a carriage return (CR) alone", address_),
                "save it with LF or CRLF line ends");
  }
  std::vector<CsvField> fields;
  CsvRow row{.end = begin, .is_blank = true};
  while (row.is_blank) {
    if (row.end >= text_.size()) {
      throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: it is empty, without a header line", address_),
                  "the first line names the columns, such as `path,label`");
    }
    row = read_row(text_, row.end, fields);
    check(row);
  }
  for (const CsvField& field : fields) header_.emplace_back(without_blanks(field.text()));
  if (header_.size() == 1 && header_[0].find_first_of(";\t") != std::string::npos) {
    throw error_at(ErrorKind::unsupported, row.begin, "the columns are not separated by commas");
  }
  first_row_ = row.end;

  refuse_missing_header(fields, is_file);
  refuse_volumes();
  choose_path_column(is_file, facts);
  choose_label_columns(options, facts);
  for (std::size_t c = 0; c < header_.size(); ++c) {
    const bool is_label = std::find(label_columns_.begin(), label_columns_.end(), c) != label_columns_.end();
    if (c == path_column_ || is_label) continue;
    further_.push_back(c);
    facts.columns.push_back(header_[c]);
  }
  facts.path_column = header_[path_column_];
  if (label_columns_.size() == 1) facts.label_column = header_[label_columns_[0]];
  if (label_columns_.empty() && !facts.columns.empty()) {
    facts.notes.push_back(
        fmt::format("no column is named `label`, so the samples have no labels; the label may be {}{}",
                    facts.columns.size() == 1 ? "" : "one of ", listed(facts.columns)));
  }
}

// A first line that names a file is a sample, not a header: it must not be lost.
void CsvTable::refuse_missing_header(const std::vector<CsvField>& first, const IsFile& is_file) const {
  const bool has_path = std::any_of(header_.begin(), header_.end(), is_path_column);
  for (std::size_t c = 0; c < first.size(); ++c) {
    if ((has_path && !codec::media_of_name(header_[c]).is_known()) || !is_file(first[c])) continue;
    throw Error(
        ErrorKind::corrupt,
        fmt::format("cannot read `{}`: it has no header line; `{}` in its first line is a file", address_, header_[c]),
        first.size() == 1 ? "write the line `path` before it"
                          : "write a line before it that names the columns, such as `path,label`");
  }
}

// A volumes.csv without a patch: its masks would be lost, and volumes are not samples.
void CsvTable::refuse_volumes() const {
  std::optional<std::size_t> image;
  bool has_mask = false;
  for (std::size_t c = 0; c < header_.size(); ++c) {
    const std::string name = to_lower(header_[c]);
    if (name == "image") image = c;
    has_mask = has_mask || name == "mask";
    if (name != "image" && name != "mask" && name != "weight") return;
  }
  if (!image) return;
  std::vector<CsvField> fields;
  CsvRow row{.end = first_row_, .is_blank = true};
  while (row.is_blank && row.end < text_.size()) row = read_row(text_, row.end, fields);
  if (row.is_blank || *image >= fields.size()) return;
  const std::string first = fields[*image].text();
  const codec::Media media = codec::media_of_name(first);
  const bool is_image = media.is_known() && codec::kind_of(media) == SampleKind::image;
  if (is_image || (media.is_known() && !has_mask)) return;
  throw Error(ErrorKind::usage,
              format_text("`{}` names volumes, such as `{}`: they are loaded as patches, and there is no {}", address_,
                          first, option("patch")),
              format_text("add {} and {}; in Python: stoker.Loader(stoker.Volumes(\"{}\", patch=..., samples=...))",
                          option("patch", "72x136x136"), option("samples", "2000"), address_))
      .about("patch");
}

void CsvTable::choose_path_column(const IsFile& is_file, Facts& facts) {
  for (const std::string_view wanted : kPathColumns) {
    for (std::size_t c = 0; c < header_.size(); ++c) {
      if (to_lower(header_[c]) == wanted) {
        path_column_ = c;
        refuse_twins(c, [](const std::string& name) { return to_lower(name); });
        return;
      }
    }
  }
  std::vector<CsvField> fields;
  for (std::size_t at = first_row_; at < text_.size();) {
    const CsvRow row = read_row(text_, at, fields);
    check(row);
    at = row.end;
    if (row.is_blank) continue;
    for (std::size_t c = 0; c < fields.size() && c < header_.size(); ++c) {
      if (is_file(fields[c])) {
        path_column_ = c;
        facts.notes.push_back(fmt::format("paths are taken from column `{}`: its first value is a file", header_[c]));
        return;
      }
    }
    break;
  }
  throw Error(
      ErrorKind::not_found,
      fmt::format("cannot find the path column of `{}`: no column is named `path`, `file`, `filename`, `filepath`, "
                  "`image`, `image_path`, `png_path` or the like, and no value of the first row is a file; the "
                  "columns are {}",
                  address_, listed(header_)),
      "the first line must name the columns; name the one with the paths `path`");
}

// Two columns of one name are ambiguous. `seen` is the name as it is compared.
template <typename Seen>
void CsvTable::refuse_twins(std::size_t column, Seen seen) const {
  for (std::size_t c = column + 1; c < header_.size(); ++c) {
    if (seen(header_[c]) != seen(header_[column])) continue;
    throw Error(
        ErrorKind::corrupt,
        fmt::format("cannot read `{}`: columns {} and {} are both named `{}`", address_, column + 1, c + 1, header_[c]),
        "give each column a name of its own");
  }
}

void CsvTable::choose_label_columns(const OpenOptions& options, Facts& facts) {
  if (options.label_columns.empty()) {
    if (const auto column = find_label_column(options.label)) label_columns_.push_back(*column);
    return;
  }
  for (const std::string& name : options.label_columns) {
    if (name.empty()) throw Error(ErrorKind::usage, "a label column has no name", "name the columns of the index.csv");
    const std::size_t column = find_label_column(name).value();
    if (std::find(label_columns_.begin(), label_columns_.end(), column) != label_columns_.end()) {
      throw Error(ErrorKind::usage, fmt::format("the label column `{}` is given twice", name), "name each column once");
    }
    label_columns_.push_back(column);
  }
  if (label_columns_.size() > 1) facts.label_columns = options.label_columns;
}

// None: there is no column `label`, and no other was asked for.
std::optional<std::size_t> CsvTable::find_label_column(const std::string& wanted) const {
  const std::string sought = wanted.empty() ? "label" : wanted;
  const auto as_written = [](const std::string& name) { return name; };
  if (const auto column = find_column(sought, as_written)) return column;
  const auto in_any_case = [](const std::string& name) { return to_lower(name); };
  if (const auto column = find_column(to_lower(sought), in_any_case)) return column;
  if (wanted.empty()) return {};
  const std::vector<std::string_view> names(header_.begin(), header_.end());
  const std::string near = nearest(wanted, names.data(), names.size());
  throw Error(
      ErrorKind::not_found,
      fmt::format("cannot find the label column `{}` in `{}`: the columns are {}", wanted, address_, listed(header_)),
      near.empty() ? "" : fmt::format("did you mean `{}`?", near));
}

// `seen` is a name as it is compared.
template <typename Seen>
std::optional<std::size_t> CsvTable::find_column(const std::string& wanted, Seen seen) const {
  const auto at =
      std::find_if(header_.begin(), header_.end(), [&](const std::string& name) { return seen(name) == wanted; });
  if (at == header_.end()) return {};
  const auto column = static_cast<std::size_t>(at - header_.begin());
  refuse_twins(column, seen);
  return column;
}

void CsvTable::check(const CsvRow& row) const {
  if (row.problem == CsvProblem::unclosed_quote) {
    throw error_at(ErrorKind::corrupt, row.begin, "a quote is opened and never closed");
  }
  if (row.problem == CsvProblem::text_after_quote) {
    throw error_at(ErrorKind::corrupt, row.begin, "there is text between a closing quote and the next comma",
                   "a quote inside a quoted field is written twice: \"\"");
  }
}

void CsvTable::read_rows(const Progress& progress) {
  PacedProgress paced(progress);
  std::vector<CsvField> fields;
  for (std::size_t at = first_row_; at < text_.size();) {
    const CsvRow row = read_row(text_, at, fields);
    check(row);
    at = row.end;
    if (row.is_blank) continue;
    if (fields.size() != header_.size()) {
      throw error_at(
          ErrorKind::corrupt, row.begin,
          fmt::format("{} where the header names {}",
                      fields.size() == 1 ? "1 field" : fmt::format("{} fields", fields.size()), header_.size()),
          "a field with a comma in it needs quotes");
    }
    const std::string_view path = fields[path_column_].raw;
    if (path.empty())
      throw error_at(ErrorKind::corrupt, row.begin, fmt::format("`{}` is empty", header_[path_column_]));
    if (path.find('\0') != std::string_view::npos)
      throw error_at(ErrorKind::corrupt, row.begin, "the path has a NUL byte in it");
    if (path.size() + kIndexFolder.size() + 1 > kMaxPath) {
      throw error_at(ErrorKind::unsupported, row.begin, fmt::format("the path is longer than {} bytes", kMaxPath));
    }
    rows_.push_back(row.begin);
    if (rows_.size() % kCountEvery == 0 && !paced.goes_on(rows_.size()))
      throw Error(ErrorKind::unavailable, "interrupted");
  }
  if (rows_.empty()) {
    throw Error(ErrorKind::not_found,
                fmt::format("cannot find samples in `{}`: it has a header and no rows", address_));
  }
  rows_.shrink_to_fit();
}

std::uint64_t CsvTable::memory_bytes() const noexcept {
  return held_bytes(copy_) + held_bytes(header_) + held_bytes(rows_);
}

}  // namespace stoker::dataset
