// Which codec reads a file. The codecs stand in one table (table.cc); a Media is a line of it. Everything that depends
// on the format of a file is asked here, so that a new codec changes nothing outside this folder. Pure; safe from any
// thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "stoker/base/sample_kind.h"

namespace stoker::codec {

using Bytes = std::span<const std::byte>;

class Media {
 public:
  constexpr Media() noexcept = default;  // no codec reads it
  constexpr explicit Media(std::uint8_t line) noexcept : line_(line) {}

  constexpr bool is_known() const noexcept { return line_ != 0; }
  constexpr std::uint8_t line() const noexcept { return line_; }  // of the table, from 1 on
  friend constexpr auto operator<=>(const Media&, const Media&) noexcept = default;

 private:
  std::uint8_t line_ = 0;
};

std::size_t sniff_bytes() noexcept;                   // of the start of a file, that sniff() looks at, at most
Media sniff(Bytes bytes) noexcept;                    // by content
Media media_of_name(std::string_view path) noexcept;  // by extension, any case
Media media_named(std::string_view name) noexcept;    // "jpeg"; unknown if no codec has this name

std::string_view name(Media media) noexcept;  // "jpeg", "unknown"
// Every extension of every codec, for messages: ".jpg, .jpeg, .png and .npy" with `last` = "and".
std::string extensions(std::string_view last);
std::string extension(Media media);  // ".jpg": what new files of this media are called; "" if unknown
std::optional<SampleKind> kind_of(Media media) noexcept;
bool is_scaled(Media media) noexcept;    // an image whose decoder can make it smaller while it decodes
bool is_seekable(Media media) noexcept;  // an image whose decoder notes places to start from (seek_index.h)
bool is_plain(Media media) noexcept;     // the samples lie in the file as they leave: reading is all the work

// ---- words
std::string names();  // of all codecs: "jpeg, png, wav"
// "not a JPEG or PNG file": why a sample is refused that no codec reads, or none of this kind. Static text.
const char* refusal() noexcept;
const char* refusal(SampleKind kind) noexcept;

}  // namespace stoker::codec
