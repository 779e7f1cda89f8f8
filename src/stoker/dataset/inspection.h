// What a data set holds: counts, classes, media, sizes; and what its codecs say of samples that are decoded whole.
// Plain values. inspect() uses a thread per core and may be called from any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "stoker/codec/whole.h"
#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

template <typename T>
struct Extremes {
  T least{}, most{};
  bool seen = false;
  void add(T value) {
    least = seen ? std::min(least, value) : value;
    most = seen ? std::max(most, value) : value;
    seen = true;
  }
  void add(const Extremes& other) {
    if (other.seen) add(other.least), add(other.most);
  }
};

struct BadFile {
  std::uint64_t index = 0;
  std::string name, cause;
};

// What the codecs said of the samples that were read.
struct Examined {
  std::uint64_t count = 0, images = 0, audio = 0, arrays = 0;
  Extremes<std::uint32_t> width, height;
  std::map<int, std::uint64_t> channels, bits;  // of images
  std::map<std::uint32_t, std::uint64_t> rates, audio_channels;
  Extremes<double> seconds;
  double total_seconds = 0;
  std::map<std::string, std::uint64_t> array_shapes;              // "float32 [80, 3000]"
  std::map<std::vector<std::string>, std::uint64_t> npz_members;  // of files with several arrays: the first is read
  std::map<std::string, std::uint64_t> mislabelled;               // "png inside, named as jpeg"
  std::vector<BadFile> bad;

  void add(const codec::Head& head);
  void add(const Examined& other);
};

struct ClassCount {
  std::string name;
  std::uint64_t count = 0;
};

struct SizeSummary {
  std::uint64_t least = 0, median = 0, p99 = 0, most = 0;
  double mean = 0;
};

struct SizeBucket {
  double from = 0, to = 0;
  std::uint64_t count = 0;
};

struct Inspection {
  std::string address, kind;
  std::uint64_t count = 0, total_bytes = 0;
  std::string labels;  // "classes", "whole numbers", "real numbers", "none"
  std::vector<std::string> columns;
  std::vector<ClassCount> classes;  // in order of name
  std::map<std::string, std::uint64_t> media;
  SizeSummary sizes;
  std::vector<SizeBucket> histogram;
  std::string array;  // of a bare .npy
  Examined examined;
  bool examined_all = false;
  std::vector<Loss> losses;
  std::vector<std::string> notes;
};

struct InspectOptions {
  bool everything = false;  // decode every sample, not only some of them and what is empty
  std::function<bool()> interrupted = {};
  std::function<void(std::uint64_t total)> begun = {};    // decoding of `total` samples begins
  std::function<void(std::uint64_t done)> progress = {};  // of them; called by any thread
};

// Throws Error: unavailable where it was interrupted, or where no thread could go on.
Inspection inspect(const Dataset& data, const InspectOptions& options);

}  // namespace stoker::dataset
