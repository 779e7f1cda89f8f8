// Which part of a work that several machines share: the second of four is 2/4. Plain values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker::prepare {

struct PartName {
  std::uint64_t number = 1;  // from 1
  std::uint64_t of = 1;

  std::string text() const;    // "2/4"
  std::string folder() const;  // "2-of-4"
  // The part owns items [begin, end) of `count`. The parts together own each item once.
  std::uint64_t begin(std::uint64_t count) const noexcept { return share(number - 1, count); }
  std::uint64_t end(std::uint64_t count) const noexcept { return share(number, count); }

  friend bool operator==(const PartName&, const PartName&) = default;

 private:
  std::uint64_t share(std::uint64_t parts, std::uint64_t count) const noexcept {
    return count / of * parts + count % of * parts / of;
  }
};

inline constexpr std::uint64_t kMostParts = 1'000'000;

// Reads "2/4". Throws Error(usage) that names the option `part`.
PartName parse_part(std::string_view text);
// Reads "2-of-4"; false: the folder has another name.
bool read_part_folder(std::string_view name, PartName& part) noexcept;

}  // namespace stoker::prepare
