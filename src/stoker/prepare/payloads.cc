#include "stoker/prepare/payloads.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/codec/whole.h"
#include "stoker/dataset/read_sample.h"
#include "stoker/prepare/seek_record.h"

namespace stoker::prepare {
namespace {

using dataset::PackKind;

constexpr std::uint64_t kSamplesToLookAt = 16;
constexpr std::uint64_t kBatchBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kMostRows = 2048;

// The first sample that can be read. It decides what the pack holds.
struct FirstLook {
  std::uint64_t index = 0;
  codec::Head head;

  bool is(SampleKind kind) const noexcept { return codec::kind_of(head.media) == kind; }
};

FirstLook look(const dataset::Dataset& source) {
  Scratch scratch;
  FirstLook found;
  for (std::uint64_t i = 0; i < std::min(source.size(), kSamplesToLookAt); ++i) {
    scratch.reset();
    const storage::WholeRead sample = dataset::read_sample(source, i, scratch);
    if (!sample.ok() || !codec::probe(sample.bytes, found.head, scratch).ok()) continue;
    found.index = i;
    return found;
  }
  return {};
}

void refuse_chance(const transform::Ops& ops) {
  for (const transform::Op& op : ops) {
    const bool allowed =
        std::holds_alternative<transform::Resize>(op.what) || std::holds_alternative<transform::CenterCrop>(op.what) ||
        std::holds_alternative<transform::PadOrTrim>(op.what) || std::holds_alternative<transform::Resample>(op.what) ||
        std::holds_alternative<transform::Mono>(op.what);
    if (!allowed) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot pack with the transform `{}`: a pack keeps what is the same in every epoch",
                              transform::to_text({op})),
                  "resize, crop, mono, resample and pad can be packed; leave the others to the loader");
    }
  }
}

void add_size(const std::string& size, transform::Ops& ops) {
  const auto parse = [&](std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value == 0 || value > 65535) {
      throw Error(ErrorKind::usage, fmt::format("cannot read the size `{}`", size),
                  "256 makes the shorter side 256 and crops the centre; 256x320 resizes to height x width");
    }
    return value;
  };
  const std::size_t x = size.find('x');
  if (x == std::string::npos) {
    const std::uint32_t side = parse(size);
    ops.push_back({transform::Resize{side, 0, transform::Filter::bilinear}});
    ops.push_back({transform::CenterCrop{side, side}});
  } else {
    ops.push_back(
        {transform::Resize{parse(size.substr(0, x)), parse(size.substr(x + 1)), transform::Filter::bilinear}});
  }
}

// How a raw pack keeps images: with the bits that they have.
void choose_image_form(const codec::ImageInfo& first, const PackOptions& options, Content& content) {
  loader::LoaderOptions& loading = content.loader;
  const bool deep = first.bits == 16 && options.dtype.value_or(DType::u16) == DType::u16;
  if (options.dtype == DType::u16 && !deep) {
    throw Error(ErrorKind::usage, "cannot pack these images as uint16: the first one has 8 bits per channel",
                "leave dtype out, or choose uint8");
  }
  if (deep) {
    content.floats_to_u16 = true;
    loading.output.dtype = DType::f32;
    loading.transform.push_back({transform::ToFloat{}});
    if (options.color == codec::Color::rgb && first.channels == 1) loading.color = codec::Color::keep;
  } else if (!options.dtype) {
    loading.output.dtype = DType::u8;
  }
}

// How a raw pack keeps audio: as int16 where that loses nothing.
void choose_audio_form(const codec::AudioInfo& first, const PackOptions& options, Content& content) {
  if (options.dtype) return;
  const bool fits = first.format == codec::SampleFormat::s16 || first.format == codec::SampleFormat::u8;
  content.loader.output.dtype = fits ? DType::i16 : DType::f32;
}

void only_raw(bool given, std::string_view what) {
  if (given) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot change samples ({}) in an encoded pack: it keeps them as they are", what),
                "leave it out, or make a raw pack");
  }
}

}  // namespace

std::uint64_t Content::row_bytes() const noexcept {
  std::uint64_t bytes = size_of(dtype);
  for (const std::uint64_t n : shape) bytes *= n;
  return bytes;
}

std::string Content::settings(const PackOptions& options) const {
  Json json = {{"kind", dataset::name(kind)}};
  if (!options.label.empty()) json["label"] = options.label;
  if (const Json narrowing = options.narrowing.to_json(); !narrowing.empty()) json["narrowing"] = narrowing;
  if (kind == PackKind::raw) {
    json["dtype"] = stoker::name(dtype);
    if (options.samples != 0) json["samples"] = options.samples;
    if (!options.size.empty()) json["size"] = options.size;
    if (!options.transform.empty()) json["transform"] = transform::to_text(options.transform);
    if (samples == SampleKind::image) {
      json["color"] = loader.color == codec::Color::rgb ? "rgb" : loader.color == codec::Color::gray ? "gray" : "keep";
    }
  }
  return json.dump();
}

