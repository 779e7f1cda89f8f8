// Feeds batches of photos to a training step. usage: feed FOLDER
#include <cstdio>

#include "stoker/stoker.h"

namespace {

void train_step(const stoker::loader::Tensor& images, std::span<const std::int64_t> labels) {
  std::printf("step: %lld images of %lld x %lld, first label %lld\n", static_cast<long long>(images.shape[0]),
              static_cast<long long>(images.shape[2]), static_cast<long long>(images.shape[3]),
              static_cast<long long>(labels[0]));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: feed FOLDER\n", stderr);
    return 2;
  }
  try {
    stoker::LoaderOptions options;
    options.batch_size = 4;
    options.shuffle = true;
    options.seed = 42;
    options.transform = stoker::transform::parse_ops("rrc:32,flip,normalize:imagenet");
    stoker::Loader loader(stoker::dataset::open(argv[1]), options);
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      loader.start_epoch(epoch);
      while (stoker::BatchPtr batch = loader.next()) train_step(batch->tensors()[0], batch->labels());
    }
    std::printf("%llu samples\n", static_cast<unsigned long long>(loader.stats().samples));
  } catch (const stoker::Error& error) {
    std::fprintf(stderr, "error: %s\nhint: %s\n", error.what(), error.hint().c_str());
    return 1;
  }
}
