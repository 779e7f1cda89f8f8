// Which slices make which series, in which order: pure functions over headers. Safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/dicom/file.h"

namespace stoker::dicom {

struct Slice {
  std::size_t source = 0;             // in the list of sources
  std::uint32_t frame = 0;            // in the file, from 0
  std::optional<double> position;     // mm along the normal of the slices
  std::vector<std::size_t> copies{};  // sources with the same instance, for when this one cannot be decoded
};

struct Series {
  std::string name;                    // of its folder
  std::string patient, study, series;  // ids as they are written
  std::string modality;
  std::uint32_t rows = 0, columns = 0;
  std::vector<Slice> slices;            // in order
  std::optional<double> slice_spacing;  // mm: the median distance of neighbours
  std::vector<std::string> notes;       // fallbacks, splits, gaps: one sentence each
};

struct LeftOut {
  std::string path, cause;
  bool is_ignored = false;  // by rule; else it is damaged or not supported
};

struct SeriesPlan {
  std::vector<Series> series;  // by name
  std::vector<LeftOut> left_out;
};

// The id that is written for a `kind` (patient, study, series, source) and its value in the file.
using NameOf = std::function<std::string(std::string_view kind, const std::string& value)>;

// `sources` are sorted by path. Sources that are not images are left out with their cause.
//  - A series is a SeriesInstanceUID. Files without one are grouped by folder, and a note says so.
//  - The same SOPInstanceUID twice: the first by path stays, and the others are its copies.
//  - Slices of other sizes or orientations become series of their own: NAME-2, NAME-3, by path. A slice without an
//    orientation belongs to the most of its size that have one.
//  - Several slices at one place (times, echoes) become series of their own too: the first of each place by
//    InstanceNumber, then the second of each, and so on.
//  - Order: position along the normal, then InstanceNumber, then path, then frame. Without positions for all of them:
//    InstanceNumber, path, frame.
SeriesPlan plan_series(const std::vector<Source>& sources, const NameOf& name_of);

}  // namespace stoker::dicom
