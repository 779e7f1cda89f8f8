// The index of the slices: one line of CSV each. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/dicom/series.h"

namespace stoker::dicom {

// The first line, without its end.
inline constexpr std::string_view kIndexColumns =
    "path,patient,study,series,modality,instance,frame,position,slice_spacing,pixel_spacing,pixel_spacing_cols,"
    "hu_offset,rows,cols,window_center,window_width,rescale_slope,rescale_intercept,photometric,row,source";

struct IndexLine {
  const Series& series;
  const Slice& slice;
  const Header& header;
  std::string path;       // of the file that was written, from the folder above _index
  std::uint64_t row = 0;  // in that file: 0 for a PNG file
  std::string source;     // what is written of the source's path
};
std::string index_line(const IndexLine& line);

}  // namespace stoker::dicom
