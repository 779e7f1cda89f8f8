// One line per way of loading: a digest of every batch of two epochs. Equal lines on two machines mean equal bytes:
// pixels, samples, labels, order, and what chance decided. usage: arch_digests FOLDER (made by tests/arch/run)
#include <cstdio>
#include <string>

#include "stoker/base/hash.h"
#include "stoker/stoker.h"

namespace {

struct Way {
  const char* folder;
  const char* transform;
  const char* dtype = "";  // what the transform gives
  const char* layout = "NCHW";
  const char* decode = "exact";
};

constexpr Way kWays[] = {
    {"images", "rrc:64,flip"},
    {"images", "rrc:96:filter=bicubic,flip,normalize:imagenet"},
    {"images", "rrc:64,flip,normalize:imagenet", "float16"},
    {"images", "resize:40,centercrop:32,normalize:0.5/0.25", "bfloat16", "NHWC"},
    {"images", "resize:50x70:filter=box", "", "channels_last"},
    {"images", "resize:20x300:filter=nearest"},
    {"images", "views(big=2[rrc:64,flip],small=3[rrc:24:filter=bicubic,flip])"},
    {"images", "rrc:64,flip", "", "NCHW", "fast"},
    {"images", "resize:40,centercrop:32,normalize:imagenet", "float32", "NCHW", "fast"},
    {"formats", "rrc:31,flip"},
    {"formats", "rrc:8,flip", "", "NHWC", "fast"},
    {"formats", "resize:21x35"},
    {"slices", "window:level=-700..100:width=300..2000:offset=32768,rrc:96,flip"},
    {"slices", "resize:150x80:filter=bicubic,tofloat,normalize:0.4/0.3", "float16"},
    {"slices", "window:level=0:width=65536:offset=32768,resize:31x300:filter=box"},
    {"audio", "pad:4000"},
    {"audio", "mono,pad:4000", "float16"},
    {"sound-formats", "pad:100"},
    {"audio", "resample:11025,pad:4000"},
};

std::uint64_t digest(const std::string& root, const Way& way) {
  stoker::LoaderOptions options;
  options.batch_size = 7;
  options.shuffle = true;
  options.seed = 42;
  options.num_workers = 2;
  options.transform = stoker::transform::parse_ops(way.transform);
  if (*way.dtype != '\0') options.output.dtype = stoker::parse_dtype(way.dtype);
  options.decode = stoker::loader::parse_decode(way.decode);
  options.output.layout = stoker::loader::parse_layout(way.layout);
  stoker::Loader loader(stoker::dataset::open(root + "/" + way.folder), options);
  std::uint64_t sum = 0;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    loader.start_epoch(epoch);
    while (const stoker::BatchPtr batch = loader.next()) {
      for (const stoker::loader::Tensor& tensor : batch->tensors()) {
        std::size_t elements = 1;
        for (const std::int64_t length : tensor.shape) elements *= static_cast<std::size_t>(length);
        sum = stoker::hash_bytes({tensor.data, elements * stoker::size_of(tensor.dtype)}, sum);
      }
      sum = stoker::hash_bytes(std::as_bytes(batch->labels()), sum);
      sum = stoker::hash_bytes(std::as_bytes(batch->ids()), sum);
    }
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: arch_digests FOLDER\n", stderr);
    return 2;
  }
  try {
    for (const Way& way : kWays) {
      std::printf("%016llx  %s %s %s %s %s\n", static_cast<unsigned long long>(digest(argv[1], way)), way.folder,
                  way.transform, way.dtype, way.layout, way.decode);
    }
  } catch (const stoker::Error& error) {
    std::fprintf(stderr, "error: %s\nhint: %s\n", error.what(), error.hint().c_str());
    return 1;
  }
}
