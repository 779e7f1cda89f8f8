// Links in a tar shard: GNU tar stores the second name of a file as a link to the first, and symbolic links as they
// are. Both lead to the bytes of another member of the same shard, before or behind them.
// A TarLinks belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stoker/dataset/tar_format.h"

namespace stoker::dataset {

class TarLinks {
 public:
  explicit TarLinks(TarWindow& window) : window_(window) {}  // which is borrowed

  // Puts the place of the file that a link leads to into `member`, and makes it a file. False: the shard has no such
  // file. The first call reads the headers of the whole shard.
  bool resolve(TarMember& member);

 private:
  struct Target {
    TarKind kind = TarKind::other;
    std::uint64_t offset = 0, bytes = 0;
    std::string link;
  };

  TarWindow& window_;
  bool is_read_ = false;
  std::unordered_map<std::string, Target> members_;  // of members with one name, the last, as tar extracts them
};

}  // namespace stoker::dataset
