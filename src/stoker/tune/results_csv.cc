#include "stoker/tune/results_csv.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/csv_text.h"
#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/tune/classify.h"

namespace stoker::tune {
namespace {

// The columns that are no knobs, in the order of the file; `trial` and `status` stand before the knobs.
struct Column {
  std::string_view name;
  std::optional<double> Row::*real = nullptr;
  std::optional<std::uint64_t> Row::*count = nullptr;
  std::string Row::*text = nullptr;
};
constexpr std::array kColumns = {
    Column{.name = "images_per_s", .real = &Row::images_per_s},
    Column{.name = "ci_low", .real = &Row::ci_low},
    Column{.name = "ci_high", .real = &Row::ci_high},
    Column{.name = "steps", .count = &Row::steps},
    Column{.name = "warmup_steps", .count = &Row::warmup_steps},
    Column{.name = "step_ms", .real = &Row::step_ms},
    Column{.name = "data_ms", .real = &Row::data_ms},
    Column{.name = "h2d_ms", .real = &Row::h2d_ms},
    Column{.name = "compute_ms", .real = &Row::compute_ms},
    Column{.name = "bound", .text = &Row::bound},
    Column{.name = "verdict", .text = &Row::verdict},
    Column{.name = "queue_depth", .real = &Row::queue_depth},
    Column{.name = "host_peak_bytes", .count = &Row::host_peak_bytes},
    Column{.name = "device_allocated_bytes", .count = &Row::device_allocated_bytes},
    Column{.name = "device_reserved_bytes", .count = &Row::device_reserved_bytes},
    Column{.name = "cpu_seconds", .real = &Row::cpu_seconds},
    Column{.name = "error", .text = &Row::error},
    Column{.name = "trial_seconds", .real = &Row::trial_seconds},
};
constexpr std::array<std::string_view, 14> kKnownKnobs = {
    "batch_size",       "num_workers", "prefetch_factor", "pin_memory", "persistent_workers",
    "accumulate_steps", "storage",     "checkpointing",   "amp",        "io_depth",
    "io_batch",         "read_ahead",  "img_size",        "workers"};

std::string cell(const Row& row, const Column& column) {
  if (column.real != nullptr) return row.*column.real ? fmt::format("{}", *(row.*column.real)) : "";
  if (column.count != nullptr) return row.*column.count ? fmt::format("{}", *(row.*column.count)) : "";
  return csv_field(row.*column.text);
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// What tables write where there is nothing.
bool is_absent(std::string_view text) {
  return text.empty() || is_one_of(to_lower(text), {"nan", "none", "null", "n/a", "na", "-"});
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view file, const ColumnMap& columns)
      : text_(text), file_(file), columns_(columns) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  Results read() {
    if (!next_row()) throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: it is empty", file_));
    read_header();
    while (next_row()) read_fields();
    for (const Ignored& one : ignored_) {
      results_.notes.push_back(
          one.differs
              ? format_text("column `{}` is not used, though rows of one point differ in it: {} makes it a knob",
                            one.name, option("map", fmt::format("{}={}", one.name, one.name)))
              : Text(fmt::format("column `{}` is not used", one.name)));
    }
    for (const auto& [taken, count] : statuses_) {
      results_.notes.push_back(fmt::format("the status `{}` of {} {} is read as {}", taken.first, count,
                                           count == 1 ? "row" : "rows", name(taken.second)));
    }
    return std::move(results_);
  }

 private:
  enum class Role : std::uint8_t { ignored, trial, status, figure, knob };
  struct Place {
    Role role = Role::ignored;
    std::string name;
    const Column* column = nullptr;
  };

  [[noreturn]] void refuse(const std::string& why, Text hint = {}) const {
    throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`, line {}: {}", file_, line_, why), std::move(hint));
  }

  // The next row that is neither blank nor a comment, into fields_; line_ is where it begins.
  bool next_row() {
    while (at_ < text_.size()) {
      line_ += static_cast<std::size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                                   text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n'));
      counted_ = at_;
      if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
        continue;
      }
      std::vector<CsvField> raw;
      const CsvRow row = read_row(text_, at_, raw);
      if (row.problem == CsvProblem::unclosed_quote) refuse("a quote is never closed");
      if (row.problem == CsvProblem::text_after_quote) {
        refuse("text follows a closing quote", "a quote inside a quoted field is written twice: \"\"");
      }
      at_ = row.end;
      if (row.is_blank) continue;
      fields_.clear();
      for (const CsvField& one : raw) fields_.push_back(one.text());
      return true;
    }
    return false;
  }

  std::string our_word(const std::string& theirs) const {
    for (const auto& [ours, name] : columns_) {
      if (name == theirs) return ours;
    }
    return columns_.contains(theirs) ? std::string() : theirs;  // the map took its place
  }

  // A word of ours that is misspelt would become a knob without a word.
  static void refuse_misspelt(const std::string& ours) {
    std::vector<std::string_view> words(kKnownKnobs.begin(), kKnownKnobs.end());
    words.insert(words.end(), {"trial", "status"});
    for (const Column& column : kColumns) words.push_back(column.name);
    if (std::find(words.begin(), words.end(), ours) != words.end()) return;
    const std::string near = nearest(ours, words.data(), words.size());
    if (!near.empty()) {
      throw Error(ErrorKind::usage,
                  format_text("`{}`: there is no word `{}` of ours", option("map", fmt::format("{}=...", ours)), ours),
                  fmt::format("did you mean `{}`?", near));
    }
  }

  void read_header() {
    for (const auto& [ours, theirs] : columns_) {
      refuse_misspelt(ours);
      if (std::find(fields_.begin(), fields_.end(), theirs) == fields_.end()) {
        const std::vector<std::string_view> names(fields_.begin(), fields_.end());
        const std::string near = nearest(theirs, names.data(), names.size());
        throw Error(ErrorKind::usage,
                    fmt::format("cannot take {} from the column `{}`: `{}` has none of that name", ours, theirs, file_),
                    near.empty() ? fmt::format("its columns: `{}`", fmt::join(fields_, "`, `"))
                                 : fmt::format("did you mean `{}`?", near));
      }
    }
    std::size_t status = fields_.size(), rate = fields_.size();
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (std::find(fields_.begin(), fields_.begin() + static_cast<std::ptrdiff_t>(i), fields_[i]) !=
          fields_.begin() + static_cast<std::ptrdiff_t>(i)) {
        refuse(fmt::format("two columns are called `{}`", fields_[i]));
      }
      Place place{.role = Role::ignored, .name = our_word(fields_[i]), .column = nullptr};
      const auto figure =
          std::find_if(kColumns.begin(), kColumns.end(), [&](const Column& c) { return c.name == place.name; });
      if (place.name == "trial") {
        place.role = Role::trial;
      } else if (place.name == "status") {
        place.role = Role::status;
        status = i;
      } else if (figure != kColumns.end()) {
        place.role = Role::figure;
        place.column = &*figure;
        if (place.name == "images_per_s") rate = i;
      } else if (std::find(kKnownKnobs.begin(), kKnownKnobs.end(), place.name) != kKnownKnobs.end() ||
                 (!place.name.empty() && columns_.contains(place.name))) {
        place.role = Role::knob;
      }
      places_.push_back(std::move(place));
    }
    if (rate == fields_.size()) {
      refuse("no column is called images_per_s",
             format_text("name the one that holds the rate: {}; there are: `{}`", option("map", "images_per_s=NAME"),
                         fmt::format("{}", fmt::join(fields_, "`, `"))));
    }
    has_status_ = status != fields_.size();
    for (std::size_t i = 0; i < places_.size(); ++i) {
      Place& place = places_[i];
      if (place.role == Role::ignored && !place.name.empty() && i > status && i < rate) place.role = Role::knob;
      if (place.role == Role::knob) results_.knobs.push_back(place.name);
      if (place.role == Role::ignored) ignored_.push_back({.at = i, .name = fields_[i]});
    }
    if (results_.knobs.empty()) {
      refuse("no column is a knob",
             "knobs stand between `status` and `images_per_s`, or are called `batch_size`, `num_workers`, ...");
    }
  }

  double number(const Place& place, const std::string& text) const {
    const std::optional<double> number = number_of(text);
    if (!number || text == "true" || text == "false" || *number < 0) {
      refuse(fmt::format("{} is `{}`, not a number that it can be", place.name, text));
    }
    return *number;
  }

  std::uint64_t whole(const Place& place, const std::string& text) const {
    const double number = this->number(place, text);
    if (number != std::floor(number) || number > 9e18)
      refuse(fmt::format("{} is `{}`, not a whole number", place.name, text));
    return static_cast<std::uint64_t>(number);
  }

  void read_fields() {
    if (fields_.size() != places_.size()) {
      refuse(fmt::format("{} fields, but the header has {}", fields_.size(), places_.size()));
    }
    Row row{.trial = results_.rows.size() + 1};
    std::string status;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const Place& place = places_[i];
      const std::string& text = fields_[i];
      if (place.role == Role::status) status = text;
      if (place.role == Role::knob) row.knobs[place.name] = text;
      if (place.role == Role::trial && !is_absent(text)) row.trial = whole(place, text);
      if (place.role != Role::figure) continue;
      if (place.column->text != nullptr) {
        row.*place.column->text = text;
      } else if (!is_absent(text)) {
        if (place.column->real != nullptr) row.*place.column->real = number(place, text);
        if (place.column->count != nullptr) row.*place.column->count = whole(place, text);
      }
    }
    for (const auto& [knob, word] : row.knobs) {
      if (word.empty()) refuse(fmt::format("the knob {} has no value", knob));
    }
    for (Ignored& one : ignored_) {
      const auto [at, is_new] = one.values.emplace(row.knobs, fields_[one.at]);
      one.differs = one.differs || at->second != fields_[one.at];
    }
    row.status = status_of(status, row);
    if (const std::string word = to_lower(status); !word.empty() && word != name(row.status))
      ++statuses_[{status, row.status}];
    if (row.status == Status::ok && !row.images_per_s) refuse("its status is ok, but images_per_s is empty");
    results_.rows.push_back(std::move(row));
  }

  Status status_of(const std::string& text, const Row& row) const {
    const std::string word = to_lower(text);
    if (const std::optional<Status> ours = parse_status(word)) return *ours;
    if (!has_status_ || word.empty()) {
      if (!is_absent(row.error)) return classify_text(row.error).status;
      if (row.images_per_s) return Status::ok;
      return Status::killed_unknown;
    }
    if (is_one_of(word, {"success", "succeeded", "passed", "pass", "done", "complete", "completed", "finished"}))
      return Status::ok;
    if (is_one_of(word, {"timeout", "timed_out", "hung"})) return Status::hang;
    if (is_one_of(word, {"oom", "out_of_memory"})) {
      const Status status = classify_text(row.error).status;
      return name(status).starts_with("oom") ? status : Status::oom_device;
    }
    if (is_one_of(word, {"skipped", "skip"})) return Status::pruned;
    if (is_one_of(word, {"error", "err", "fail", "failed", "failure", "crash", "crashed", "exception"})) {
      return classify_text(is_absent(row.error) ? std::string_view() : std::string_view(row.error)).status;
    }
    refuse(fmt::format("the status `{}` is not one that we know", text),
           format_text("write ok, error, or one of Stoker's own such as oom_device; if another column holds it: {}",
                       option("map", "status=NAME")));
  }

  std::string_view text_;
  std::string_view file_;
  const ColumnMap& columns_;
  std::size_t at_ = 0, counted_ = 0, line_ = 1;
  // A column that is neither ours nor a knob, and what it says of each point first.
  struct Ignored {
    std::size_t at = 0;
    std::string name = {};
    std::map<Point, std::string> values = {};
    bool differs = false;
  };

  std::vector<std::string> fields_;
  std::vector<Place> places_;
  std::vector<Ignored> ignored_;
  bool has_status_ = false;
  std::map<std::pair<std::string, Status>, std::size_t> statuses_;  // of others, and what was made of them
  Results results_;
};

}  // namespace

std::string results_header(std::span<const std::string> knobs) {
  std::string line = "trial,status";
  for (const std::string& knob : knobs) line += "," + csv_field(knob);
  for (const Column& column : kColumns) line += fmt::format(",{}", column.name);
  return line + "\n";
}

std::string results_line(const Row& row, std::span<const std::string> knobs) {
  std::string line = fmt::format("{},{}", row.trial, name(row.status));
  for (const std::string& knob : knobs) {
    const auto found = row.knobs.find(knob);
    line += "," + (found == row.knobs.end() ? std::string() : csv_field(found->second));
  }
  for (const Column& column : kColumns) line += "," + cell(row, column);
  return line + "\n";
}

void add_column(ColumnMap& columns, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(ErrorKind::usage, fmt::format("`{}` does not say which column is meant", text),
                "write it like images_per_s=throughput");
  }
  const auto [at, is_new] = columns.emplace(text.substr(0, equals), text.substr(equals + 1));
  if (!is_new) {
    throw Error(ErrorKind::usage, fmt::format("two columns are given for {}: `{}` and `{}`", at->first, at->second,
                                              text.substr(equals + 1)));
  }
}

Results read_results(std::string_view text, std::string_view file, const ColumnMap& columns) {
  return Reader(text, file, columns).read();
}

}  // namespace stoker::tune
