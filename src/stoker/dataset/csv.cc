// An index.csv: one row per sample, with a path, perhaps a label, and any further columns.
//
// A sample is the offset of its row, its size and its label. Paths and further columns are read from the row when asked
// for.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "stoker/dataset/csv_files.h"
#include "stoker/dataset/csv_labels.h"
#include "stoker/dataset/csv_table.h"
#include "stoker/dataset/files.h"
#include "stoker/dataset/kinds.h"
#include "stoker/dataset/listing.h"
#include "stoker/dataset/lookup.h"
#include "stoker/dataset/scan.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {
namespace {

class CsvDataset final : public Dataset {
 public:
  CsvDataset(const std::string& address, const OpenOptions& options)
      : table_(address), files_(address, options, facts_.notes) {
    facts_.address = address;
    facts_.kind = "index.csv";
    facts_.seek_path = seek_path(options, storage::store_of(address) != nullptr ? address : real_path_of(address));
    table_.read_header(
        options, [this](const CsvField& field) { return files_.is_file(field); }, facts_);
    table_.read_rows(options.progress);
    labels_.read(table_, facts_);
    files_.look_up(table_, facts_.notes);
    repeats_ = find_repeats(table_.size(), [this](std::uint64_t index) { return id_of_row(index); });
    summarize();
  }

  const Facts& facts() const noexcept override { return facts_; }
  std::uint64_t size() const noexcept override { return table_.size(); }
  std::uint64_t id(std::uint64_t index) const noexcept override {
    const std::uint64_t id = id_of_row(index);
    const std::uint64_t earlier = occurrence(repeats_, index);
    return earlier == 0 ? id : mix(id, earlier) & kIdMask;
  }
  storage::Location locate(std::uint64_t index, std::span<char> text) const noexcept override {
    return files_.locate(table_, index, text);
  }
  std::span<const storage::Backend* const> backends() const noexcept override { return files_.backends(); }
  Label label(std::uint64_t index) const noexcept override { return labels_.at(index, 0); }
  Label label_at(std::uint64_t index, std::size_t column) const noexcept override { return labels_.at(index, column); }
  codec::Media media(std::uint64_t index) const noexcept override {
    return codec::media_of_name(table_.path(index).value_or(CsvField{}).raw);
  }
  std::string name(std::uint64_t index) const override { return table_.path(index).value_or(CsvField{}).text(); }
  double column(std::size_t column, std::uint64_t index) const noexcept override {
    double value = 0;
    if (parse_field(further(column, index).raw, value)) return value;
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::string column_text(std::size_t column, std::uint64_t index) const override {
    return further(column, index).text();
  }
  std::uint64_t memory_bytes() const noexcept override {
    return held_bytes(facts_) + table_.memory_bytes() + labels_.memory_bytes() + files_.memory_bytes() +
           held_bytes(repeats_);
  }

 private:
  CsvField further(std::size_t column, std::uint64_t index) const noexcept {
    if (column >= table_.further_columns().size()) return {};
    return table_.field(index, table_.further_columns()[column]).value_or(CsvField{});
  }

  std::uint64_t id_of_row(std::uint64_t index) const noexcept {
    char buffer[kMaxPath + 1];
    const std::size_t length = CsvFiles::write_path(table_, index, buffer);
    return id_of_path({buffer, length});
  }

  void summarize() {
    Fingerprint fingerprint;
    char buffer[kMaxPath + 1];
    for (std::uint64_t i = 0; i < table_.size(); ++i) {
      const std::uint64_t bytes = files_.bytes(i);
      facts_.total_bytes += bytes;
      facts_.largest_bytes = std::max(facts_.largest_bytes, bytes);
      const std::size_t length = CsvFiles::write_path(table_, i, buffer);
      const std::size_t labels = std::max<std::size_t>(1, table_.label_columns().size());
      for (std::size_t c = 0; c < labels; ++c) fingerprint.add({buffer, length}, bytes, label_at(i, c));
    }
    facts_.fingerprint = fingerprint.value();
  }

  Facts facts_;
  CsvTable table_;
  CsvFiles files_;
  CsvLabels labels_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> repeats_;
};

}  // namespace

DatasetPtr open_csv(const std::string& address, const OpenOptions& options) {
  return std::make_shared<CsvDataset>(address, options);
}

}  // namespace stoker::dataset
