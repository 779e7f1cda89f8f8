#include "stoker/prepare/stage_manifest.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/version.h"
#include "stoker/os/file.h"
#include "stoker/os/read_file.h"
#include "stoker/os/write_all.h"

namespace stoker::prepare {
namespace {

constexpr std::string_view kStageSchema = "stoker.stage_manifest/1";
constexpr std::size_t kFlushBytes = 4096;
constexpr std::uint64_t kLargestManifest = std::uint64_t{1} << 36;

std::string line_of(const std::string& path, const StagedFile& file) {
  return Json::array({path, file.bytes, file.version, file.modified_ns}).dump() + "\n";
}

}  // namespace

StageManifest::StageManifest(const std::string& folder) : path_(fmt::format("{}/{}", folder, dataset::kStageManifest)) {
  if (!os::exists(path_)) return;
  read(os::read_text(path_, kLargestManifest));
  was_there_ = true;
}

void StageManifest::read(const std::string& text) {
  const std::size_t first_end = text.find('\n');
  const Json head = Json::parse_or_null(std::string_view(text).substr(0, first_end));
  if (!head.is_object() || !head["schema"].is_string() || head["schema"].text() != kStageSchema) {
    throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: it does not begin as a manifest of stage", path_),
                "if the folder holds nothing that you need, remove the folder and stage again");
  }
  if (head["source"].is_string()) source_ = head["source"].text();
  settings_ = head["settings"];
  // The last line may be cut off by a kill: it is not whole, and its file has not got its name.
  for (std::size_t at = first_end; at != std::string::npos && ++at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    const auto line = Json::try_parse(std::string_view(text).substr(at, end - at));
    at = end;
    if (!line || !line->is_array() || line->size() != 4 || !(*line)[0].is_string() || !(*line)[2].is_string()) continue;
    const auto bytes = (*line)[1].as<std::uint64_t>();
    const auto modified_ns = (*line)[3].as<std::int64_t>();
    if (!bytes || !modified_ns) continue;
    Known& known = files_[(*line)[0].text()];
    known.before = std::exchange(known.now, {*bytes, (*line)[2].text(), *modified_ns});
  }
}

StageManifest::Known* StageManifest::find(const std::string& path) noexcept {
  const auto found = files_.find(path);
  return found == files_.end() ? nullptr : &found->second;
}

std::string StageManifest::text() const {
  Json head = {{"schema", kStageSchema}, {"stoker_version", kVersion}, {"source", source_}};
  head["settings"] = settings_;
  std::string out = head.dump() + "\n";
  std::vector<const Files::value_type*> sorted;
  sorted.reserve(files_.size());
  for (const auto& file : files_) sorted.push_back(&file);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
  for (const auto* const file : sorted) {
    const Known& known = file->second;
    if (known.before.modified_ns != 0) out += line_of(file->first, known.before);
    out += line_of(file->first, known.now);
  }
  return out;
}

void StageManifest::begin(const std::string& source, const Json& settings) {
  source_ = source;
  settings_ = settings;
  os::write_file(path_, text());
  fd_ = os::open_file(path_, O_WRONLY | O_APPEND);
}

void StageManifest::add(const std::string& path, StagedFile file) {
  pending_ += line_of(path, file);
  Known& known = files_[path];
  known.before = std::exchange(known.now, std::move(file));
}

void StageManifest::flush() {
  // Some lines at a time: a full disk loses little room to a piece that it took in part.
  for (std::size_t at = 0; at < pending_.size();) {
    const std::size_t line_end = pending_.find('\n', std::min(at + kFlushBytes, pending_.size() - 1));
    const std::size_t end = line_end == std::string::npos ? pending_.size() : line_end + 1;
    const int error_number = os::write_all(fd_.get(), std::as_bytes(std::span(pending_.data() + at, end - at)));
    if (error_number != 0) {
      pending_.replace(0, at, "\n");  // ends a line that is there in part
      throw system_error(error_number, "write", path_);
    }
    at = end;
  }
  pending_.clear();
}

void StageManifest::finish() {
  for (auto& [path, known] : files_) known.before = {};
  os::write_file(path_, text());
}

}  // namespace stoker::prepare
