#include "stoker/dataset/look_up_objects.h"

#include <algorithm>

#include "stoker/base/error.h"
#include "stoker/dataset/crew.h"
#include "stoker/dataset/lookup.h"

namespace stoker::dataset {
namespace {

// A page of a listing takes about as long as asking for single objects with all threads. The listing stops once it has
// named this many times the wanted objects; the rest are asked for one by one.
constexpr std::uint64_t kListedPerWanted = 4, kListedAtLeast = 4'000;
constexpr std::size_t kAskers = 32;
constexpr std::uint64_t kAskEvery = 1'000;  // objects

using Found = std::unordered_map<std::string_view, FoundObject>;

std::string_view common_folder(const std::vector<std::string_view>& names) noexcept {
  std::string_view common = names.front();
  common = common.substr(0, common.rfind('/') + 1);  // npos + 1 is 0
  for (const std::string_view name : names) {
    const auto apart = std::mismatch(common.begin(), common.end(), name.begin(), name.end()).first;
    common = common.substr(0, static_cast<std::size_t>(apart - common.begin()));
    common = common.substr(0, common.rfind('/') + 1);
  }
  return common;
}

// Whether the listing was seen to its end: what it did not name does not exist.
bool list_around(const storage::Backend& backend, const std::vector<std::string_view>& names,
                 const OpenOptions& options, Found& wanted) {
  const std::string_view folder = common_folder(names);
  if (folder.empty() || !backend.can_list()) return false;
  const std::uint64_t most = kListedAtLeast + kListedPerWanted * wanted.size();
  std::uint64_t listed = 0, found = 0;
  bool is_whole = true, is_interrupted = false;
  try {
    backend.list(folder, [&](const storage::Backend::Object& object) {
      const auto at = wanted.find(object.name);
      if (at != wanted.end() && at->second.bytes == kNoFile) {
        at->second = {object.bytes, std::string(object.version)};
        ++found;
      }
      ++listed;
      is_interrupted = listed % kAskEvery == 0 && options.progress && !options.progress(listed);
      is_whole = listed <= most && !is_interrupted;
      return is_whole && found < wanted.size();
    });
  } catch (const Error& error) {
    // Listing needs a permission of its own. Who may not list may still read.
    if (error.kind() != ErrorKind::permission && error.kind() != ErrorKind::not_found) throw;
    return false;
  }
  if (is_interrupted) throw Error(ErrorKind::unavailable, "interrupted");
  return is_whole;
}

void ask(const storage::Backend& backend, std::string_view name, const OpenOptions& options, FoundObject& object) {
  try {
    const std::unique_ptr<storage::Source> source = backend.open(name, storage::Storage::automatic);
    object = {source->size_bytes(), std::string(source->version())};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::not_found) return;
    if (!options.skip_losses) throw;
    object.bytes = 0;
  }
}

}  // namespace

Found look_up_objects(const storage::Backend& backend, const std::vector<std::string_view>& names,
                      const OpenOptions& options) {
  Found wanted;
  wanted.reserve(names.size());
  for (const std::string_view name : names) wanted.try_emplace(name, FoundObject{kNoFile, {}});
  if (names.empty() || list_around(backend, names, options, wanted)) return wanted;

  std::vector<Found::value_type*> left;
  for (Found::value_type& entry : wanted) {
    if (entry.second.bytes == kNoFile) left.push_back(&entry);
  }
  if (left.empty()) return wanted;
  Crew crew(static_cast<int>(std::min<std::size_t>(kAskers, left.size())), options.progress);
  crew.run_in_parts(left.size(), 1, [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) ask(backend, left[i]->first, options, left[i]->second);
    crew.count(end - begin);
  });
  return wanted;
}

}  // namespace stoker::dataset
