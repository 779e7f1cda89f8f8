// The bar of pack and check: one per phase, and Ctrl-C. One thread.
#pragma once

#include <optional>
#include <string>

#include "stoker/prepare/progress.h"

#include "interrupt.h"
#include "terminal.h"

namespace stoker::cli {

class PackBar {
 public:
  explicit PackBar(const Face& face) : face_(face) {}

  bool operator()(const prepare::PackProgress& progress) {
    if (!bar_ || phase_ != progress.phase) {
      phase_ = progress.phase;
      bar_.reset();
      bar_.emplace(face_, phase_, progress.total);
    }
    const double rate =
        progress.bytes > 0 && progress.seconds > 0 ? static_cast<double>(progress.bytes) / progress.seconds : -1;
    const bool in_bytes = progress.phase == "uploading";
    bar_->update(progress.done, in_bytes ? "MB" : progress.total == 0 ? "files" : "samples", in_bytes ? 0 : -1, rate);
    return !interrupted();
  }
  void clear() { bar_.reset(); }

 private:
  const Face& face_;
  std::optional<Bar> bar_;
  std::string phase_;
};

}  // namespace stoker::cli
