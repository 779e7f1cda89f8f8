// The checksum that zarr puts behind chunks and behind the index of a shard (Castagnoli). Pure; safe from any thread.
#pragma once

#include <cstdint>

#include "stoker/codec/media.h"

namespace stoker::codec {

std::uint32_t crc32c(Bytes bytes) noexcept;
std::uint32_t crc32c_by_table(Bytes bytes) noexcept;  // the same without the instruction of the CPU, for tests

}  // namespace stoker::codec
