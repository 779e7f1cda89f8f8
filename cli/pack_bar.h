// The bar of pack and check: one per phase, and Ctrl-C. One thread.
#pragma once

#include "stoker/prepare/progress.h"

#include "interrupt.h"
#include "phase_bar.h"

namespace stoker::cli {

class PackBar {
 public:
  explicit PackBar(const Face& face) : phases_(face) {}

  bool operator()(const prepare::PackProgress& progress) {
    const double rate =
        progress.bytes > 0 && progress.seconds > 0 ? static_cast<double>(progress.bytes) / progress.seconds : -1;
    const bool in_bytes = progress.phase == "uploading";
    phases_.of(progress.phase, progress.total)
        .update(progress.done,
                in_bytes              ? "MB"
                : progress.total == 0 ? "files"
                                      : "samples",
                in_bytes ? 0 : -1, rate);
    return !interrupted();
  }
  void clear() { phases_.clear(); }

 private:
  PhaseBar phases_;
};

}  // namespace stoker::cli
