#include "stoker/dataset/page_cache.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>

#include "stoker/base/error.h"
#include "stoker/dataset/volumes.h"
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
Holder holder_of(const storage::Location& where) {
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

// The pieces of a data set that lie somewhere: its samples. Of volumes their chunks, as patches have no place of their
// own.
class Pieces {
 public:
  explicit Pieces(const Dataset& dataset) : dataset_(dataset) {
    const VolumeSet* const set = dataset.facts().volumes.get();
    for (std::uint32_t v = 0; set != nullptr && v < set->count(); ++v) {
      for (const Volume* const volume : {&set->image(v), set->mask(v)}) {
        if (volume != nullptr) add(*volume);
      }
    }
    if (set == nullptr) count_ = dataset.size();
  }

  std::uint64_t count() const noexcept { return count_; }
  storage::Location locate(std::uint64_t piece, std::span<char> text) const {
    if (volumes_.empty()) return dataset_.locate(piece, text);
    const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), piece) - firsts_.begin();
    const Volume& volume = *volumes_[static_cast<std::size_t>(after) - 1];
    if (const auto layout = volume.plain()) {
      return storage::Location::in_source(layout->source, layout->offset,
                                          layout->stride_bytes[0] * volume.info().extents[0]);
    }
    return volume.locate_chunk(piece - firsts_[static_cast<std::size_t>(after) - 1], text);
  }

 private:
  void add(const Volume& volume) {
    volumes_.push_back(&volume);
    firsts_.push_back(count_);
    count_ += volume.plain() ? 1 : volume.info().chunks();
  }

  const Dataset& dataset_;
  std::vector<const Volume*> volumes_;
  std::vector<std::uint64_t> firsts_;
  std::uint64_t count_ = 0;
};

}  // namespace

void drop_from_page_cache(const Dataset& dataset, const std::function<bool(std::uint64_t)>& keep_going) {
  std::set<const storage::Source*> seen;  // samples of one source, and inflated copies, share a file
  std::array<char, storage::kLocationText> text;
  const Pieces pieces(dataset);
  for (std::uint64_t i = 0; i < pieces.count(); ++i) {
    if (i % 256 == 0 && !keep_going(i)) throw Error(ErrorKind::unavailable, "interrupted");
    const storage::Location where = pieces.locate(i, text);
    if (where.source && !seen.insert(where.source).second) continue;
    const Holder holder = holder_of(where);
    if (holder.fd >= 0) os::drop_pages(holder.fd);
  }
}

std::optional<double> cached_share(const Dataset& dataset) {
  constexpr std::uint64_t kFiles = 200;
  constexpr std::uint64_t kBytes = std::uint64_t{64} << 20;  // of each file, at most
  const Pieces of(dataset);
  const std::uint64_t stride = std::max<std::uint64_t>(1, of.count() / kFiles);
  std::uint64_t pages = 0, resident = 0;
  std::array<char, storage::kLocationText> text;
  for (std::uint64_t i = 0; i < of.count(); i += stride) {
    const storage::Location where = of.locate(i, text);
    const Holder holder = holder_of(where);
    if (holder.fd < 0) continue;
    const std::uint64_t from = where.source ? where.offset : 0;
    const auto found = os::cached_pages(holder.fd, from, where.source ? std::min(where.bytes, kBytes) : kBytes);
    if (!found) return std::nullopt;
    pages += found->pages;
    resident += found->resident;
  }
  if (pages == 0) return std::nullopt;
  return static_cast<double>(resident) / static_cast<double>(pages);
}

}  // namespace stoker::dataset
