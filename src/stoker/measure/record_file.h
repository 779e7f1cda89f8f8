// The files into which the hook of a measured job writes lines, followed while they grow. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::measure {

// Files are named PID-BORN-SEGMENT.jsonl, allocated beforehand and written through mappings: text up to the first zero
// byte is there. A segment is over when the next one exists.
class RecordFolder {
 public:
  explicit RecordFolder(std::string path, bool remove_read = false)
      : path_(std::move(path)), remove_read_(remove_read) {}

  // Calls `use(pid, line)` for each whole line that was not seen before, in order within a process. Lines of a process
  // whose segment vanished before it was read are counted. Returns how many lines there were.
  std::size_t poll(const std::function<void(int pid, std::string_view line)>& use);

  std::uint64_t lost_segments() const noexcept { return lost_; }

 private:
  struct Follow {
    std::uint64_t segment = 0;  // the one being read
    std::uint64_t offset = 0;
  };

  std::string path_;
  bool remove_read_;
  std::map<std::string, Follow> processes_;  // by "PID-BORN"
  std::vector<std::byte> bytes_;             // read into, each time
  std::uint64_t lost_ = 0;
};

}  // namespace stoker::measure
