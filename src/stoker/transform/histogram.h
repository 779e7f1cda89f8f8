// Operations that look at how often each value occurs, as Pillow's ImageOps does them. Pure; from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/transform/colour.h"

namespace stoker::transform {

// What ImageOps.autocontrast and ImageOps.equalize make of the bytes of one channel.
ByteTable autocontrast_table(const std::uint8_t* plane, std::size_t count) noexcept;
ByteTable equalize_table(const std::uint8_t* plane, std::size_t count) noexcept;

}  // namespace stoker::transform
