// An index.csv: one row per sample, with a path, perhaps a label, and any further columns.
//
// The text stays where it is (copied when small, mapped when large); a sample is the offset of its row, its size and
// its label. Paths and further columns are read from the row when asked for.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/csv_text.h"
#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/dataset/files.h"
#include "stoker/dataset/kinds.h"
#include "stoker/dataset/listing.h"
#include "stoker/dataset/look_up_objects.h"
#include "stoker/dataset/lookup.h"
#include "stoker/dataset/object_listing.h"
#include "stoker/dataset/scan.h"
#include "stoker/os/fd.h"
#include "stoker/os/mapping.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {
namespace {

// Below this the text is copied: a file that is rewritten in place while mapped would end the process.
constexpr std::uint64_t kCopyBelow = 256 * kMiB;
constexpr std::uint64_t kCountEvery = 65536;
constexpr std::string_view kIndexFolder = "_index";

// Columns that hold paths, by preference. Names are compared without regard to case.
constexpr std::array<std::string_view, 21> kPathColumns = {
    "path",      "file",     "filename",   "file_name",  "filepath", "file_path", "relative_path",
    "rel_path",  "image",    "image_path", "img_path",   "img",      "png_path",  "jpg_path",
    "jpeg_path", "wav_path", "flac_path",  "audio_path", "audio",    "npy_path",  "npz_path"};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

template <typename Number>
bool parse_number(std::string_view text, Number& value) {
  text = trimmed(text);
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// An integer, of whatever size.
bool is_whole_number(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_path_column(std::string_view name) {
  return std::find(kPathColumns.begin(), kPathColumns.end(), to_lower(name)) != kPathColumns.end();
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  return text;
}

class CsvDataset final : public Dataset {
 public:
  CsvDataset(const std::string& address, const OpenOptions& options) : options_(options) {
    facts_.address = address;
    facts_.kind = "index.csv";
    facts_.seek_path = seek_path(options, storage::store_of(address) != nullptr ? address : real_path_of(address));
    const std::size_t slash = address.rfind('/');
    file_name_ = slash == std::string::npos ? address : address.substr(slash + 1);
    backend_ = storage::store_of(address);
    if (backend_ != nullptr) {
      const std::string_view name = storage::split_address(address).name;
      facts_.notes = backend_->notes();
      copy_ = storage::read_address(address);
      text_ = {reinterpret_cast<const char*>(copy_.data()), copy_.size()};
      const std::string_view folder = name.substr(0, name.size() - file_name_.size());
      root_ = folder;
      is_listed_ = backend_->can_list() && list_objects(folder);
    } else {
      open_folders(slash == std::string::npos ? "." : slash == 0 ? "/" : address.substr(0, slash));
      read_local(address);
    }

    read_header();
    read_rows();
    read_labels();
    if (backend_ != nullptr && backend_->can_list()) refuse_paths_upwards();
    if (backend_ != nullptr && !is_listed_) ask_for_objects();
    look_up_files();
    if (backend_ != nullptr) keep_versions();
    repeats_ = find_repeats(rows_.size(), [this](std::uint64_t index) { return id_of_row(index); });
    summarize();
    options_ = {};
  }

  const Facts& facts() const noexcept override { return facts_; }
  std::uint64_t size() const noexcept override { return rows_.size(); }
  std::uint64_t id(std::uint64_t index) const noexcept override {
    const std::uint64_t id = id_of_row(index);
    const std::uint64_t earlier = occurrence(repeats_, index);
    return earlier == 0 ? id : mix(id, earlier) & kIdMask;
  }
  storage::Location locate(std::uint64_t index, std::span<char> text) const noexcept override {
    const bool is_beside = (sizes_[index] & kBesideTheIndex) != 0;
    const std::size_t length = text.empty() ? 0 : write_path(index, is_beside, text);
    if (backend_ == nullptr) return in_folder(base_.get(), text, length, sizes_[index] & kSizeMask);
    const char* const version = versions_.c_str() + version_at_[index];
    return storage::Location::whole_object(*backend_, length == 0 ? nullptr : put_root_before(text, length),
                                           *version == '\0' ? nullptr : version, sizes_[index] & kSizeMask);
  }
  std::span<const storage::Backend* const> backends() const noexcept override {
    return {&backend_, backend_ != nullptr ? 1u : 0u};
  }
  Label label(std::uint64_t index) const noexcept override { return label_at(index, 0); }
  Label label_at(std::uint64_t index, std::size_t column) const noexcept override {
    const std::uint64_t at = index * label_columns_.size() + column;
    switch (facts_.label_kind) {
      case LabelKind::none:
        break;
      case LabelKind::integer:
        return {facts_.classes.empty() ? integers_[at] : static_cast<std::int64_t>(classes_[at]), 0};
      case LabelKind::real:
        return {-1, reals_[at]};
    }
    return {};
  }
  codec::Media media(std::uint64_t index) const noexcept override { return codec::media_of_name(raw_path(index)); }
  std::string name(std::uint64_t index) const override {
    const auto field = field_of_row(text_, rows_[index], path_column_);
    return field ? field->text() : std::string();
  }
  double column(std::size_t column, std::uint64_t index) const noexcept override {
    double value = 0;
    if (column < further_.size()) {
      const auto field = field_of_row(text_, rows_[index], further_[column]);
      if (field && parse_number(field->raw, value)) return value;
    }
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::string column_text(std::size_t column, std::uint64_t index) const override {
    if (column >= further_.size()) return {};
    const auto field = field_of_row(text_, rows_[index], further_[column]);
    return field ? field->text() : std::string();
  }
  std::uint64_t memory_bytes() const noexcept override {
    return held_bytes(facts_) + held_bytes(copy_) + held_bytes(header_) + held_bytes(rows_) + held_bytes(sizes_) +
           held_bytes(integers_) + held_bytes(reals_) + held_bytes(classes_) + held_bytes(repeats_) +
           held_bytes(versions_) + held_bytes(version_at_);
  }

 private:
  static constexpr std::uint64_t kBesideTheIndex = std::uint64_t{1} << 63;  // the file lies below the csv's own folder
  static constexpr std::uint64_t kSizeMask = kBesideTheIndex - 1;

  // Makes a path in `text` the name of an object; null if it does not fit.
  const char* put_root_before(std::span<char> text, std::size_t length) const noexcept {
    const std::string_view path = object_path({text.data(), length});
    if (const auto [scheme, name] = storage::split_address(path); scheme == backend_->scheme()) {
      std::memmove(text.data(), name.data(), name.size());
      text[name.size()] = '\0';
      return text.data();
    }
    if (root_.size() + path.size() >= text.size()) return nullptr;
    std::memmove(text.data() + root_.size(), path.data(), path.size());
    std::memcpy(text.data(), root_.data(), root_.size());
    text[root_.size() + path.size()] = '\0';
    return text.data();
  }

  std::size_t line_of(std::size_t offset) const {
    return 1 + static_cast<std::size_t>(
                   std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
  }
  Error error_at(ErrorKind kind, std::size_t offset, std::string_view cause, const Text& hint = {}) const {
    return Error(kind, fmt::format("{} line {}: {}", file_name_, line_of(offset), cause), hint);
  }

  void read_local(const std::string& address) {
    const os::Fd file = os::open_file(address, O_RDONLY | O_NONBLOCK);
    const std::uint64_t bytes = os::file_size(file.get(), address);
    if (bytes < kCopyBelow) {
      copy_.resize(bytes);
      copy_.resize(os::read_up_to(file.get(), copy_, 0, address));
      text_ = {reinterpret_cast<const char*>(copy_.data()), copy_.size()};
    } else {
      mapping_ = os::Mapping(file.get(), bytes, address);
      text_ = {reinterpret_cast<const char*>(mapping_.bytes().data()), mapping_.bytes().size()};
    }
  }

  // What lies below the csv's folder in a store, or below the one above if that folder is `_index`: one listing, not a
  // request for each row. False: these keys may read, and not list.
  bool list_objects(std::string_view folder) {
    has_parent_ = folder.ends_with(fmt::format("/{}/", kIndexFolder));
    if (has_parent_) folder.remove_suffix(kIndexFolder.size() + 1);
    root_ = folder;
    bool is_interrupted = false;
    const auto take = [&](const storage::Backend::Object& object) {
      objects_.emplace(object.name.substr(root_.size()), Object{object.bytes, std::string(object.version)});
      is_interrupted = objects_.size() % 1000 == 0 && options_.progress && !due_progress(objects_.size());
      return !is_interrupted;
    };
    try {
      dataset::list_objects(*backend_, root_, options_, take, facts_.notes);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::permission) throw;
      objects_.clear();
      facts_.notes.push_back("the store refuses to list what lies beside the csv: each object was asked for");
      return false;
    }
    if (is_interrupted) throw Error(ErrorKind::unavailable, "interrupted");
    return true;
  }

  // A store has no folders to go up from: `a/../b` is a key of its own there.
  void refuse_paths_upwards() const {
    for (std::uint64_t i = 0; i < rows_.size(); ++i) {
      const std::string_view path = raw_path(i);
      if (path.find("..") == std::string_view::npos || fmt::format("/{}/", path).find("/../") == std::string::npos)
        continue;
      throw error_at(ErrorKind::usage, rows_[i], fmt::format("`{}` leads upwards, which keys of a store cannot", path),
                     "write paths below the csv's folder, or whole addresses");
    }
  }

  // Each file that the rows name, where no listing tells of them.
  void ask_for_objects() {
    std::vector<std::string> paths, names;
    char buffer[kMaxPath + 1];
    for (std::uint64_t i = 0; i < rows_.size(); ++i) {
      const std::size_t length = write_path(i, false, buffer);
      if (length == 0) continue;
      paths.emplace_back(object_path({buffer, length}));
      names.push_back(object_name(paths.back()));
    }
    const auto found = look_up_objects(*backend_, {names.begin(), names.end()}, options_);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const FoundObject& object = found.at(names[i]);
      if (is_found(object.bytes)) objects_.try_emplace(paths[i], Object{object.bytes, object.version});
    }
  }

  // Of a path that object_path() gave: below root_, or a whole address, which may lead to another server.
  std::string object_name(std::string_view path) const {
    const auto [scheme, name] = storage::split_address(path);
    return scheme == backend_->scheme() ? std::string(name) : fmt::format("{}{}", root_, path);
  }

  // The key below root_ of a path as the csv has it.
  std::string_view object_path(std::string_view path) const noexcept {
    while (path.starts_with("./")) path.remove_prefix(2);
    const std::size_t scheme = path.find("://");
    if (scheme != std::string_view::npos && path.substr(0, scheme) == backend_->scheme() &&
        path.substr(scheme + 3).starts_with(root_)) {
      path.remove_prefix(scheme + 3 + root_.size());
    }
    return path;
  }

  void keep_versions() {
    char buffer[kMaxPath + 1];
    for (std::uint64_t i = 0; i < rows_.size(); ++i) {
      const std::size_t length = write_path(i, (sizes_[i] & kBesideTheIndex) != 0, buffer);
      const auto found = objects_.find(std::string(object_path({buffer, length})));
      version_at_.push_back(versions_.size());
      if (found != objects_.end()) versions_ += found->second.version;
      versions_ += '\0';
    }
    objects_ = {};
  }

  std::uint64_t size_below(const char* path) const {
    if (backend_ == nullptr) return size_of_file(base_.get(), path);
    const auto found = objects_.find(std::string(object_path(path)));
    return found == objects_.end() ? kNoFile : found->second.bytes;
  }

  // Paths are below the csv's folder, or below the one above if that folder is `_index`. One descriptor serves both:
  // that of the folder above, with `_index/` before the path.
  void open_folders(const std::string& folder) {
    os::Fd own = os::open_file(folder, O_RDONLY | O_DIRECTORY);
    has_parent_ = real_path_of(folder).ends_with(fmt::format("/{}", kIndexFolder));
    base_ = has_parent_ ? os::open_file(folder + "/..", O_RDONLY | O_DIRECTORY) : std::move(own);
  }

  std::string_view raw_path(std::uint64_t index) const noexcept {
    const auto field = field_of_row(text_, rows_[index], path_column_);
    return field ? field->raw : std::string_view();
  }

  std::uint64_t id_of_row(std::uint64_t index) const noexcept {
    char buffer[kMaxPath + 1];
    const std::size_t length = write_path(index, false, buffer);
    return id_of_path({buffer, length});
  }

  std::size_t write_path(std::uint64_t index, bool beside_the_index, std::span<char> out) const noexcept {
    const auto field = field_of_row(text_, rows_[index], path_column_);
    return field ? write_path(*field, beside_the_index, out) : 0;
  }
  static std::size_t write_path(const CsvField& field, bool beside_the_index, std::span<char> out) noexcept {
    const bool prefixed = beside_the_index && !field.raw.starts_with('/');
    std::size_t at = prefixed ? join(out, kIndexFolder, "/") : 0;
    if (prefixed && at == 0) return 0;
    if (!field.has_doubled_quotes) {
      const std::size_t length = join(out.subspan(at), field.raw);
      return length == 0 ? 0 : at + length;
    }
    for (std::size_t i = 0; i < field.raw.size(); ++i) {
      if (at + 1 >= out.size()) return 0;
      out[at++] = field.raw[i];
      if (field.raw[i] == '"') ++i;
    }
    out[at] = '\0';
    return at;
  }

  void read_header() {
    std::size_t begin = text_.starts_with("\xEF\xBB\xBF") ? 3 : 0;
    if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF")) {
      throw Error(ErrorKind::unsupported, fmt::format("cannot read `{}`: it is UTF-16 text", facts_.address),
                  "save it as UTF-8");
    }
    if (text_.find('\n') == std::string_view::npos && text_.find('\r') != std::string_view::npos) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("cannot read `{}`: its lines end with a carriage return (CR) alone", facts_.address),
                  "save it with LF or CRLF line ends");
    }
    std::vector<CsvField> fields;
    CsvRow row{.end = begin, .is_blank = true};
    while (row.is_blank) {
      if (row.end >= text_.size()) {
        throw Error(ErrorKind::corrupt,
                    fmt::format("cannot read `{}`: it is empty, without a header line", facts_.address),
                    "the first line names the columns, such as `path,label`");
      }
      row = read_row(text_, row.end, fields);
      check(row);
    }
    for (const CsvField& field : fields) header_.emplace_back(trimmed(field.text()));
    if (header_.size() == 1 && header_[0].find_first_of(";\t") != std::string::npos) {
      throw error_at(ErrorKind::unsupported, row.begin, "the columns are not separated by commas");
    }
    first_row_ = row.end;

    refuse_missing_header(fields);
    refuse_volumes();
    choose_path_column();
    choose_label_columns();
    for (std::size_t c = 0; c < header_.size(); ++c) {
      const bool is_label = std::find(label_columns_.begin(), label_columns_.end(), c) != label_columns_.end();
      if (c == path_column_ || is_label) continue;
      further_.push_back(c);
      facts_.columns.push_back(header_[c]);
    }
    facts_.path_column = header_[path_column_];
    if (label_columns_.size() == 1) facts_.label_column = header_[label_columns_[0]];
    if (label_columns_.empty() && !facts_.columns.empty()) {
      facts_.notes.push_back(
          fmt::format("no column is named `label`, so the samples have no labels; the label may be {}{}",
                      facts_.columns.size() == 1 ? "" : "one of ", listed(facts_.columns)));
    }
  }

