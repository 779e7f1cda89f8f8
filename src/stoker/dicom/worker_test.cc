#include "stoker/dicom/worker.h"

#include <gtest/gtest.h>

#include "stoker/codec/codec.h"
#include "stoker/dicom/decode.h"
#include "stoker/dicom/made_file_test.h"
#include "stoker/os/file.h"
#include "stoker/os/read_file.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::dicom {
namespace {

Json request_for(const std::string& path) {
  Json request = {{"do", "slices"}, {"path", path}, {"rows", 2}, {"columns", 2}};
  request["frames"] = Json::array({0});
  return request;
}

TEST(SliceWorker, WritesAPngFile) {
  const os::TempFolder folder;
  const std::string path = folder.path() + "/x.dcm";
  MadeFile()
      .gray(2, 2)
      .text(0x0028, 0x1052, "DS", "-1000")
      .text(0x0028, 0x1053, "DS", "1")
      .pixels({0, 1, 2, 3})
      .save(path);
  Json request = request_for(path);
  request["to"] = Json::array({folder.path() + "/0.png"});
  SliceWorker worker;
  const Json answer = worker.answer(request);
  ASSERT_TRUE(answer.contains("bytes")) << answer.dump();
  EXPECT_EQ(answer["errors"][0].text(), "");
  const std::vector<std::byte> file = os::read_file(folder.path() + "/0.png");
  EXPECT_EQ(answer["bytes"][0].get<std::uint64_t>(), file.size());
  codec::ImageInfo info;
  ASSERT_TRUE(codec::probe_image(codec::media_of_name("0.png"), file, info).ok());
  EXPECT_EQ(info.bits, 16);
}

TEST(SliceWorker, WritesIntoAnArrayAtItsPlace) {
  const os::TempFolder folder;
  const std::string path = folder.path() + "/x.dcm", array = folder.path() + "/a";
  MadeFile().gray(2, 2).pixels({0, 1, 2, 3}).save(path);
  os::write_file(array, "head");
  Json request = request_for(path);
  request["array"] = array;
  request["at"] = Json::array({4});
  SliceWorker worker;
  EXPECT_EQ(worker.answer(request)["errors"][0].text(), "");
  EXPECT_EQ(os::read_text(array), std::string("head\x00\x80\x01\x80\x02\x80\x03\x80", 12));
}

TEST(SliceWorker, SaysWhatIsWrong) {
  const os::TempFolder folder;
  const std::string path = folder.path() + "/x.dcm";
  MadeFile().gray(2, 2, false).pixels({0, 1, 2, 60000}).save(path);
  SliceWorker worker;
  Json request = request_for(path);
  request["to"] = Json::array({folder.path() + "/0.png"});
  EXPECT_NE(worker.answer(request)["errors"][0].text().find("60000"), std::string::npos);
  EXPECT_FALSE(os::exists(folder.path() + "/0.png"));
  request["rows"] = 3;
  EXPECT_NE(worker.answer(request)["error"].text().find("changed"), std::string::npos);
  request["path"] = folder.path() + "/none";
  EXPECT_NE(worker.answer(request)["error"].text().find("cannot be read"), std::string::npos);
  EXPECT_TRUE(worker.answer(nullptr).contains("error"));
}

TEST(SliceWorker, AFullDiskStopsTheRun) {
  const os::TempFolder folder;
  const std::string path = folder.path() + "/x.dcm";
  MadeFile().gray(2, 2).pixels({0, 1, 2, 3}).save(path);
  Json request = request_for(path);
  request["to"] = Json::array({folder.path() + "/no/such/folder/0.png"});
  SliceWorker worker;
  EXPECT_TRUE(worker.answer(request).contains("stop"));
}

TEST(PixelFile, RefusesPixelDataThatGdcmCannotDecode) {
  const os::TempFolder folder;
  const std::string path = folder.path() + "/x.dcm";
  std::string file = MadeFile("1.2.840.10008.1.2.5").gray(2, 2).string();
  file += std::string("\xE0\x7F\x10\x00OB\0\0\xFF\xFF\xFF\xFF", 12) + std::string("\xFE\xFF\x00\xE0\0\0\0\0", 8);
  file += std::string("\xFE\xFF\x00\xE0\x04\0\0\0", 8) + "abcd" + std::string("\xFE\xFF\xDD\xE0\0\0\0\0", 8);
  os::write_file(path, file);
  PixelFile source(path);
  std::vector<std::uint16_t> pixels;
  EXPECT_NE(source.read_frame(0, pixels).find("(RLE lossless) cannot be decoded"), std::string::npos);
}

}  // namespace
}  // namespace stoker::dicom
