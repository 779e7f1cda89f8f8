#include "stoker/dicom/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "stoker/dicom/made_file_test.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::dicom {
namespace {

Header gray_header() {
  Header header;
  header.syntax = transfer_syntax("1.2.840.10008.1.2.1");
  header.photometric = "MONOCHROME2";
  header.rows = header.columns = 4;
  header.bits_allocated = header.bits_stored = 16;
  header.high_bit = 15;
  header.has_pixels = true;
  header.pixels_at = 100;
  header.pixels_bytes = 32;
  return header;
}

Verdict judged(const Header& header) {
  return judge(header, 132, false);
}

void expect_refused(const Header& header, std::string_view words) {
  const Verdict verdict = judged(header);
  EXPECT_EQ(verdict.found, Found::refused);
  EXPECT_NE(verdict.cause.find(words), std::string::npos) << verdict.cause;
}

TEST(DicomFile, AcceptsAGrayImage) {
  EXPECT_EQ(judged(gray_header()).found, Found::image);
}

TEST(DicomFile, IgnoresWhatIsNoSlice) {
  Header pdf = gray_header();
  pdf.sop_class = "1.2.840.10008.5.1.4.1.1.104.1";
  EXPECT_EQ(judged(pdf).found, Found::ignored);
  EXPECT_EQ(judged(pdf).cause, "it is a PDF document, not an image");
  Header localizer = gray_header();
  localizer.image_type = "ORIGINAL\\PRIMARY\\LOCALIZER";
  EXPECT_EQ(judged(localizer).found, Found::ignored);
  Header directory;
  directory.is_directory = true;
  EXPECT_EQ(judged(directory).cause, "it is a DICOMDIR");
  EXPECT_EQ(judged(Header()).cause, "it holds no pixel data");
}

TEST(DicomFile, RefusesWithTheReason) {
  Header header = gray_header();
  header.samples = 3;
  header.photometric = "RGB";
  expect_refused(header, "colour image (RGB, 3 samples per pixel)");
  header = gray_header();
  header.syntax = transfer_syntax("1.2.840.10008.1.2.4.203");
  expect_refused(header, "not supported: HTJ2K");
  header = gray_header();
  header.bits_allocated = 32;
  expect_refused(header, "32 bits per pixel");
  header = gray_header();
  header.bits_stored = 12;
  expect_refused(header, "highest bit is 15 where 12 bits are stored");
  header = gray_header();
  header.has_modality_lut = true;
  expect_refused(header, "Modality LUT");
  header = gray_header();
  header.frames = 2;
  expect_refused(header, "truncated: it has 32 of 64 bytes of pixel data");
  header = gray_header();
  header.has_pixels = false;
  expect_refused(header, "truncated");
  header = gray_header();
  header.has_float_pixels = true;
  expect_refused(header, "floating-point");
}

TEST(DicomFile, RefusesBurnedInTextUnlessIdentifiersAreKept) {
  Header header = gray_header();
  header.has_burned_in_text = true;
  expect_refused(header, "burned into its pixels");
  EXPECT_EQ(judge(header, 132, true).found, Found::image);
}

Source looked_at(const std::string& content) {
  const os::TempFolder folder;
  const std::string path = folder.path() + "/x";
  std::ofstream(path, std::ios::binary) << content;
  Source source;
  source.path = "x";
  source.bytes = content.size();
  look_at(os::open_file(path, O_RDONLY).get(), false, source);
  return source;
}

TEST(DicomFile, FindsImagesByContent) {
  const std::string image = MadeFile().gray(2, 2).pixels({1, 2, 3, 4}).string();
  EXPECT_EQ(looked_at(image).found, Found::image) << looked_at(image).cause;
  EXPECT_EQ(looked_at("just text, long enough to be read as if it were something else").found, Found::other);
  EXPECT_EQ(looked_at("").found, Found::other);
}

std::string cause_of_image(std::uint16_t element, const char* vr, const std::string& value) {
  return looked_at(MadeFile().gray(2, 2).text(0x0028, element, vr, value).pixels({1, 2, 3, 4}).string()).cause;
}

TEST(DicomFile, RefusesValuesThatMakeNoSenseInsteadOfTakingThemForMissing) {
  for (const char* const value : {"-1024,5", "2.5abc", "NaN"}) {
    EXPECT_EQ(cause_of_image(0x1052, "DS", value), "its RescaleIntercept is no number that makes sense") << value;
    EXPECT_EQ(cause_of_image(0x1053, "DS", value), "its RescaleSlope is no number that makes sense") << value;
  }
  EXPECT_EQ(cause_of_image(0x1053, "DS", "0"), "its RescaleSlope is no number that makes sense");
  for (const char* const value : {"0", "-1", "abc", "10000000", "2147483647"}) {
    EXPECT_EQ(cause_of_image(0x0008, "IS", value), "its NumberOfFrames is no number that makes sense") << value;
  }
  EXPECT_EQ(cause_of_image(0x1053, "DS", "1.5"), "");
  EXPECT_EQ(cause_of_image(0x1053, "DS", ""), "");
  EXPECT_EQ(cause_of_image(0x0008, "IS", "1"), "");
}

TEST(DicomFile, TakesWhateverIsNotANoForBurnedInText) {
  for (const char* const value : {"YES", "yes", "Y", "maybe"}) {
    EXPECT_NE(cause_of_image(0x0301, "CS", value).find("burned into its pixels"), std::string::npos) << value;
  }
  for (const char* const value : {"NO", "no", ""}) EXPECT_EQ(cause_of_image(0x0301, "CS", value), "") << value;
}

TEST(DicomFile, RefusesPixelDataThatAreMuchLongerThanTheImage) {
  const auto cause = [](std::vector<std::uint16_t> values) {
    return looked_at(MadeFile().gray(2, 2).pixels(values).string()).cause;
  };
  EXPECT_EQ(cause({1, 2, 3, 4, 0}), "");  // padding
  EXPECT_EQ(cause({1, 2, 3, 4, 5, 6, 7, 8, 9}), "it has 18 bytes of pixel data, and 2 x 2 pixels take 8");
}

TEST(DicomFile, NamesTheByteWhereAFileEnds) {
  const std::string image = MadeFile().gray(2, 2).pixels({1, 2, 3, 4}).string();
  EXPECT_EQ(looked_at(image.substr(0, image.size() - 2)).cause, "it is truncated: it has 6 of 8 bytes of pixel data");
  const Source cut = looked_at(image.substr(0, 180));
  EXPECT_EQ(cut.found, Found::refused);
  EXPECT_NE(cut.cause.find("it is truncated"), std::string::npos) << cut.cause;
}

TEST(DicomFile, ReadsHeadersThatAreLongerThanTheFirstRead) {
  const std::string image =
      MadeFile().text(0x0009, 0x1001, "UN", std::string(300'000, 'x')).gray(2, 2).pixels({1, 2, 3, 4}).string();
  const Source source = looked_at(image);
  EXPECT_EQ(source.found, Found::image) << source.cause;
}

TEST(DicomFile, SeesThatFragmentsAreMissing) {
  const auto encapsulated = [](std::uint32_t claimed) {
    std::string file = MadeFile("1.2.840.10008.1.2.4.90").gray(2, 2).string();
    file += std::string("\xE0\x7F\x10\x00OB\0\0\xFF\xFF\xFF\xFF", 12);
    file += std::string("\xFE\xFF\x00\xE0\0\0\0\0", 8) + std::string("\xFE\xFF\x00\xE0", 4);
    file.append(reinterpret_cast<const char*>(&claimed), 4);
    return file + "abcd" + std::string("\xFE\xFF\xDD\xE0\0\0\0\0", 8);
  };
  EXPECT_EQ(looked_at(encapsulated(4)).found, Found::image) << looked_at(encapsulated(4)).cause;
  EXPECT_NE(looked_at(encapsulated(4000)).cause.find("ends inside its pixel data"), std::string::npos);
}

}  // namespace
}  // namespace stoker::dicom
