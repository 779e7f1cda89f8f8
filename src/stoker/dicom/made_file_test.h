// Test tool: DICOM files built element by element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/dicom/header.h"

namespace stoker::dicom {

// Grows by the elements that are put at its end.
class MadeFile {
 public:
  explicit MadeFile(std::string_view syntax = "1.2.840.10008.1.2.1") : syntax_(transfer_syntax(syntax)) {
    bytes_.assign(128, '\0');
    bytes_ += "DICM";
    std::string uid(syntax);
    if (uid.size() % 2 != 0) uid += '\0';
    put_header(0x0002, 0x0010, "UI", static_cast<std::uint32_t>(uid.size()), true, false);
    bytes_ += uid;
  }
  // A data set without preamble and meta information, explicit or not.
  static MadeFile bare(bool is_explicit) {
    MadeFile file;
    file.bytes_.clear();
    file.syntax_.is_explicit = is_explicit;
    return file;
  }

  MadeFile& text(std::uint16_t group, std::uint16_t element, const char* vr, std::string value) {
    if (value.size() % 2 != 0) value += vr[0] == 'U' && vr[1] == 'I' ? '\0' : ' ';
    put_header(group, element, vr, static_cast<std::uint32_t>(value.size()), syntax_.is_explicit,
               syntax_.is_big_endian);
    bytes_ += value;
    return *this;
  }
  MadeFile& number(std::uint16_t group, std::uint16_t element, std::uint16_t value) {
    put_header(group, element, "US", 2, syntax_.is_explicit, syntax_.is_big_endian);
    put16(value, syntax_.is_big_endian);
    return *this;
  }
  // `items` are data sets; undefined lengths or exact ones.
  MadeFile& sequence(std::uint16_t group, std::uint16_t element, const std::vector<std::string>& items,
                     bool is_undefined = true) {
    std::uint32_t length = 0;
    for (const std::string& item : items) length += static_cast<std::uint32_t>(item.size()) + 8;
    put_header(group, element, "SQ", is_undefined ? 0xFFFFFFFF : length, syntax_.is_explicit, syntax_.is_big_endian);
    for (const std::string& item : items) {
      put_tag(0xFFFE, 0xE000);
      put32(is_undefined ? 0xFFFFFFFF : static_cast<std::uint32_t>(item.size()), syntax_.is_big_endian);
      bytes_ += item;
      if (is_undefined) put_tag(0xFFFE, 0xE00D), put32(0, syntax_.is_big_endian);
    }
    if (is_undefined) put_tag(0xFFFE, 0xE0DD), put32(0, syntax_.is_big_endian);
    return *this;
  }
  // Rows x columns values of 16 bits.
  MadeFile& pixels(const std::vector<std::uint16_t>& values) {
    put_header(0x7FE0, 0x0010, "OW", static_cast<std::uint32_t>(values.size() * 2), syntax_.is_explicit,
               syntax_.is_big_endian);
    for (const std::uint16_t value : values) put16(value, syntax_.is_big_endian);
    return *this;
  }
  // Size and format of a 16-bit gray image.
  MadeFile& gray(std::uint16_t rows, std::uint16_t columns, bool is_signed = true, std::uint16_t bits = 16) {
    return number(0x0028, 0x0002, 1)
        .text(0x0028, 0x0004, "CS", "MONOCHROME2")
        .number(0x0028, 0x0010, rows)
        .number(0x0028, 0x0011, columns)
        .number(0x0028, 0x0100, 16)
        .number(0x0028, 0x0101, bits)
        .number(0x0028, 0x0102, static_cast<std::uint16_t>(bits - 1))
        .number(0x0028, 0x0103, is_signed ? 1 : 0);
  }

  const std::string& string() const noexcept { return bytes_; }
  Bytes bytes() const noexcept { return {reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()}; }
  void save(const std::string& path) const { std::ofstream(path, std::ios::binary) << bytes_; }

 private:
  void put16(std::uint16_t value, bool is_big) {
    const char low = static_cast<char>(value & 0xFF), high = static_cast<char>(value >> 8);
    bytes_ += is_big ? high : low;
    bytes_ += is_big ? low : high;
  }
  void put32(std::uint32_t value, bool is_big) {
    const auto low = static_cast<std::uint16_t>(value & 0xFFFF), high = static_cast<std::uint16_t>(value >> 16);
    put16(is_big ? high : low, is_big);
    put16(is_big ? low : high, is_big);
  }
  void put_tag(std::uint16_t group, std::uint16_t element) {
    put16(group, syntax_.is_big_endian);
    put16(element, syntax_.is_big_endian);
  }
  void put_header(std::uint16_t group, std::uint16_t element, const char* vr, std::uint32_t length, bool is_explicit,
                  bool is_big) {
    put16(group, is_big);
    put16(element, is_big);
    if (!is_explicit) return put32(length, is_big);
    bytes_ += std::string(vr, 2);
    const std::string_view name(vr, 2);
    if (name != "OW" && name != "OB" && name != "SQ" && name != "UN") {
      return put16(static_cast<std::uint16_t>(length), is_big);
    }
    put16(0, is_big);
    put32(length, is_big);
  }

  TransferSyntax syntax_;
  std::string bytes_;
};

// The elements of a data set inside a sequence, as text.
inline std::string data_set(const MadeFile& file, std::size_t from) {
  return file.string().substr(from);
}

}  // namespace stoker::dicom
