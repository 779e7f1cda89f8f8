#include "stoker/dataset/scan_objects.h"

#include <limits>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/dataset/object_listing.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kAskScanEvery = 1000;  // objects

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

std::unique_ptr<ScannedFolder> scan_objects(const storage::Backend& backend, std::string_view folder,
                                            const OpenOptions& options, std::vector<std::string>& notes) {
  auto tree = std::make_unique<ScannedFolder>();
  std::uint64_t seen = 0;
  bool interrupted = false;
  const auto take = [&](const storage::Backend::Object& object) {
    if (options.progress && ++seen % kAskScanEvery == 0 && !options.progress(seen)) {
      interrupted = true;
      return false;
    }
    const std::string_view path = object.name.substr(folder.size());
    ScannedFolder* at = tree.get();
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
      const std::string_view version = object.version.size() <= UINT8_MAX ? object.version : std::string_view();
      if (at->names.size() + name.size() + version.size() > std::numeric_limits<std::uint32_t>::max()) {
        throw Error(ErrorKind::unsupported,
                    fmt::format("cannot list `{}`: the names of objects in one folder take more than 4 GiB", folder),
                    "spread them over sub-folders, or give an index.csv");
      }
      at->files.push_back({object.bytes, static_cast<std::uint32_t>(at->names.size()),
                           static_cast<std::uint16_t>(name.size()), media, static_cast<std::uint8_t>(version.size())});
      at->names += name;
      at->names += version;
    }
    return true;
  };
  list_objects(backend, folder, options, take, notes);
  if (interrupted) throw Error(ErrorKind::unavailable, "interrupted");
  return tree;
}

}  // namespace stoker::dataset
