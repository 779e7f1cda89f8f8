// The first half of the input up to a NUL is pack.json, the rest index.npy.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "stoker/base/error.h"
#include "stoker/dataset/pack_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find('\0'), size);
  try {
    const dataset::PackManifest pack = dataset::parse_manifest(text.substr(0, end), "x.pack");
    if (dataset::parse_manifest(dataset::to_json(pack), "x.pack").count != pack.count) std::abort();
    const std::string_view index = text.substr(std::min(size, end + 1));
    const auto rows = dataset::index_rows(std::as_bytes(std::span(index.data(), index.size())), pack.count,
                                          pack.label_kind, "x.pack");
    if (rows.size() != pack.count * sizeof(dataset::PackRow)) std::abort();
    for (std::uint64_t i = 0; i < pack.count; ++i) {
      dataset::PackRow row;
      std::memcpy(&row, rows.data() + i * sizeof row, sizeof row);
      (void)dataset::label_of(row, pack.label_kind);
    }
  } catch (const Error&) {
  }
  return 0;
}
