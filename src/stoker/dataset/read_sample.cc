#include "stoker/dataset/read_sample.h"

#include <cerrno>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/storage/hand_over.h"

namespace stoker::dataset {
namespace {

using State = storage::WholeRead::State;

// `into`: of the bytes of all parts.
storage::WholeRead read_parts(const Dataset& dataset, std::uint64_t index, const RowKey& key, Scratch& scratch,
                              std::span<std::byte> into) {
  char text[storage::kLocationText];
  std::size_t at = 0;
  for (std::uint32_t part = 0, count = dataset.parts(index, key); part < count; ++part) {
    const storage::Location where = dataset.locate_part(index, key, part, text);
    const Scratch::Mark mark = scratch.mark();
    const bool has_view = where.source != nullptr && !where.source->view().empty();
    if (has_view && scratch.take(where.bytes).size() != where.bytes) return {State::no_room, {}, {}};
    storage::WholeRead read = storage::read_whole(where, scratch);
    if (!read.ok()) return read;
    if (read.bytes.size() != where.bytes) return {State::failed, {}, storage::failure_of(EIO)};  // the file changed
    if (!read.bytes.empty()) std::memcpy(into.data() + at, read.bytes.data(), read.bytes.size());
    at += read.bytes.size();
    scratch.rewind(mark);
  }
  return {State::ok, into, {}};
}

std::uint64_t bytes_of_parts(const Dataset& dataset, std::uint64_t index, const RowKey& key) {
  std::uint64_t total = 0;
  for (std::uint32_t part = 0, count = dataset.parts(index, key); part < count; ++part) {
    total += dataset.locate_part(index, key, part, {}).bytes;
  }
  return total;
}

}  // namespace

storage::WholeRead read_row(const Dataset& dataset, std::uint64_t index, const RowKey& key, Scratch& scratch) {
  if (dataset.facts().most_parts == 1) {
    char text[storage::kLocationText];
    const storage::Location where = dataset.locate(index, text);
    if (const auto kept = dataset.hand_over(); kept && where.source != nullptr) {
      const Scratch::Mark mark = scratch.mark();
      const std::span<std::byte> into = scratch.take(where.bytes);
      if (into.size() == where.bytes && kept->copy(*where.source, where.offset, into)) return {State::ok, into, {}};
      scratch.rewind(mark);
    }
    return storage::read_whole(where, scratch);
  }
  const std::uint64_t total = bytes_of_parts(dataset, index, key);
  const std::span<std::byte> into = scratch.take(total);
  if (into.size() != total) return {State::no_room, {}, {}};
  return read_parts(dataset, index, key, scratch, into);
}

void locate_parts(const Dataset& dataset, std::uint64_t index, const RowKey& key,
                  std::vector<storage::Location>& parts) {
  parts.clear();
  for (std::uint32_t part = 0, count = dataset.parts(index, key); part < count; ++part)
    parts.push_back(dataset.locate_part(index, key, part, {}));
}

storage::WholeRead read_sample(const Dataset& dataset, std::uint64_t index, Scratch& scratch) {
  return read_row(dataset, index, {0, 0, dataset.id(index)}, scratch);
}

storage::WholeRead read_sample(const Dataset& dataset, std::uint64_t index, std::vector<std::byte>& bytes) {
  if (dataset.facts().most_parts == 1) {
    char text[storage::kLocationText];
    return storage::read_whole(dataset.locate(index, text), bytes);
  }
  Scratch scratch;
  const RowKey key{0, 0, dataset.id(index)};
  bytes.resize(bytes_of_parts(dataset, index, key));
  return read_parts(dataset, index, key, scratch, bytes);
}

std::string size_changed_cause(std::uint64_t listed, std::uint64_t now) {
  if (listed == 0 && now == 0)
    return "it is a special file, such as those below /proc: it has content, but the system gives its size as 0";
  return fmt::format("it was {} bytes long when the data set was opened and is {} now", format_count(listed),
                     format_count(now));
}

}  // namespace stoker::dataset
