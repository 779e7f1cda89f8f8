// Opens a data set under a bar, as every verb does; Ctrl-C ends it.
#pragma once

#include <string>
#include <utility>

#include "stoker/dataset/dataset.h"

#include "interrupt.h"
#include "terminal.h"

namespace stoker::cli {

// Throws Error.
inline dataset::DatasetPtr scan(const Face& face, const std::string& address, dataset::OpenOptions options = {}) {
  Bar bar(face, "scanning");
  options.progress = [&](std::uint64_t seen) {
    bar.update(seen, "files");
    return !interrupted();
  };
  return dataset::open(address, options);
}

}  // namespace stoker::cli
