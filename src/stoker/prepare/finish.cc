#include "stoker/prepare/finish.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/hash.h"
#include "stoker/dataset/files.h"
#include "stoker/os/file.h"

namespace stoker::prepare {
namespace {

using dataset::PackRow;

void append_csv(std::string& out, std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos && !field.empty()) {
    out += field;
    return;
  }
  out += '"';
  for (const char c : field) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

}  // namespace

void write_index(const std::string& folder, const dataset::Dataset& source, std::vector<JournalRow> rows,
                 dataset::PackManifest& pack) {
  sort_rows(rows);
  const dataset::Facts& facts = source.facts();
  pack.count = rows.size();
  pack.label_kind = facts.label_kind;
  pack.classes = facts.classes;
  pack.columns = facts.columns;
  const auto add = [&](std::string_view name, std::string_view bytes) {
    os::write_file(fmt::format("{}/{}", folder, name), bytes);
    pack.files.push_back({std::string(name), bytes.size(), hash_text(bytes)});
  };

  dataset::Fingerprint fingerprint;
  std::map<std::string_view, std::uint64_t> media;
  std::string names, index = dataset::index_header(pack.count, pack.label_kind);
  index.reserve(index.size() + rows.size() * sizeof(PackRow));
  for (const JournalRow& row : rows) {
    index.append(reinterpret_cast<const char*>(&row.row), sizeof(PackRow));
    const std::string name = source.name(row.position);
    dataset::append_name(names, name);
    fingerprint.add(name, row.row.bytes, dataset::label_of(row.row, pack.label_kind));
    if (pack.kind == dataset::PackKind::encoded) ++media[codec::name(codec::media_of_name(name))];
  }
  pack.fingerprint = fingerprint.value();
  if (pack.kind == dataset::PackKind::encoded) {
    std::vector<std::string_view> words;
    words.reserve(media.size());
    for (const auto& entry : media) words.push_back(entry.first);
    pack.content = fmt::format("{}", fmt::join(words, ", "));
  }
  add(dataset::kPackIndex, index);
  index = {};
  add(dataset::kPackNames, names);
  names = {};
  if (!pack.columns.empty()) {
    std::string table;
    const auto add_row = [&](const auto& field) {
      for (std::size_t c = 0; c < pack.columns.size(); ++c) {
        if (c > 0) table += ',';
        append_csv(table, field(c));
      }
      table += '\n';
    };
    add_row([&](std::size_t c) { return pack.columns[c]; });
    for (const JournalRow& row : rows) {
      add_row([&](std::size_t c) { return source.column_text(c, row.position); });
    }
    add(dataset::kPackColumns, table);
  }
  os::write_file(fmt::format("{}/{}", folder, dataset::kPackJson), dataset::to_json(pack));
}

void sort_rows(std::vector<JournalRow>& rows) {
  std::sort(rows.begin(), rows.end(), [](const JournalRow& a, const JournalRow& b) { return a.position < b.position; });
}

std::uint64_t folder_bytes(const std::string& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_regular_file(error)) bytes += entry.file_size(error);
  }
  return bytes;
}

}  // namespace stoker::prepare
