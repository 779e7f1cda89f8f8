#include "stoker/dicom/manifest.h"

#include <filesystem>
#include <unordered_set>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/os/file.h"
#include "stoker/os/file_facts.h"
#include "stoker/os/folder_entries.h"
#include "stoker/os/read_file.h"

namespace stoker::dicom {
namespace {

constexpr const char* kSchema = "stoker.dicom_series/1";
constexpr std::uint64_t kMostManifest = std::uint64_t{1} << 30;

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name != "." && name != "..";
}

}  // namespace

std::string Manifest::to_text() const {
  Json json = {{"schema", kSchema}, {"plan", plan}};
  Json& ins = json["inputs"] = Json::array();
  for (const Input& input : inputs) ins.push_back(Json::array({input.source, input.bytes, input.modified_ns}));
  Json& outs = json["outputs"] = Json::array();
  for (const Output& output : outputs) outs.push_back(Json::array({output.name, output.bytes}));
  Json& fails = json["failed"] = Json::array();
  for (const Failed& one : failed) fails.push_back(Json::array({one.source, one.cause}));
  json["lines"] = lines;
  return json.dump() + "\n";
}

std::optional<Manifest> Manifest::read(const std::string& folder) {
  try {
    const Json json = Json::parse_or_null(os::read_text(folder + "/" + kManifestName, kMostManifest));
    if (!json.is_object() || json.value("schema", "") != kSchema) return std::nullopt;
    Manifest manifest;
    manifest.plan = json.at("plan").get<std::uint64_t>();
    for (const Json& input : json.at("inputs")) {
      manifest.inputs.push_back(
          {input.at(0).text(), input.at(1).get<std::uint64_t>(), input.at(2).get<std::int64_t>()});
    }
    for (const Json& output : json.at("outputs")) {
      if (!is_plain_name(output.at(0).text())) return std::nullopt;
      manifest.outputs.push_back({output.at(0).text(), output.at(1).get<std::uint64_t>()});
    }
    for (const Json& one : json.at("failed")) manifest.failed.push_back({one.at(0).text(), one.at(1).text()});
    manifest.lines = json.at("lines").get<std::vector<std::string>>();
    return manifest;
  } catch (const Error&) {
    return std::nullopt;
  }
}

FolderState state_of(const std::string& folder, const std::optional<Manifest>& manifest) {
  if (!os::exists(folder)) return FolderState::missing;
  if (!manifest) return FolderState::foreign;
  std::unordered_set<std::string> ours = {kManifestName};
  bool is_whole = true;
  for (const Manifest::Output& output : manifest->outputs) {
    const os::FileFacts facts = os::facts_of(folder + "/" + output.name);
    is_whole &= facts.is_found() && facts.kind == os::FileKind::regular && facts.bytes == output.bytes;
    ours.insert(output.name);
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (!ours.contains(entry.path().filename().string())) return FolderState::foreign;
  }
  return is_whole && !error ? FolderState::whole : FolderState::damaged;
}

void remove_series(const std::string& folder, const Manifest& manifest) {
  for (const Manifest::Output& output : manifest.outputs) (void)os::remove_file(folder + "/" + output.name);
  (void)os::remove_file(folder + "/" + kManifestName);
  (void)os::remove_empty_folder(folder);
}

}  // namespace stoker::dicom
