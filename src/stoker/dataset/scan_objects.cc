#include "stoker/dataset/scan_objects.h"

#include <limits>

#include "stoker/base/error.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kAskEvery = 1000;  // objects

// The folder `name` below `parent`. Objects come in the order of their names, so it is the last one or a new one.
ScannedFolder& enter(ScannedFolder& parent, std::string_view name) {
  if (parent.folders.empty() || parent.folders.back()->name != name) {
    auto folder = std::make_unique<ScannedFolder>();
    folder->parent = &parent;
    folder->name = name;
    folder->path = parent.path + folder->name + '/';
    parent.folders.push_back(std::move(folder));
  }
  return *parent.folders.back();
}

}  // namespace

ScannedObjects scan_objects(const storage::Backend& backend, std::string_view folder, const OpenOptions& options) {
  ScannedObjects scanned;
  scanned.tree = std::make_unique<ScannedFolder>();
  std::uint64_t seen = 0;
  bool interrupted = false;
  backend.list(folder, [&](const storage::Backend::Object& object) {
    if (options.progress && ++seen % kAskEvery == 0 && !options.progress(seen)) {
      interrupted = true;
      return false;
    }
    const std::string_view path = object.name.substr(folder.size());
    ScannedFolder* at = scanned.tree.get();
    std::string_view name = path;
    for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/')) {
      const std::string_view part = name.substr(0, slash);
      if (is_hidden(part)) {
        ++at->left_out.hidden;
        return true;
      }
      at = &enter(*at, part);
      name.remove_prefix(slash + 1);
    }
    if (name.empty()) return true;  // the mark of an empty folder
    const codec::Media media = codec::media_of_name(name);
    if (is_hidden(name)) {
      ++at->left_out.hidden;
    } else if (!media.is_known()) {
      count_unknown(at->left_out, name);
    } else if (folder.size() + path.size() > kMaxPath) {
      ++at->left_out.too_long;
    } else {
      at->files.push_back(
          {object.bytes, static_cast<std::uint32_t>(at->names.size()), static_cast<std::uint16_t>(name.size()), media});
      at->names += name;
      if (!object.version.empty()) scanned.versions.emplace(path, object.version);
    }
    return true;
  });
  if (interrupted) throw Error(ErrorKind::unavailable, "interrupted");
  return scanned;
}

}  // namespace stoker::dataset
