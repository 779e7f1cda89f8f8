#include "stoker/dicom/header.h"

#include <gtest/gtest.h>
#include <libdeflate.h>

#include "stoker/dicom/made_file_test.h"

namespace stoker::dicom {
namespace {

constexpr const char* kImplicit = "1.2.840.10008.1.2";
constexpr const char* kExplicit = "1.2.840.10008.1.2.1";
constexpr const char* kBigEndian = "1.2.840.10008.1.2.2";

struct Read {
  Result result;
  Header header;
};

Read read(Bytes bytes, bool is_whole = true) {
  Read read;
  std::vector<std::byte> inflated;
  read.result = read_header(bytes, is_whole, read.header, inflated);
  return read;
}

MadeFile slice_of(MadeFile file) {
  return file.text(0x0008, 0x0008, "CS", "ORIGINAL\\PRIMARY\\AXIAL")
      .text(0x0008, 0x0018, "UI", "1.2.3.4")
      .text(0x0010, 0x0010, "PN", "Doe^Jane")
      .text(0x0010, 0x0020, "LO", "P-17 ")
      .text(0x0020, 0x000E, "UI", "1.2.3")
      .text(0x0020, 0x0013, "IS", " 12")
      .text(0x0020, 0x0032, "DS", "-1.5\\+2\\3e1 ")
      .text(0x0020, 0x0037, "DS", "1\\0\\0\\0\\1\\0")
      .gray(2, 3)
      .text(0x0028, 0x1050, "DS", "40\\400")
      .text(0x0028, 0x1052, "DS", "-1024")
      .text(0x0028, 0x1053, "DS", "1")
      .pixels({1, 2, 3, 4, 5, 6});
}

void expect_slice(const Header& header) {
  EXPECT_EQ(header.image_type, "ORIGINAL\\PRIMARY\\AXIAL");
  EXPECT_EQ(header.sop_instance, "1.2.3.4");
  EXPECT_EQ(header.patient, "P-17");
  EXPECT_EQ(header.series, "1.2.3");
  EXPECT_EQ(header.instance, 12);
  EXPECT_EQ(header.facts.position, (std::array<double, 3>{-1.5, 2, 30}));
  EXPECT_EQ(header.facts.orientation, (std::array<double, 6>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(header.facts.window_center, 40);
  EXPECT_EQ(header.facts.intercept, -1024);
  EXPECT_EQ(header.rows, 2u);
  EXPECT_EQ(header.columns, 3u);
  EXPECT_EQ(header.bits_stored, 16u);
  EXPECT_TRUE(header.is_signed);
  EXPECT_TRUE(header.has_pixels);
  EXPECT_EQ(header.pixels_bytes, 12u);
}

TEST(DicomHeader, ReadsTheSameFactsInEveryByteOrder) {
  for (const char* syntax : {kImplicit, kExplicit, kBigEndian}) {
    const MadeFile file = slice_of(MadeFile(syntax));
    const Read one = read(file.bytes());
    ASSERT_TRUE(one.result.ok()) << syntax << ": " << one.result.cause;
    expect_slice(one.header);
    EXPECT_EQ(one.header.pixels_at + 12, file.bytes().size());
  }
}

TEST(DicomHeader, ReadsFilesWithoutPreamble) {
  for (const bool is_explicit : {true, false}) {
    const MadeFile file = slice_of(MadeFile::bare(is_explicit));
    EXPECT_TRUE(looks_like_dicom(file.bytes().first(kSniffedBytes)));
    const Read one = read(file.bytes());
    ASSERT_TRUE(one.result.ok()) << one.result.cause;
    expect_slice(one.header);
  }
}

std::string deflated_file(const std::string& plain) {
  libdeflate_compressor* const compressor = libdeflate_alloc_compressor(6);
  std::string deflated(libdeflate_deflate_compress_bound(compressor, plain.size()), '\0');
  deflated.resize(
      libdeflate_deflate_compress(compressor, plain.data(), plain.size(), deflated.data(), deflated.size()));
  libdeflate_free_compressor(compressor);
  return MadeFile("1.2.840.10008.1.2.1.99").string() + deflated;
}

Bytes as_bytes(const std::string& file) {
  return {reinterpret_cast<const std::byte*>(file.data()), file.size()};
}

TEST(DicomHeader, InflatesDeflatedFiles) {
  const std::string file = deflated_file(slice_of(MadeFile::bare(true)).string());
  EXPECT_EQ(read(as_bytes(file), false).result.code, Code::truncated);
  const Read one = read(as_bytes(file));
  ASSERT_TRUE(one.result.ok()) << one.result.cause;
  expect_slice(one.header);
  EXPECT_EQ(read(as_bytes(file).first(file.size() - 20)).result.code, Code::corrupt);
}

TEST(DicomHeader, CountsOnlyPixelsThatADeflatedFileHolds) {
  const std::string plain = slice_of(MadeFile::bare(true)).string();
  const std::string file = deflated_file(plain.substr(0, plain.size() - 5));
  const Read one = read(as_bytes(file));
  ASSERT_TRUE(one.result.ok()) << one.result.cause;
  EXPECT_EQ(one.header.pixels_bytes, 7u);
}

// The functional groups of an enhanced CT, with both kinds of lengths.
TEST(DicomHeader, GivesEachFrameItsOwnPosition) {
  for (const bool is_undefined : {true, false}) {
    for (const char* syntax : {kImplicit, kExplicit, kBigEndian}) {
      const std::size_t start = MadeFile(syntax).string().size();
      const auto item = [&](auto fill) {
        MadeFile file(syntax);
        fill(file);
        return data_set(file, start);
      };
      std::vector<std::string> frames;
      for (const char* position : {"0\\0\\5", "0\\0\\7.5"}) {
        const std::string place = item([&](MadeFile& file) { file.text(0x0020, 0x0032, "DS", position); });
        frames.push_back(item([&](MadeFile& file) { file.sequence(0x0020, 0x9113, {place}, is_undefined); }));
      }
      const std::string rescale =
          item([&](MadeFile& file) { file.text(0x0028, 0x1052, "DS", "-1000").text(0x0028, 0x1053, "DS", "2"); });
      const std::string turned = item([&](MadeFile& file) { file.text(0x0020, 0x0037, "DS", "1\\0\\0\\0\\1\\0"); });
      const std::string shared = item([&](MadeFile& file) {
        file.sequence(0x0020, 0x9116, {turned}, is_undefined).sequence(0x0028, 0x9145, {rescale}, is_undefined);
      });
      MadeFile file(syntax);
      file.gray(1, 1).text(0x0028, 0x0008, "IS", "2");
      file.sequence(0x5200, 0x9229, {shared}, is_undefined)
          .sequence(0x5200, 0x9230, frames, is_undefined)
          .pixels({1, 2});
      const Read one = read(file.bytes());
      ASSERT_TRUE(one.result.ok()) << syntax << ": " << one.result.cause;
      ASSERT_EQ(one.header.per_frame.size(), 2u);
      EXPECT_EQ(one.header.facts_of(0).position, (std::array<double, 3>{0, 0, 5}));
      EXPECT_EQ(one.header.facts_of(1).position, (std::array<double, 3>{0, 0, 7.5}));
      EXPECT_EQ(one.header.facts_of(1).slope, 2);
      EXPECT_EQ(one.header.facts_of(1).intercept, -1000);
      EXPECT_TRUE(one.header.facts_of(1).orientation.has_value());
      EXPECT_EQ(one.header.frames, 2u);
    }
  }
}

TEST(DicomHeader, SkipsSequencesThatAreNotItsOwn) {
  // A thumbnail has rows and pixels of its own.
  const std::size_t start = MadeFile().string().size();
  const std::string icon = data_set(MadeFile().gray(64, 64).pixels({9}), start);
  const Read one = read(MadeFile().sequence(0x0088, 0x0200, {icon}).sequence(0x0089, 0x0200, {icon}, false).bytes());
  ASSERT_TRUE(one.result.ok()) << one.result.cause;
  EXPECT_FALSE(one.header.has_pixels);
  EXPECT_EQ(one.header.rows, 0u);
}

TEST(DicomHeader, AsksForMoreWhereOnlyTheStartIsThere) {
  const MadeFile file = slice_of(MadeFile());
  for (std::size_t size = 0; size + 12 < file.bytes().size(); ++size) {
    const std::vector<std::byte> part(file.bytes().begin(), file.bytes().begin() + static_cast<std::ptrdiff_t>(size));
    const Read one = read(part, false);
    if (!one.header.has_pixels) {
      EXPECT_FALSE(one.result.ok()) << size;
    }
    (void)read(part, true);  // ASan watches
  }
}

TEST(DicomHeader, DoesNotCrashOnAnyFlippedBit) {
  for (const char* syntax : {kImplicit, kExplicit, kBigEndian}) {
    const MadeFile file = slice_of(MadeFile(syntax));
    std::vector<std::byte> copy(file.bytes().begin(), file.bytes().end());
    for (std::size_t bit = 128 * 8; bit < copy.size() * 8; ++bit) {
      copy[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      (void)read(copy);
      copy[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
  }
}

TEST(DicomHeader, RefusesSequencesThatNestForever) {
  std::string inner;
  const std::size_t start = MadeFile().string().size();
  for (int depth = 0; depth < 100; ++depth) inner = data_set(MadeFile().sequence(0x0089, 0x0200, {inner}), start);
  EXPECT_EQ(read(MadeFile().sequence(0x0089, 0x0200, {inner}).bytes()).result.code, Code::corrupt);
}

TEST(DicomHeader, NamesTransferSyntaxes) {
  EXPECT_EQ(transfer_syntax("1.2.840.10008.1.2.4.201").packing, Packing::refused);
  EXPECT_EQ(transfer_syntax("1.2.840.10008.1.2.4.201").name, "HTJ2K lossless");
  EXPECT_EQ(transfer_syntax("1.2.840.10008.1.2.4.70").packing, Packing::encapsulated);
  EXPECT_EQ(transfer_syntax("1.2.3").name, "1.2.3");
  EXPECT_EQ(transfer_syntax("1.2.3").packing, Packing::refused);
}

TEST(DicomHeader, DoesNotTakeOtherFilesForDicom) {
  for (const std::string& text : {std::string("\x89PNG\r\n\x1A\n"), std::string(200, '\0'), std::string(200, 'x'),
                                  std::string("\x08\0\0\0 not at all", 16), std::string()}) {
    EXPECT_FALSE(looks_like_dicom({reinterpret_cast<const std::byte*>(text.data()), text.size()}));
  }
}

}  // namespace
}  // namespace stoker::dicom
