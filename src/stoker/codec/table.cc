// The table of codecs. To add one, write its file, which defines a `const Codec`, and name it in the two lines below.
#include "stoker/codec/table.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/ascii.h"

namespace stoker::codec {

extern const Codec kJpeg, kPng, kWav, kFlac, kNpy, kNpz;
#if defined(STOKER_WEBP)
extern const Codec kWebp;
#endif
namespace {
constexpr std::array kTable {
  &kJpeg, &kPng,
#if defined(STOKER_WEBP)
      &kWebp,
#endif
      &kWav, &kFlac, &kNpy, &kNpz
};

bool has(Bytes bytes, const Magic& magic) noexcept {
  if (magic.bytes.empty() || bytes.size() < magic.offset + magic.bytes.size()) return false;
  for (std::size_t i = 0; i < magic.bytes.size(); ++i) {
    const char wanted = magic.bytes[i];
    if (wanted != '?' && bytes[magic.offset + i] != static_cast<std::byte>(wanted)) return false;
  }
  return true;
}

bool equals_in_any_case(std::string_view text, std::string_view lower) noexcept {
  return text.size() == lower.size() && ends_with_any_case(text, lower);
}

template <typename Matches>
Media find(const Matches& matches) noexcept {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (matches(*kTable[i])) return Media(static_cast<std::uint8_t>(i + 1));
  }
  return {};
}

// "not a JPEG or PNG file", without allocating: a bad sample must never end the program.
struct Refusal {
  char text[200] = "";

  explicit Refusal(std::optional<SampleKind> kind) noexcept {
    std::array<const Codec*, kTable.size()> codecs{};
    const auto end = std::copy_if(kTable.begin(), kTable.end(), codecs.begin(),
                                  [&](const Codec* codec) { return !kind || codec->kind() == *kind; });
    const std::size_t count = static_cast<std::size_t>(end - codecs.begin());
    add("not ");
    for (std::size_t i = 0; i < count; ++i) {
      if (i == 0) {
        add(codecs[i]->article);
        add(" ");
      } else {
        add(i + 1 == count ? " or " : ", ");
      }
      add(codecs[i]->title);
    }
    add(" file");
  }

  void add(std::string_view more) noexcept {
    const std::size_t used = std::strlen(text), count = std::min(more.size(), sizeof text - 1 - used);
    std::memcpy(text + used, more.data(), count);
  }
};

}  // namespace

const Codec* codec_of(Media media) noexcept {
  const std::size_t line = media.line();
  return line >= 1 && line <= kTable.size() ? kTable[line - 1] : nullptr;
}

std::size_t sniff_bytes() noexcept {
  std::size_t most = 0;
  for (const Codec* codec : kTable) {
    for (const Magic& magic : codec->magic) most = std::max(most, magic.offset + magic.bytes.size());
  }
  return most;
}

Media sniff(Bytes bytes) noexcept {
  return find([bytes](const Codec& codec) {
    return std::any_of(codec.magic.begin(), codec.magic.end(),
                       [bytes](const Magic& magic) { return has(bytes, magic); });
  });
}

Media media_of_name(std::string_view path) noexcept {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == path.size()) return {};
  const std::string_view extension = path.substr(dot + 1);
  return find([extension](const Codec& codec) {
    return std::any_of(codec.extensions.begin(), codec.extensions.end(),
                       [extension](std::string_view lower) { return equals_in_any_case(extension, lower); });
  });
}

Media media_named(std::string_view name) noexcept {
  return find([name](const Codec& codec) { return codec.name == name; });
}

std::string_view name(Media media) noexcept {
  const Codec* const codec = codec_of(media);
  return codec != nullptr ? codec->name : "unknown";
}

std::string extensions(std::string_view last) {
  std::vector<std::string> all;
  for (const Codec* codec : kTable) {
    for (const std::string_view word : codec->extensions) {
      if (!word.empty()) all.push_back("." + std::string(word));
    }
  }
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) text += i + 1 < all.size() ? ", " : fmt::format(" {} ", last);
    text += all[i];
  }
  return text;
}

std::string extension(Media media) {
  const Codec* const codec = codec_of(media);
  return codec != nullptr ? "." + std::string(codec->extensions.front()) : std::string();
}

std::optional<SampleKind> kind_of(Media media) noexcept {
  const Codec* const codec = codec_of(media);
  return codec != nullptr ? std::optional(codec->kind()) : std::nullopt;
}

bool is_scaled(Media media) noexcept {
  const auto* const image = decoder_of<ImageCodec>(media);
  return image != nullptr && image->scales;
}

bool is_seekable(Media media) noexcept {
  const auto* const image = decoder_of<ImageCodec>(media);
  return image != nullptr && image->seeks;
}

bool is_plain(Media media) noexcept {
  const auto* const array = decoder_of<ArrayCodec>(media);
  return array != nullptr && array->is_plain;
}

std::string names() {
  std::string all;
  for (const Codec* codec : kTable) {
    if (!all.empty()) all += ", ";
    all += codec->name;
  }
  return all;
}

const char* refusal() noexcept {
  static const Refusal any(std::nullopt);
  return any.text;
}

const char* refusal(SampleKind kind) noexcept {
  static const Refusal texts[kSampleKinds] = {Refusal(SampleKind::image), Refusal(SampleKind::audio),
                                              Refusal(SampleKind::array)};
  return texts[static_cast<std::size_t>(kind)].text;
}

}  // namespace stoker::codec
