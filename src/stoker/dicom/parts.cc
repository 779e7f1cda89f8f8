#include "stoker/dicom/parts.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"
#include "stoker/os/file.h"
#include "stoker/os/read_file.h"

namespace stoker::dicom {
namespace {

constexpr const char* kNoteSchema = "stoker.prepare_part/1";
constexpr std::string_view kNotePrefix = ".part-";

std::vector<std::string> note_files(const std::string& index_folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(index_folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kNotePrefix) && name.ends_with(".json")) paths.push_back(entry.path().string());
  }
  std::ranges::sort(paths);
  return paths;
}

std::optional<PartNote> read_note(const std::string& path) {
  try {
    const Json json = Json::parse_or_null(os::read_text(path));
    if (!json.is_object() || json.value("schema", "") != kNoteSchema) return std::nullopt;
    PartNote note;
    note.part = {json.at("part").get<std::uint64_t>(), json.at("of").get<std::uint64_t>()};
    note.plan = json.at("plan").get<std::uint64_t>();
    note.refused = json.at("refused").get<std::vector<std::string>>();
    return note;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

void write_part_note(const std::string& index_folder, const PartNote& note) {
  const Json json = {{"schema", kNoteSchema},
                     {"part", note.part.number},
                     {"of", note.part.of},
                     {"plan", note.plan},
                     {"refused", note.refused}};
  os::write_file(fmt::format("{}/{}{}.json", index_folder, kNotePrefix, note.part.folder()), json.dump() + "\n");
}

void remove_part_notes(const std::string& index_folder) noexcept {
  for (const std::string& path : note_files(index_folder)) (void)os::remove_file(path);
}

std::set<std::string> require_all_parts(const std::string& index_folder, const std::string& destination,
                                        std::uint64_t plan) {
  const auto refuse = [&](const std::string& why, const Text& hint) {
    throw Error(ErrorKind::usage, fmt::format("cannot join the parts of `{}`: {}", destination, why), hint);
  };
  const auto make_again = [](const prepare::PartName& part) {
    return format_text("run the same command with {} in place of {}", option("part", part.text()), option("join"));
  };
  std::vector<std::pair<PartNote, std::string>> notes;
  for (const std::string& path : note_files(index_folder)) {
    if (auto note = read_note(path)) notes.emplace_back(std::move(*note), path);
  }
  if (notes.empty()) refuse("no part is finished", format_text("make them first, such as {}", option("part", "1/4")));
  const prepare::PartName& one = notes.front().first.part;
  std::set<std::uint64_t> made;
  std::set<std::string> refused;
  for (const auto& [note, path] : notes) {
    if (note.part.of != one.of) {
      refuse(fmt::format("part {} and part {} overlap", one.text(), note.part.text()),
             fmt::format("remove `{}` or `{}`", notes.front().second, path));
    }
    if (note.plan != plan) {
      refuse(fmt::format("part {} was made from other files than the source has now", note.part.text()),
             make_again(note.part));
    }
    made.insert(note.part.number);
    refused.insert(note.refused.begin(), note.refused.end());
  }
  for (std::uint64_t number = 1; number <= one.of; ++number) {
    const prepare::PartName part{number, one.of};
    if (!made.contains(number)) refuse(fmt::format("part {} is not finished", part.text()), make_again(part));
  }
  return refused;
}

}  // namespace stoker::dicom
