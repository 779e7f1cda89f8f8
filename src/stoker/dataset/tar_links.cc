#include "stoker/dataset/tar_links.h"

#include <algorithm>
#include <utility>

namespace stoker::dataset {
namespace {

constexpr int kMostSteps = 40;  // as Linux follows symbolic links

// "./a/../b//c" as "b/c". Empty where it leads out of the archive.
std::string normal(std::string_view path) {
  if (path.starts_with('/')) return {};
  std::string out;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (out.empty()) return {};
      const std::size_t slash = out.rfind('/');
      out.resize(slash == std::string::npos ? 0 : slash);
      continue;
    }
    if (!out.empty()) out += '/';
    out += part;
  }
  return out;
}

// A hard link names a member; a symbolic one a path as seen from its own folder.
std::string target_of(TarKind kind, std::string_view name, std::string_view link) {
  if (kind == TarKind::hard_link) return normal(link);
  if (link.starts_with('/')) return {};
  const std::size_t slash = name.rfind('/');
  std::string path(name.substr(0, slash == std::string_view::npos ? 0 : slash + 1));
  return normal(path += link);
}

bool is_link(TarKind kind) noexcept {
  return kind == TarKind::hard_link || kind == TarKind::symbolic_link;
}

}  // namespace

bool TarLinks::resolve(TarMember& member) {
  if (!std::exchange(is_read_, true)) {
    std::vector<TarGap> gaps;  // the caller lists them
    TarReader reader(window_, &gaps);
    for (TarMember found; reader.next(found);)
      members_.insert_or_assign(normal(found.name), Target{found.kind, found.offset, found.bytes, found.link});
  }
  TarKind kind = member.kind;
  std::string name = normal(member.name), link = member.link;
  for (int step = 0; step < kMostSteps && is_link(kind); ++step) {
    name = target_of(kind, name, link);
    const auto at = members_.find(name);
    if (at == members_.end()) return false;
    kind = at->second.kind, link = at->second.link;
    member.offset = at->second.offset, member.bytes = at->second.bytes;
  }
  if (kind != TarKind::file) return false;
  member.kind = kind;
  return true;
}

}  // namespace stoker::dataset
