// SHA-256 (FIPS 180-4), for signatures of requests that carry a body. Pure;
// safe from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace stoker {

std::string sha256_hex(std::span<const std::byte> bytes);  // 64 digits in lower case

}  // namespace stoker
