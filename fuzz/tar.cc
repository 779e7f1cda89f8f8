#include <cstdint>
#include <cstdlib>

#include "stoker/base/error.h"
#include "stoker/dataset/tar_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  const auto source = storage::memory_source("x.tar", {reinterpret_cast<const std::byte*>(data), size});
  try {
    dataset::TarReader reader(*source);
    dataset::TarMember member;
    std::uint64_t before = 0;
    while (reader.next(member)) {
      if (member.offset > size || member.bytes > size - member.offset || member.offset <= before) std::abort();
      before = member.offset;
      (void)reader.content(member, 4096);
    }
  } catch (const Error&) {
  }
  return 0;
}
