#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/dataset/dataset.h"
#include "stoker/dataset/kinds.h"
#include "stoker/dataset/pack_format.h"
#include "stoker/dataset/volume_pack.h"
#include "stoker/dataset/where.h"
#include "stoker/os/file_facts.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/interruption.h"

namespace stoker::dataset {
namespace {

constexpr std::string_view kAccepted =
    "a data set is a folder of files, an index .csv, a .npy array, a .pack or .tar shards";

// Whether the last component ends so, in any case; slashes behind it do not count.
bool ends_with(std::string_view address, std::string_view extension) {
  while (address.size() > 1 && address.ends_with('/')) address.remove_suffix(1);
  return address.size() > extension.size() && ends_with_any_case(address, extension);
}

void refuse_what_is_not_read_yet(const std::string& address) {
  const auto refuse = [&](std::string_view what, const std::string& hint) {
    throw Error(ErrorKind::unsupported, fmt::format("cannot open `{}`: this version does not read {}", address, what),
                hint);
  };
  if (const std::size_t scheme = address.find("://"); scheme != std::string::npos && scheme > 0 && scheme < 16) {
    const std::string_view option = storage::option_of(address.substr(0, scheme));
    refuse(fmt::format("{} addresses", address.substr(0, scheme + 3)),
           option.empty() ? "copy the data to a local folder first"
                          : fmt::format("build Stoker with -D{}=ON, or copy the data to a local folder first", option));
  }
  const std::size_t colon = address.find(":/");
  if (colon != std::string::npos && !storage::option_of(address.substr(0, colon)).empty()) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot open `{}`: it has one slash behind `{}`", address, address.substr(0, colon + 1)),
                fmt::format("did you mean `{}//{}`?", address.substr(0, colon + 1), address.substr(colon + 2)));
  }
  for (const std::string_view archive : {".tar.gz", ".tgz", ".zip", ".tar.zst"}) {
    if (ends_with(address, archive))
      refuse(fmt::format("{} archives", archive), "unpack it into a folder, or into a plain .tar, first");
  }
}

// The name beside `address` that is spelled most like it.
std::string nearest_beside(const std::string& address) {
  namespace fs = std::filesystem;
  std::string trimmed = address;
  while (trimmed.size() > 1 && trimmed.ends_with('/')) trimmed.pop_back();
  const fs::path path(trimmed);
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end && names.size() < 10'000;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string near = nearest(path.filename().string(), candidates.data(), candidates.size());
  return near.empty() ? near : (path.has_parent_path() ? (path.parent_path() / near).string() : near);
}

void refuse_label(const std::string& address, const OpenOptions& options) {
  const std::string& column = options.label_columns.empty() ? options.label : options.label_columns.front();
  if (column.empty()) return;
  throw Error(ErrorKind::usage,
              fmt::format("cannot take labels from the column `{}`: `{}` is not an index.csv", column, address),
              "leave label out: the sub-folders of a folder are its classes");
}

std::string without_slashes(std::string address) {
  while (address.ends_with('/')) address.pop_back();
  return address;
}

DatasetPtr open_in_store(const std::string& address, const OpenOptions& options) {
  if (ends_with(address, ".csv")) return open_csv(address, options);
  refuse_label(address, options);
  if (ends_with(address, ".npy")) return open_npy(address, options);
  if (ends_with(address, ".tar")) return open_tar(address, options);
  if (ends_with(address, ".pack")) return open_pack(without_slashes(address), options);
  return open_objects(address, options);
}

