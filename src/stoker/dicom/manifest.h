// What a run wrote for one series: `.series.json` in its folder, which gets its name together with the folder. By it a
// later run knows whether the series is up to date, and which files in the folder are Stoker's. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stoker::dicom {

inline constexpr const char* kManifestName = ".series.json";

struct Manifest {
  struct Input {
    std::string source;  // as the index names it
    std::uint64_t bytes = 0;
    std::int64_t modified_ns = 0;
    friend bool operator==(const Input&, const Input&) = default;
  };
  struct Output {
    std::string name;  // in the folder
    std::uint64_t bytes = 0;
  };
  struct Failed {
    std::string source, cause;
  };

  std::uint64_t plan = 0;  // of the lines of the index as they were planned: ids, order, settings
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<Failed> failed;      // slices that could not be decoded
  std::vector<std::string> lines;  // of the index, for the slices that were written

  std::string to_text() const;
  // None where `folder` has no manifest, or one that cannot be read: then the folder is not ours.
  static std::optional<Manifest> read(const std::string& folder);
};

enum class FolderState : std::uint8_t {
  missing,
  whole,    // all outputs are there, and nothing else
  damaged,  // outputs are missing or have other sizes
  foreign,  // holds files that no manifest names
};
// `manifest` is that of the folder, where there is one.
FolderState state_of(const std::string& folder, const std::optional<Manifest>& manifest);

// Removes the outputs, the manifest and then the folder, which stays where it holds anything else.
void remove_series(const std::string& folder, const Manifest& manifest);

}  // namespace stoker::dicom
