#include "stoker/dataset/lookup.h"

#include <algorithm>
#include <cerrno>
#include <unordered_map>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/dataset/crew.h"
#include "stoker/os/file_facts.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kGrain = 256;

// Null for what is a file, or is not there.
const char* name_of_kind(os::FileKind kind) noexcept {
  switch (kind) {
    case os::FileKind::folder:
      return "a folder";
    case os::FileKind::pipe:
      return "a pipe";
    case os::FileKind::socket:
      return "a socket";
    case os::FileKind::device:
      return "a device";
    default:
      return nullptr;
  }
}

}  // namespace

std::uint64_t size_of_file(int directory, const char* path) {
  const os::FileFacts facts = os::facts_of(directory, path);
  const int error_number = facts.error_number;
  if (error_number == ENOENT || error_number == ENOTDIR || error_number == ELOOP || error_number == ENAMETOOLONG) {
    return kNoFile;
  }
  if (error_number != 0) throw system_error(error_number, "look up", path);
  return facts.kind == os::FileKind::regular ? facts.bytes : kNotAFile;
}

std::string why_no_file(int directory, const char* path, std::string_view name) {
  const char* const kind = name_of_kind(os::facts_of(directory, path).kind);
  return kind == nullptr ? fmt::format("no such file: `{}`", name) : fmt::format("`{}` is {}, not a file", name, kind);
}

std::string NotFound::cause(const std::string& why) const {
  if (count == 1) return why;
  return fmt::format("{}, and {} more of {} are missing", why, format_count(count - 1), format_count(total));
}

std::string NotFound::note(const std::string& why) const {
  return fmt::format("{} of {} files {} missing; the first: {}", format_count(count), format_count(total),
                     count == 1 ? "is" : "are", why);
}

NotFound look_up(std::vector<std::uint64_t>& sizes, const std::function<std::uint64_t(std::uint64_t)>& size_of,
                 const OpenOptions& options) {
  Crew crew(sizes.size() <= kGrain ? 1 : options.threads, options.progress);
  crew.run_in_parts(sizes.size(), kGrain, [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) {
      try {
        sizes[i] = size_of(i);
      } catch (const Error&) {
        if (!options.skip_losses) throw;
        sizes[i] = 0;
      }
    }
    crew.count(end - begin);
  });

  NotFound not_found{.total = sizes.size()};
  bool has_others = false;  // not regular files
  for (std::uint64_t i = 0; i < sizes.size(); ++i) {
    if (is_found(sizes[i])) continue;
    const bool is_other = options.skip_losses && sizes[i] == kNotAFile;
    if (not_found.count++ == 0 || (is_other && !has_others)) not_found.first = i;
    has_others = has_others || is_other;
  }
  not_found.is_refused =
      not_found.count > 0 && (!options.skip_losses || has_others || not_found.count == not_found.total);
  if (!not_found.is_refused) std::replace(sizes.begin(), sizes.end(), kNoFile, std::uint64_t{0});
  return not_found;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> find_repeats(
    std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& id_of) {
  std::vector<std::uint64_t> ids(count);
  for (std::uint64_t i = 0; i < count; ++i) ids[i] = id_of(i);
  std::sort(ids.begin(), ids.end());
  std::unordered_map<std::uint64_t, std::uint64_t> seen;  // only ids that repeat
  for (std::uint64_t i = 1; i < count; ++i) {
    if (ids[i] == ids[i - 1]) seen.try_emplace(ids[i], 0);
  }
  ids = {};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> repeats;
  if (seen.empty()) return repeats;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto at = seen.find(id_of(i));
    if (at == seen.end()) continue;
    if (at->second > 0) repeats.emplace_back(i, at->second);
    ++at->second;
  }
  return repeats;
}

std::uint64_t occurrence(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& repeats,
                         std::uint64_t sample) noexcept {
  const auto at = std::lower_bound(repeats.begin(), repeats.end(), std::pair<std::uint64_t, std::uint64_t>(sample, 0));
  return at != repeats.end() && at->first == sample ? at->second : 0;
}

}  // namespace stoker::dataset
