#include "stoker/dataset/page_cache.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include <fcntl.h>

#include "stoker/base/error.h"
#include "stoker/os/fd.h"
#include "stoker/os/page_cache.h"
#include "stoker/storage/source.h"

namespace stoker::dataset {
namespace {

// The file that holds a sample: its own, or the one its source reads; -1 for what lies in a store.
struct Holder {
  os::Fd own;
  int fd = -1;
};

// O_NONBLOCK: a pipe that took a file's place must not be waited for.
Holder holder_of(const Dataset& dataset, std::uint64_t index) {
  std::array<char, storage::kLocationText> text;
  const storage::Location where = dataset.locate(index, text);
  int error_number = 0;
  os::Fd own;
  if (where.source) {
    const bool is_mapped_file = where.source->descriptor() < 0 && !where.source->view().empty();
    if (!is_mapped_file) return {.own = {}, .fd = where.source->descriptor()};
    own = os::try_open(AT_FDCWD, std::string(where.source->name()).c_str(), O_RDONLY | O_NONBLOCK, error_number);
  } else {
    if (where.name == nullptr || !where.is_file()) return {};
    own = os::try_open(where.directory, where.name, O_RDONLY | O_NONBLOCK, error_number);
  }
  const int fd = own.get();
  return {.own = std::move(own), .fd = fd};
}

}  // namespace

void drop_from_page_cache(const Dataset& dataset, const std::function<bool(std::uint64_t)>& keep_going) {
  std::set<const storage::Source*> seen;  // samples of one source, and inflated copies, share a file
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    if (i % 256 == 0 && !keep_going(i)) throw Error(ErrorKind::unavailable, "interrupted");
    const storage::Location extent = dataset.location(i);
    if (extent.source && !seen.insert(extent.source).second) continue;
    const Holder holder = holder_of(dataset, i);
    if (holder.fd >= 0) os::drop_pages(holder.fd);
  }
}

std::optional<double> cached_share(const Dataset& dataset) {
  constexpr std::uint64_t kFiles = 200;
  constexpr std::uint64_t kBytes = std::uint64_t{64} << 20;  // of each file, at most
  const std::uint64_t stride = std::max<std::uint64_t>(1, dataset.size() / kFiles);
  std::uint64_t pages = 0, resident = 0;
  for (std::uint64_t i = 0; i < dataset.size(); i += stride) {
    const storage::Location extent = dataset.location(i);
    const Holder holder = holder_of(dataset, i);
    if (holder.fd < 0) continue;
    const std::uint64_t from = extent.source ? extent.offset : 0;
    const auto found = os::cached_pages(holder.fd, from, extent.source ? std::min(extent.bytes, kBytes) : kBytes);
    if (!found) return std::nullopt;
    pages += found->pages;
    resident += found->resident;
  }
  if (pages == 0) return std::nullopt;
  return static_cast<double>(resident) / static_cast<double>(pages);
}

}  // namespace stoker::dataset