  // A first line that names a file is a sample, not a header: it must not be lost.
  void refuse_missing_header(const std::vector<CsvField>& first) const {
    const bool has_path = std::any_of(header_.begin(), header_.end(), is_path_column);
    for (std::size_t c = 0; c < first.size(); ++c) {
      if ((has_path && !codec::media_of_name(header_[c]).is_known()) || !is_found(size_of_path(first[c]))) continue;
      throw Error(ErrorKind::corrupt,
                  fmt::format("cannot read `{}`: it has no header line; `{}` in its first line is a file",
                              facts_.address, header_[c]),
                  first.size() == 1 ? "write the line `path` before it"
                                    : "write a line before it that names the columns, such as `path,label`");
    }
  }

  // A volumes.csv without a patch: its masks would be lost, and volumes are not samples.
  void refuse_volumes() const {
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
                format_text("`{}` names volumes, such as `{}`: they are loaded as patches, and there is no {}",
                            facts_.address, first, option("patch")),
                format_text("add {} and {}; in Python: stoker.Loader(stoker.Volumes(\"{}\", patch=..., samples=...))",
                            option("patch", "72x136x136"), option("samples", "2000"), facts_.address))
        .about("patch");
  }

  void choose_path_column() {
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
        if (is_found(size_of_path(fields[c]))) {
          path_column_ = c;
          facts_.notes.push_back(
              fmt::format("paths are taken from column `{}`: its first value is a file", header_[c]));
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
                    facts_.address, listed(header_)),
        "the first line must name the columns; name the one with the paths `path`");
  }

  // Which of two columns of one name is meant, nobody can tell. `seen` is the name as it is compared.
  template <typename Seen>
  void refuse_twins(std::size_t column, Seen seen) const {
    for (std::size_t c = column + 1; c < header_.size(); ++c) {
      if (seen(header_[c]) != seen(header_[column])) continue;
      throw Error(ErrorKind::corrupt,
                  fmt::format("cannot read `{}`: columns {} and {} are both named `{}`", facts_.address, column + 1,
                              c + 1, header_[c]),
                  "give each column a name of its own");
    }
  }

  void choose_label_columns() {
    if (options_.label_columns.empty()) {
      if (const auto column = find_label_column(options_.label)) label_columns_.push_back(*column);
      return;
    }
    for (const std::string& name : options_.label_columns) {
      if (name.empty())
        throw Error(ErrorKind::usage, "a label column has no name", "name the columns of the index.csv");
      const std::size_t column = find_label_column(name).value();
      if (std::find(label_columns_.begin(), label_columns_.end(), column) != label_columns_.end()) {
        throw Error(ErrorKind::usage, fmt::format("the label column `{}` is given twice", name),
                    "name each column once");
      }
      label_columns_.push_back(column);
    }
    if (label_columns_.size() > 1) facts_.label_columns = options_.label_columns;
  }

  // None: there is no column `label`, and no other was asked for.
  std::optional<std::size_t> find_label_column(const std::string& wanted) const {
    const std::string sought = wanted.empty() ? "label" : wanted;
    const auto as_written = [](const std::string& name) { return name; };
    if (const auto column = find_column(sought, as_written)) return column;
    const auto in_any_case = [](const std::string& name) { return to_lower(name); };
    if (const auto column = find_column(to_lower(sought), in_any_case)) return column;
    if (wanted.empty()) return {};
    const std::vector<std::string_view> names(header_.begin(), header_.end());
    const std::string near = nearest(wanted, names.data(), names.size());
    throw Error(ErrorKind::not_found,
                fmt::format("cannot find the label column `{}` in `{}`: the columns are {}", wanted, facts_.address,
                            listed(header_)),
                near.empty() ? "" : fmt::format("did you mean `{}`?", near));
  }

  // `seen` is a name as it is compared.
  template <typename Seen>
  std::optional<std::size_t> find_column(const std::string& wanted, Seen seen) const {
    const auto at =
        std::find_if(header_.begin(), header_.end(), [&](const std::string& name) { return seen(name) == wanted; });
    if (at == header_.end()) return {};
    const auto column = static_cast<std::size_t>(at - header_.begin());
    refuse_twins(column, seen);
    return column;
  }

  void check(const CsvRow& row) const {
    if (row.problem == CsvProblem::unclosed_quote) {
      throw error_at(ErrorKind::corrupt, row.begin, "a quote is opened and never closed");
    }
    if (row.problem == CsvProblem::text_after_quote) {
      throw error_at(ErrorKind::corrupt, row.begin, "there is text between a closing quote and the next comma",
                     "a quote inside a quoted field is written twice: \"\"");
    }
  }

  void read_rows() {
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
      if (rows_.size() % kCountEvery == 0 && options_.progress && !due_progress(rows_.size())) {
        throw Error(ErrorKind::unavailable, "interrupted");
      }
    }
    if (rows_.empty()) {
      throw Error(ErrorKind::not_found,
                  fmt::format("cannot find samples in `{}`: it has a header and no rows", facts_.address));
    }
    rows_.shrink_to_fit();
  }

  bool due_progress(std::uint64_t seen) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_report_) return true;
    next_report_ = now + std::chrono::milliseconds(100);
    return options_.progress(seen);
  }

  CsvField label_field(std::uint64_t index, std::size_t column = 0) const {
    return field_of_row(text_, rows_[index], label_columns_[column]).value_or(CsvField{});
  }

  void read_labels() {
    if (label_columns_.empty()) return;
    if (label_columns_.size() > 1) return read_label_columns();
    const std::string& column = header_[label_columns_[0]];
    bool all_integers = true, all_reals = true, all_whole = true;
    std::uint64_t empty = 0, first_too_large = 0;
    std::size_t first_empty = 0;
    for (std::uint64_t i = 0; i < rows_.size(); ++i) {
      const std::string_view text = label_field(i).raw;
      if (trimmed(text).empty()) {
        if (empty++ == 0) first_empty = rows_[i];
        continue;
      }
      std::int64_t integer;
      float real;
      const bool had_only_integers = all_integers;
      all_integers = all_integers && parse_number(text, integer);
      if (had_only_integers && !all_integers) first_too_large = i;  // if it is one at all
      all_whole = all_whole && (all_integers || is_whole_number(text));
      all_reals = all_reals && (all_integers || parse_number(text, real));
      if (!all_reals && empty > 0) break;
    }
    if (empty == rows_.size()) {
      facts_.notes.push_back(fmt::format("column `{}` is empty: the samples have no labels", column));
      return;
    }
    if (empty > 0) {
      throw error_at(ErrorKind::corrupt, first_empty, fmt::format("the label (`{}`) is empty", column),
                     format_text("every row needs a label, or none; {} names another column", option("label")));
    }
    if (all_whole && !all_integers) throw too_large_label(first_too_large, 0);
    facts_.label_kind = all_integers || !all_reals ? LabelKind::integer : LabelKind::real;
    if (all_integers) {
      integers_.resize(rows_.size());
      for (std::uint64_t i = 0; i < rows_.size(); ++i) parse_number(label_field(i).raw, integers_[i]);
    } else if (all_reals) {
      reals_.resize(rows_.size());
      for (std::uint64_t i = 0; i < rows_.size(); ++i) parse_number(label_field(i).raw, reals_[i]);
    } else {
      number_classes();
    }
  }

  // float32 would take its place for every row, and round the labels of the others.
  Error too_large_label(std::uint64_t row, std::size_t column) const {
    return error_at(ErrorKind::unsupported, rows_[row],
                    fmt::format("the label (`{}`) {} is beyond the integers that fit 64 bits",
                                header_[label_columns_[column]], trimmed(label_field(row, column).raw)),
                    "whole numbers from -2^63 to 2^63-1 are labels; with a decimal point they are float32");
  }

  // Several labels per sample are one row of numbers: integers if all are, else reals.
  void read_label_columns() {
    const std::size_t columns = label_columns_.size();
    bool all_integers = true, all_whole = true;
    std::optional<std::pair<std::uint64_t, std::size_t>> too_large;  // row and column
    for (std::uint64_t i = 0; i < rows_.size(); ++i) {
      for (std::size_t c = 0; c < columns; ++c) {
        const std::string_view text = label_field(i, c).raw;
        std::int64_t integer;
        float real;
        const bool is_integer = parse_number(text, integer);
        all_integers = all_integers && is_integer;
        all_whole = all_whole && (is_integer || is_whole_number(text));
        if (!is_integer && !too_large) too_large.emplace(i, c);
        if (is_integer || parse_number(text, real)) continue;
        throw error_at(ErrorKind::corrupt, rows_[i],
                       fmt::format("the label (`{}`) is {}", header_[label_columns_[c]],
                                   trimmed(text).empty() ? "empty" : "not a number"),
                       format_text("several label columns hold numbers only; a column of texts is used alone: {}",
                                   option("label", "name")));
      }
    }
    if (all_whole && !all_integers) throw too_large_label(too_large->first, too_large->second);
    facts_.label_kind = all_integers ? LabelKind::integer : LabelKind::real;
    (all_integers ? integers_.resize(rows_.size() * columns) : reals_.resize(rows_.size() * columns));
    for (std::uint64_t i = 0; i < rows_.size(); ++i) {
      for (std::size_t c = 0; c < columns; ++c) {
        const std::string_view text = label_field(i, c).raw;
        const std::uint64_t at = i * columns + c;
        all_integers ? parse_number(text, integers_[at]) : parse_number(text, reals_[at]);
      }
    }
  }

  void number_classes() {
    std::unordered_map<std::string_view, std::uint32_t> numbers;  // by the field as it stands in the text
    std::vector<CsvField> distinct;
    classes_.resize(rows_.size());
    for (std::uint64_t i = 0; i < rows_.size(); ++i) {
      const CsvField field = label_field(i);
      const auto [at, is_new] = numbers.try_emplace(field.raw, static_cast<std::uint32_t>(distinct.size()));
      if (is_new) distinct.push_back(field);
      classes_[i] = at->second;
    }
    std::vector<std::string> names;
    names.reserve(distinct.size());
    for (const CsvField& field : distinct) names.push_back(field.text());
    facts_.classes = names;
    std::sort(facts_.classes.begin(), facts_.classes.end());
    facts_.classes.erase(std::unique(facts_.classes.begin(), facts_.classes.end()), facts_.classes.end());
    std::vector<std::uint32_t> sorted(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto at = std::lower_bound(facts_.classes.begin(), facts_.classes.end(), names[i]);
      sorted[i] = static_cast<std::uint32_t>(at - facts_.classes.begin());
    }
    for (std::uint32_t& c : classes_) c = sorted[c];
  }

  // With kBesideTheIndex where the file was found below the csv's own folder and that is not the base.
  std::uint64_t size_of_path(const CsvField& field) const {
    char buffer[kMaxPath + 1];
    if (has_parent_ && !field.raw.starts_with('/') && write_path(field, true, buffer) != 0) {
      const std::uint64_t bytes = size_below(buffer);
      if (is_found(bytes)) return bytes | kBesideTheIndex;
    }
    return write_path(field, false, buffer) == 0 ? kNoFile : size_below(buffer);
  }

  void look_up_files() {
    sizes_.resize(rows_.size());
    const NotFound not_found = look_up(
        sizes_, [this](std::uint64_t i) { return size_of_path(*field_of_row(text_, rows_[i], path_column_)); },
        options_);
    if (not_found.count == 0) return;
    char buffer[kMaxPath + 1];
    write_path(not_found.first, false, buffer);
    const std::string why = backend_ == nullptr ? why_no_file(base_.get(), buffer, name(not_found.first))
                                                : fmt::format("there is no object `{}` below `{}://{}`",
                                                              name(not_found.first), backend_->scheme(), root_);
    if (!not_found.is_refused) {
      facts_.notes.push_back(not_found.note(why));
      return;
    }
    Text hint = has_parent_ ? "paths are looked up below the csv's folder and the one above it"
                            : "paths are looked up below the csv's folder";
    if (not_found.count < rows_.size() && !options_.skip_losses)
      hint = format_text("{}; {} goes on without it", hint, option("on_error", "skip"));
    throw error_at(ErrorKind::not_found, rows_[not_found.first], not_found.cause(why), hint);
  }

  void summarize() {
    Fingerprint fingerprint;
    char buffer[kMaxPath + 1];
    for (std::uint64_t i = 0; i < rows_.size(); ++i) {
      const std::uint64_t bytes = sizes_[i] & kSizeMask;
      facts_.total_bytes += bytes;
      facts_.largest_bytes = std::max(facts_.largest_bytes, bytes);
      const std::size_t length = write_path(i, false, buffer);
      fingerprint.add({buffer, length}, bytes, label(i));
      for (std::size_t c = 1; c < label_columns_.size(); ++c) fingerprint.add({buffer, length}, bytes, label_at(i, c));
    }
    facts_.fingerprint = fingerprint.value();
  }

  struct Object {
    std::uint64_t bytes = 0;
    std::string version;
  };

  OpenOptions options_;                        // while it is being made
  const storage::Backend* backend_ = nullptr;  // not null: the csv and its files are objects, below root_
  std::string root_;
  std::unordered_map<std::string, Object> objects_;  // while it is being made
  std::string versions_;                             // of the objects, each with a NUL
  std::vector<std::uint64_t> version_at_;            // in versions_
  std::chrono::steady_clock::time_point next_report_{};
  Facts facts_;
  std::string file_name_;
  os::Fd base_;
  bool has_parent_ = false;
  std::vector<std::byte> copy_;
  os::Mapping mapping_;
  std::string_view text_;
  std::vector<std::string> header_;
  std::size_t first_row_ = 0;
  std::size_t path_column_ = 0;
  std::vector<std::size_t> label_columns_;
  std::vector<std::size_t> further_;  // columns of the file, by our own numbers
  bool is_listed_ = false;            // objects_ has all that lies below root_
  std::vector<std::uint64_t> rows_;   // offsets
  std::vector<std::uint64_t> sizes_;
  std::vector<std::int64_t> integers_;
  std::vector<float> reals_;
  std::vector<std::uint32_t> classes_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> repeats_;
};

}  // namespace

DatasetPtr open_csv(const std::string& address, const OpenOptions& options) {
  return std::make_shared<CsvDataset>(address, options);
}

}  // namespace stoker::dataset