DatasetPtr open_any(const std::string& address, const OpenOptions& options) {
  if (address.empty())
    throw Error(ErrorKind::usage, fmt::format("cannot open a data set: the address is empty; {}", kAccepted));
  if (address.find('\0') != std::string::npos)
    throw Error(ErrorKind::usage, "cannot open a data set: the address has a NUL byte in it");
  const auto [scheme, name] = storage::split_address(address);
  const storage::Backend* const backend = scheme.empty() ? nullptr : storage::find_backend(scheme);
  if (backend == &storage::local_files()) return open_any(std::string(name), options);
  if (backend != nullptr) return open_in_store(address, options);
  const os::FileFacts facts = os::facts_of(address);
  if (!facts.is_found()) {
    refuse_what_is_not_read_yet(address);
    if (address.find('{') != std::string::npos && ends_with(address, ".tar")) return open_tar(address, options);
    Error error = system_error(facts.error_number, "open", address);
    if (facts.error_number != ENOENT) throw error;
    const std::string near = nearest_beside(address);
    throw Error(error.kind(), error.text(), near.empty() ? error.hint_text() : format_text("did you mean `{}`?", near));
  }
  if (!ends_with(address, ".csv")) refuse_label(address, options);
  if (facts.kind == os::FileKind::folder) {
    if (find_volume_pack(address)) {
      throw Error(ErrorKind::usage,
                  format_text("`{}` is a pack of volumes: they are loaded as patches, and there is no {}", address,
                              option("patch")),
                  format_text("add {} and {}; in Python: stoker.Loader(stoker.Volumes(\"{}\", patch=..., samples=...))",
                              option("patch", "72x136x136"), option("samples", "2000"), address))
          .about("patch");
    }
    if (os::can_reach(fmt::format("{}/{}", address, kPackJson))) return open_pack(address, options);
    if (ends_with(address, ".pack")) {
      throw Error(ErrorKind::not_found,
                  fmt::format("cannot open `{}`: it has no pack.json, so it is not a pack", address),
                  "a pack has its name only when it is whole; make it with `stoker pack SOURCE DEST.pack`");
    }
    return open_folder(address, options);
  }
  refuse_what_is_not_read_yet(address);
  if (facts.kind != os::FileKind::regular) {
    throw Error(ErrorKind::unsupported,
                fmt::format("cannot open `{}` as a data set: it is not a file; {}", address, kAccepted));
  }
  if (ends_with(address, ".csv")) return open_csv(address, options);
  if (ends_with(address, ".npy")) return open_npy(address, options);
  if (ends_with(address, ".tar")) return open_tar(address, options);
  const bool is_sample = codec::media_of_name(address).is_known();
  throw Error(ErrorKind::unsupported, fmt::format("cannot open `{}` as a data set: {}", address, kAccepted),
              is_sample ? "to load single files, give the folder that holds them, or a list" : "");
}

}  // namespace

DatasetPtr narrow_and_widen(DatasetPtr dataset, const OpenOptions& options) {
  if (!options.where.empty()) dataset = take_where(std::move(dataset), options.where);
  if (!options.class_list.empty()) dataset = take_class_list(std::move(dataset), options.class_list);
  if (options.class_subset != 0)
    dataset = take_classes(std::move(dataset), options.class_subset, options.class_subset_seed);
  if (options.subset != 0) dataset = take_subset(std::move(dataset), options.subset, options.subset_seed);
  return inflate(std::move(dataset), options.inflate);
}

DatasetPtr open_interruptibly(const OpenOptions& options,
                              const std::function<DatasetPtr(const OpenOptions&)>& open_now) {
  if (!options.progress) return open_now(options);
  std::uint64_t last_seen = 0;
  storage::Interruption interruption([&] { return !options.progress(last_seen); });
  OpenOptions asking = options;
  asking.progress = [&](std::uint64_t seen) {
    last_seen = seen;
    return !interruption.is_raised();
  };
  const storage::InterruptionScope interruptible(&interruption);
  try {
    DatasetPtr opened = open_now(asking);
    if (!interruption.was_raised()) return opened;
  } catch (const Error&) {
    if (!interruption.was_raised()) throw;
  }
  throw Error(ErrorKind::unavailable, "interrupted");
}

DatasetPtr open(const std::string& address, const OpenOptions& options) {
  return open_interruptibly(
      options, [&](const OpenOptions& asking) { return narrow_and_widen(open_any(address, asking), asking); });
}

}  // namespace stoker::dataset
