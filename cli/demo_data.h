// A small data set that needs nothing but this program: images that compress like photographs, and audio.
// The same bytes on every machine with the same libjpeg.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace stoker::cli {

struct DemoData {
  std::string images, audio;  // folders, with a folder per class
  std::uint64_t image_count = 0, audio_count = 0;
  std::uint64_t image_bytes = 0, audio_bytes = 0;
  bool was_there = false;  // made by an earlier run
};

inline constexpr std::uint64_t kDemoFiles = 320 + 240;

// Makes the data set in `folder`, which must not exist, be empty, or hold a finished one (which is used again).
// `progress` is called from several threads and returns false to stop. Throws Error.
DemoData make_demo_data(const std::string& folder, const std::function<bool(std::uint64_t files)>& progress);

}  // namespace stoker::cli
