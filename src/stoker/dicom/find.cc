#include "stoker/dicom/find.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/dataset/crew.h"
#include "stoker/os/fd.h"
#include "stoker/os/file_facts.h"

namespace stoker::dicom {
namespace {

class Walk {
 public:
  explicit Walk(const PrepareOptions& options) : options_(options) {
    const os::FileFacts destination = os::facts_of(options.destination);
    if (destination.is_found()) seen_.emplace(destination.device, destination.inode);
  }

  void add_folder(const std::string& below) {
    const std::string path = below.empty() ? options_.source : options_.source + "/" + below;
    std::error_code error;
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      names.push_back(entry.path().filename().string());
    }
    if (error) {
      found_.unreadable.push_back({below, fmt::format("the folder cannot be listed: {}", error.message())});
      return;
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) add_entry(below.empty() ? name : below + "/" + name);
  }

  FoundFiles take() { return std::move(found_); }
  bool is_new(const os::FileFacts& folder) { return seen_.emplace(folder.device, folder.inode).second; }

 private:
  void add_entry(const std::string& below) {
    const os::FileFacts facts = os::facts_of(options_.source + "/" + below);
    if (facts.kind == os::FileKind::folder) {
      if (is_new(facts)) add_folder(below);
      return;
    }
    if (!facts.is_found() || facts.kind != os::FileKind::regular) return;
    Source source;
    source.path = below;
    source.bytes = facts.bytes;
    source.modified_ns = facts.modified_ns;
    found_.sources.push_back(std::move(source));
    if (++found_.looked_at % 1000 == 0 && options_.progress &&
        !options_.progress({"finding files", found_.looked_at, 0})) {
      throw Error(ErrorKind::unavailable, "interrupted");
    }
  }

  const PrepareOptions& options_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen_;  // device and inode of folders
  FoundFiles found_;
};

void read_one(const PrepareOptions& options, Source& source) {
  int error_number = 0;
  const std::string path = options.source + "/" + source.path;
  const os::Fd file = os::try_open(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK, error_number);
  if (error_number != 0) {
    source.found = Found::refused;
    source.cause = fmt::format("it cannot be read: {}", system_error(error_number, "open", source.path).cause());
    return;
  }
  look_at(file.get(), options.keep_identifiers, source);
}

}  // namespace

FoundFiles find_files(const PrepareOptions& options) {
  const os::FileFacts root = os::facts_of(options.source);
  if (!root.is_found()) throw system_error(root.error_number, "read", options.source);
  if (root.kind != os::FileKind::folder) {
    throw Error(ErrorKind::usage, fmt::format("cannot read `{}`: it is not a folder", options.source),
                "name the folder that the DICOM files lie below");
  }
  Walk walk(options);
  if (!walk.is_new(root)) {
    throw Error(ErrorKind::usage, fmt::format("`{}` is both source and destination", options.source));
  }
  walk.add_folder("");
  FoundFiles found = walk.take();
  const std::uint64_t count = found.sources.size();
  const dataset::Progress progress = [&](std::uint64_t seen) {
    return !options.progress || options.progress({"reading headers", seen, count});
  };
  dataset::Crew crew(options.workers, progress);
  crew.run_in_parts(count, 64, [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) read_one(options, found.sources[i]);
    crew.count(end - begin);
  });
  std::erase_if(found.sources, [](const Source& source) { return source.found == Found::other; });
  std::sort(found.sources.begin(), found.sources.end(),
            [](const Source& a, const Source& b) { return a.path < b.path; });
  return found;
}

}  // namespace stoker::dicom
