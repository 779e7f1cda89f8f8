// One file on disk: whether it is DICOM, its header, and why it is not written. From any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stoker/dicom/header.h"
#include "stoker/os/fd.h"

namespace stoker::dicom {

enum class Found : std::uint8_t {
  other,    // not DICOM
  image,    // to be written
  ignored,  // DICOM, but by rule not written: a directory, a document, a localizer
  refused,  // an image that cannot be written; `cause` says why
};

struct Source {
  std::string path;  // below the root
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  Found found = Found::other;
  std::string cause;  // one clause: "it is truncated: ..."
  Header header;
};

// Reads the header of the open file. Does not throw for anything that the file holds; what cannot be read is `refused`.
// `keeps_identifiers`: images with burned-in text are written too.
void look_at(int file, bool keeps_identifiers, Source& source);

// What a header says against writing the image. Pure.
struct Verdict {
  Found found = Found::image;
  std::string cause;
};
Verdict judge(const Header& header, std::uint64_t file_bytes, bool keeps_identifiers);

// Whether the fragments of encapsulated pixel data are all there. Walks over their lengths only.
Result check_fragments(int file, std::uint64_t at, std::uint64_t file_bytes);

// Reads as much of the file as its header takes: a few reads, never the pixel data. Throws Error where the file cannot
// be read.
Result read_file_header(int file, std::uint64_t bytes, const std::string& path, Header& header,
                        std::vector<std::byte>& inflated);

}  // namespace stoker::dicom