Content decide_content(const dataset::DatasetPtr& source, const PackOptions& options) {
  Content content;
  const bool rows = source->facts().array.has_value();
  const bool changes = options.dtype || options.samples != 0 || !options.size.empty() || !options.transform.empty();
  content.kind = options.kind.value_or(rows || changes ? PackKind::raw : PackKind::encoded);
  if (content.kind == PackKind::encoded) {
    if (rows) {
      throw Error(
          ErrorKind::usage,
          fmt::format("cannot make an encoded pack of `{}`: rows of an array have no encoded form", options.source),
          format_text("make a raw pack: {}", option("kind", "raw")));
    }
    only_raw(options.dtype.has_value(), "dtype");
    only_raw(options.samples != 0, "samples");
    only_raw(!options.size.empty(), "size");
    only_raw(!options.transform.empty(), "transform");
    return content;
  }

  refuse_chance(options.transform);
  const FirstLook first = rows ? FirstLook{} : look(*source);
  content.first = first.index;
  if (!first.is(SampleKind::audio) && options.samples != 0)
    throw Error(ErrorKind::usage, "`samples` pads and trims audio, and these samples are none", "leave it out");
  loader::LoaderOptions& loading = content.loader;
  loading.transform = options.transform;
  loading.color = options.color;
  loading.memory_limit = options.memory_limit;
  loading.num_workers = options.num_workers;
  loading.output.dtype = options.dtype;
  loading.output.layout = transform::Layout::nhwc;
  if (options.samples != 0) loading.transform.push_back({transform::PadOrTrim{options.samples}});
  if (!options.size.empty()) add_size(options.size, loading.transform);
  if (first.is(SampleKind::image)) choose_image_form(first.head.image, options, content);
  if (first.is(SampleKind::audio)) choose_audio_form(first.head.audio, options, content);

  const loader::Loader probe(dataset::take_indices(source, {content.first}), loading);  // starts no threads
  const loader::KindFacts& kind = probe.kind();
  const transform::Output& output = kind.outputs.front();
  if (output.varies) {
    throw Error(ErrorKind::usage, "cannot make a raw pack of audio of different lengths",
                format_text("say how many samples each shall have: {} pads and trims", option("samples", "16000")));
  }
  content.dtype = content.floats_to_u16 ? DType::u16 : output.dtype;
  content.shape = output.shape;
  content.samples = kind.kind;
  content.height = kind.height, content.width = kind.width;
  content.channels = kind.channels, content.rate_hz = kind.rate_hz;
  if (kind.kind == SampleKind::image && kind.channels == 1) content.shape.pop_back();
  if (content.row_bytes() == 0)
    throw Error(ErrorKind::unsupported, "cannot make a raw pack of samples without any elements");
  return content;
}

StreamedSample* Payloads::Taps::next(const std::function<bool()>& keep_going) {
  while (!chunk || at == chunk->samples.size()) {
    if (chunk) stream->give_back(std::move(chunk));
    chunk = stream->next(keep_going);
    at = 0;
    if (!chunk) return nullptr;
  }
  return &chunk->samples[at++];
}

Payloads::Payloads(dataset::DatasetPtr source, std::shared_ptr<const dataset::Packed> base, const Content& content,
                   const std::vector<PackPlan::Loose>& loose, std::uint64_t begin, const PackOptions& options)
    : source_(std::move(source)), base_(std::move(base)), content_(content), loose_(loose), at_(begin) {
  std::vector<std::uint64_t> from_source, from_base;
  for (std::uint64_t i = begin; i < loose_.size(); ++i) {
    if (loose_[i].base == PackPlan::kNone) {
      from_source.push_back(loose_[i].position);
    } else {
      from_base.push_back(loose_[i].base);
    }
  }
  StreamOptions streaming;
  streaming.work = [seeks = content_.kind == PackKind::encoded && options.seek_index](StreamedSample& sample) {
    sample.xxh3 = hash_bytes(sample.bytes);
    describe(sample);
    if (seeks && codec::is_seekable(sample.media)) note_places(sample.bytes, sample.xxh3, sample.seek);
  };
  if (!from_base.empty()) from_base_.stream = std::make_unique<SampleStream>(*base_, std::move(from_base), streaming);
  if (from_source.empty()) return;
  if (content_.kind == PackKind::encoded) {
    from_source_.stream = std::make_unique<SampleStream>(*source_, std::move(from_source), streaming);
    return;
  }
  loader::LoaderOptions loading = content_.loader;
  loading.on_error = options.on_error;
  const std::uint64_t row_bytes = content_.row_bytes() * (content_.floats_to_u16 ? 2 : 1);
  loading.batch_size = std::clamp<std::uint64_t>(kBatchBytes / row_bytes, 1, kMostRows);
  loading.batch_size = std::min<std::uint64_t>(loading.batch_size, from_source.size());
  // The loader learns from its first sample what the data set holds. That is the same one in every run, and not packed.
  from_source.insert(from_source.begin(), content_.first);
  loader_ = std::make_unique<loader::Loader>(dataset::take_indices(source_, std::move(from_source)), loading);
  loader_->start_epoch(0, 1);
}

