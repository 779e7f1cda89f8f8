// Lists a folder as the loader does. usage: bare_scan FOLDER CACHE_FOLDER|-    (-: no cached listing is read or
// written)
#include <cstdio>
#include <string>

#include "stoker/stoker.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    stoker::dataset::OpenOptions options;
    options.use_cache = std::string(argv[2]) != "-";
    if (options.use_cache) options.cache_dir = argv[2];
    const auto dataset = stoker::dataset::open(argv[1], options);
    std::printf("%llu\n", static_cast<unsigned long long>(dataset->size()));
    return 0;
  } catch (const stoker::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
