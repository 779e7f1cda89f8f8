#include <cstdint>
#include <cstdlib>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/dataset/tar_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  const auto source = storage::memory_source("x.tar", {reinterpret_cast<const std::byte*>(data), size});
  std::vector<dataset::TarGap> gaps;
  for (std::vector<dataset::TarGap>* const listed : {static_cast<std::vector<dataset::TarGap>*>(nullptr), &gaps}) {
    try {
      dataset::TarReader reader(*source, listed);
      dataset::TarMember member;
      std::uint64_t before = 0;
      while (reader.next(member)) {
        if (member.offset > size || member.bytes > size - member.offset || member.offset <= before) std::abort();
        before = member.offset;
        (void)reader.content(member, 4096);
      }
    } catch (const Error&) {
      if (listed != nullptr) std::abort();
    }
  }
  std::uint64_t end = 0;
  for (const dataset::TarGap& gap : gaps) {
    if (gap.offset < end || gap.bytes == 0 || gap.bytes > size - gap.offset) std::abort();
    end = gap.offset + gap.bytes;
  }
  return 0;
}