Payloads::~Payloads() = default;

Text skip_hint() {
  return format_text("{} leaves bad samples out", option("on_error", "skip"));
}

bool Payloads::next_raw(std::uint64_t number, Payload& payload, const std::function<bool()>& keep_going) {
  while (!ended_ && (!batch_ || row_ == batch_->size())) {
    batch_.reset();
    try {
      batch_ = loader_->next([&] { return keep_going && !keep_going(); });
    } catch (const Error& error) {
      if (error.option() != "on_error") throw;
      throw Error(error.kind(), error.text(), skip_hint()).about("on_error");  // the loader has more ways than a pack
    }
    row_ = 0;
    ended_ = !batch_;
  }
  // A gap in the indices is a sample that the loader skipped.
  if (ended_ || static_cast<std::uint64_t>(batch_->indices()[row_]) != number) {
    if (!faults_.contains(number)) {
      for (const loader::SampleError& error : loader_->errors()) {
        if (error.is_sample()) faults_[error.index] = error.cause;
      }
    }
    const auto found = faults_.find(number);
    payload.fault = found == faults_.end() ? Text("it could not be decoded") : found->second;
    return true;
  }
  const loader::Tensor& tensor = batch_->tensors().front();
  std::uint64_t elements = 1;
  for (std::size_t d = 1; d < tensor.shape.size(); ++d) elements *= static_cast<std::uint64_t>(tensor.shape[d]);
  const std::byte* const at = tensor.data + row_ * elements * size_of(tensor.dtype);
  if (content_.floats_to_u16) {
    converted_.resize(elements);
    const float* const values = reinterpret_cast<const float*>(at);
    for (std::uint64_t i = 0; i < elements; ++i)
      converted_[i] = static_cast<std::uint16_t>(std::lrintf(std::clamp(values[i], 0.0F, 1.0F) * 65535.0F));
    payload.bytes = std::as_bytes(std::span(converted_));
  } else {
    payload.bytes = {at, elements * size_of(tensor.dtype)};
  }
  payload.height = content_.height, payload.width = content_.width, payload.channels = content_.channels;
  if (!batch_->lengths().empty()) payload.frames = static_cast<std::uint64_t>(batch_->lengths()[row_]);
  ++row_;
  return true;
}

bool Payloads::next(Payload& payload, const std::function<bool()>& keep_going) {
  payload = {};
  if (at_ == loose_.size()) return false;
  const PackPlan::Loose& loose = loose_[at_];
  payload.position = loose.position;
  if (loose.base == PackPlan::kNone && content_.kind == PackKind::raw) {
    next_raw(taken_++, payload, keep_going);
  } else {
    Taps& taps = loose.base == PackPlan::kNone ? from_source_ : from_base_;
    StreamedSample* const sample = taps.next(keep_going);
    if (sample == nullptr) {
      interrupted_ = true;
      return false;
    }
    payload.fault = sample->fault;
    if (payload.fault.empty() && loose.base == PackPlan::kNone) payload.fault = sample->problem;
    payload.bytes = sample->bytes;
    payload.xxh3 = sample->xxh3;
    payload.height = sample->height, payload.width = sample->width, payload.channels = sample->channels;
    payload.frames = sample->frames;
    payload.extension = codec::extension(sample->media);
    payload.seek = sample->seek;
    if (loose.base != PackPlan::kNone) {
      const dataset::PackRow row = base_->row(loose.base);
      payload.height = row.height, payload.width = row.width, payload.channels = row.channels,
      payload.frames = row.frames;
      if (payload.fault.empty() && row.xxh3 != sample->xxh3)
        payload.fault =
            "the pack that is there has other bytes than its checksum says: repair it with `stoker check --repair`";
    }
  }
  ++at_;
  return true;
}

}  // namespace stoker::prepare
