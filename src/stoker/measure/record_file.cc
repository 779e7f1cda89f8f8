#include "stoker/measure/record_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/os/fd.h"

namespace stoker::measure {
namespace {

constexpr std::size_t kChunk = 1 << 20;

// "PID-BORN" and the segment's number; false for a name of another kind.
bool parse_name(const std::string& name, std::string& process, std::uint64_t& segment) {
  const std::size_t dot = name.rfind(".jsonl"), dash = name.rfind('-');
  if (dot == std::string::npos || dot + 6 != name.size() || dash == std::string::npos || dash == 0 || dash > dot)
    return false;
  process = name.substr(0, dash);
  const auto [after, code] = std::from_chars(name.data() + dash + 1, name.data() + dot, segment);
  return code == std::errc{} && after == name.data() + dot;
}

}  // namespace

std::size_t RecordFolder::poll(const std::function<void(int, std::string_view)>& use) {
  std::map<std::string, std::vector<std::uint64_t>> there;
  std::error_code ignored;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(path_, ignored)) {
    std::string process;
    std::uint64_t segment = 0;
    if (parse_name(entry.path().filename().string(), process, segment)) there[process].push_back(segment);
  }
  std::size_t lines = 0;
  bytes_.resize(kChunk);
  for (auto& [process, segments] : there) {
    std::sort(segments.begin(), segments.end());
    Follow& follow = processes_[process];
    int pid = 0;
    std::from_chars(process.data(), process.data() + process.size(), pid);
    for (const std::uint64_t segment : segments) {
      if (segment < follow.segment) continue;
      if (segment > follow.segment) {
        if (segment > follow.segment + 1) lost_ += segment - follow.segment - 1;
        follow = {.segment = segment, .offset = 0};
      }
      const std::string path = fmt::format("{}/{}-{:06}.jsonl", path_, process, segment);
      int error_number = 0;
      const os::Fd fd = os::try_open(AT_FDCWD, path.c_str(), O_RDONLY, error_number);
      if (!fd) continue;
      for (;;) {
        const std::int64_t got = os::read_some(fd.get(), bytes_, follow.offset);
        if (got <= 0) break;
        const char* text = reinterpret_cast<const char*>(bytes_.data());
        const std::size_t filled = strnlen(text, static_cast<std::size_t>(got));
        std::size_t at = 0;
        while (at < filled) {
          const char* end = static_cast<const char*>(std::memchr(text + at, '\n', filled - at));
          if (end == nullptr) break;
          use(pid, std::string_view(text + at, static_cast<std::size_t>(end - text) - at));
          at = static_cast<std::size_t>(end - text) + 1;
          ++lines;
        }
        follow.offset += at;
        if (at == 0 || filled < static_cast<std::size_t>(got)) break;
      }
      if (remove_read_ && segment != segments.back()) std::filesystem::remove(path, ignored);
    }
  }
  return lines;
}

}  // namespace stoker::measure
