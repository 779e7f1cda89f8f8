// The payloads of samples that are to be written into a pack, one after another: decoded to a fixed shape by a loader
// (raw), or the bytes of the source as they are (encoded); or taken from the pack that is there. One thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "stoker/base/text.h"
#include "stoker/dataset/packed.h"
#include "stoker/loader/loader.h"
#include "stoker/prepare/pack.h"
#include "stoker/prepare/pack_plan.h"
#include "stoker/prepare/sample_stream.h"

namespace stoker::prepare {

// What the samples become, decided once from the options and the first sample.
struct Content {
  dataset::PackKind kind = dataset::PackKind::encoded;
  // raw
  DType dtype = DType::u8;
  std::vector<std::uint64_t> shape;
  SampleKind samples = SampleKind::array;
  std::uint32_t rate_hz = 0;
  std::uint32_t height = 0, width = 0, channels = 0;  // of images; channels of audio
  loader::LoaderOptions loader;                       // without batch_size and on_error
  std::uint64_t first = 0;                            // sample of the source that tells what they are
  bool floats_to_u16 = false;                         // the loader gives [0, 1], the pack keeps uint16

  std::uint64_t row_bytes() const noexcept;
  std::string settings(const PackOptions& options) const;  // JSON
};
// Reads the first samples. Throws Error: what was asked cannot be.
Content decide_content(const dataset::DatasetPtr& source, const PackOptions& options);

Text skip_hint();  // on_error="skip" leaves bad samples out

struct Payload {
  std::uint64_t position = 0;
  std::span<const std::byte> bytes;  // until the next call
  std::optional<std::uint64_t> xxh3;
  std::uint32_t height = 0, width = 0, channels = 0;
  std::uint64_t frames = 0;
  std::string extension;            // by content: ".jpg"; empty: not known
  std::span<const std::byte> seek;  // note_places(); until the next call
  Text fault;                       // not empty: there is no payload, and this is why
};

class Payloads {
 public:
  // `loose` must outlive it; begins at `loose[begin]`. `base` may be null.
  Payloads(dataset::DatasetPtr source, std::shared_ptr<const dataset::Packed> base, const Content& content,
           const std::vector<PackPlan::Loose>& loose, std::uint64_t begin, const PackOptions& options);
  ~Payloads();

  // False at the end, or early if `keep_going` said so: then interrupted() tells.
  bool next(Payload& payload, const std::function<bool()>& keep_going);
  bool interrupted() const noexcept { return interrupted_; }

 private:
  // Takes samples out of a SampleStream one by one.
  struct Taps {
    std::unique_ptr<SampleStream> stream;
    std::unique_ptr<SampleStream::Chunk> chunk;
    std::size_t at = 0;
    StreamedSample* next(const std::function<bool()>& keep_going);
  };
  bool next_raw(std::uint64_t number, Payload& payload, const std::function<bool()>& keep_going);

  dataset::DatasetPtr source_;
  std::shared_ptr<const dataset::Packed> base_;
  const Content& content_;
  const std::vector<PackPlan::Loose>& loose_;
  std::uint64_t at_;
  bool interrupted_ = false;
  Taps from_source_, from_base_;

  // raw
  std::unique_ptr<loader::Loader> loader_;
  loader::BatchPtr batch_;
  std::uint64_t row_ = 0;
  std::uint64_t taken_ = 1;  // samples of the loader's data set dealt with; the first is Content::first
  bool ended_ = false;
  std::unordered_map<std::uint64_t, Text> faults_;
  std::vector<std::uint16_t> converted_;
};

}  // namespace stoker::prepare
