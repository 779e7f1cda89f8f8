// The pixel data of one file. Native data are read frame by frame; encapsulated ones are decoded by GDCM, which may
// crash on damaged files: call this in a process that may end (worker.h). One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stoker/dicom/file.h"
#include "stoker/dicom/values.h"

namespace stoker::dicom {

class PixelFile {
 public:
  // Opens `path` and reads its header. Throws Error where it cannot be read; error() then says what else is wrong.
  explicit PixelFile(const std::string& path);
  ~PixelFile();
  PixelFile(const PixelFile&) = delete;
  PixelFile& operator=(const PixelFile&) = delete;

  const Header& header() const noexcept { return header_; }
  const std::string& error() const noexcept { return error_; }  // one clause, or empty

  // Frame `frame` as HU + kHuOffset, rows x columns values. Empty, or one clause on what is wrong.
  std::string read_frame(std::uint32_t frame, std::vector<std::uint16_t>& out);

 private:
  std::string decode_all();

  std::string path_, error_;
  os::Fd file_;
  Header header_;
  std::vector<std::byte> pixels_;  // of an encapsulated file: all frames; of a deflated one: the data set; else a frame
  StoredAs as_;
  bool is_decoded_ = false;
};

std::string gdcm_version();

}  // namespace stoker::dicom
