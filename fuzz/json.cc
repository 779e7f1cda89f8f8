#include "stoker/base/json.h"

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

// What can be read can be written, in one line and in many, and reads back as the same value.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using stoker::Json;
  const std::optional<Json> json = Json::try_parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!json) return 0;
  const std::string text = json->dump();
  const std::optional<Json> again = Json::try_parse(text);
  if (!again || again->dump() != text || !(*again == *json)) std::abort();
  if (!(Json::parse_or_null(json->dump(2)) == *json)) std::abort();
  return 0;
}
