#include "stoker/loader/recipe.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/dataset/read_sample.h"
#include "stoker/loader/array_kind.h"
#include "stoker/loader/audio_kind.h"
#include "stoker/loader/encoded_kind.h"
#include "stoker/loader/image_kind.h"
#include "stoker/loader/ragged_kind.h"
#include "stoker/loader/volume_kind.h"

namespace stoker::loader {
namespace {

// Until one can be read: the first ones, then, where bad samples do not end the run, some all over the data set.
constexpr std::uint64_t kFirstLooks = 16, kMostLooks = 256;
// A limit below it does not end the look: the job then refuses that limit, and names the least that works.
constexpr std::uint64_t kLeastLook = 64 * kMiB;
constexpr std::size_t kNoColumn = ~std::size_t{0};

// One line for each kind of decoded sample.
std::unique_ptr<const Kind> make_kind(SampleKind kind, const FirstSample& first, const LoaderOptions& options) {
  switch (kind) {
    case SampleKind::image:
      return std::make_unique<ImageKind>(first, options);
    case SampleKind::audio:
      return std::make_unique<AudioKind>(first, options);
    case SampleKind::array:
      if (options.shapes != Shapes::equal && !first.row) return std::make_unique<RaggedKind>(first, options);
      return std::make_unique<ArrayKind>(first, options);
    case SampleKind::volume:
      break;  // no file is one: find_kind() knows them by their data set
  }
  return nullptr;
}

std::unique_ptr<const Kind> kind_of_rows(const codec::ArrayInfo& whole, const LoaderOptions& options) {
  FirstSample first;
  codec::ArrayInfo& row = first.row.emplace(whole);
  row.rank = static_cast<std::uint8_t>(whole.rank - 1);
  row.data_bytes = size_of(row.dtype);
  for (std::size_t i = 0; i < row.rank; ++i) {
    row.shape[i] = whole.shape[i + 1];
    row.data_bytes *= row.shape[i];
  }
  return make_kind(ImageKind::takes(row, options.transform) ? SampleKind::image : SampleKind::array, first, options);
}

bool is_too_short(SampleKind kind, const FirstSample& first, const LoaderOptions& options) {
  return kind == SampleKind::audio && AudioKind::is_too_short(first, options);
}

// What looking at samples has found, until one could be read.
struct Looked {
  std::unique_ptr<const Kind> kind = {};  // null: none could be
  std::uint64_t looks = 0;
  Text first_problem = {};
  std::optional<std::uint64_t> too_short = {};  // the first one that can be read, but is too short for the operations
  bool is_limit_too_low = false;
  std::uint64_t peak_bytes = 0;
};

// Holds no more than `limit_bytes`. Throws Error where a read fails for a reason that all samples share. Where every
// sample is too short, the kind is made from the first of them, whose constructor says what is needed.
Looked look_at_files(const dataset::Dataset& dataset, const LoaderOptions& options, std::uint64_t limit_bytes) {
  Looked looked;
  Budget budget(limit_bytes);  // nothing else is held yet
  Scratch scratch(&budget);
  looked.looks = std::min(dataset.size(), options.on_error == OnError::raise ? kFirstLooks : kMostLooks);
  for (std::uint64_t look = 0; look < looked.looks + (looked.too_short ? 1 : 0); ++look) {
    const bool is_last_resort = look == looked.looks;
    const std::uint64_t i = is_last_resort       ? *looked.too_short
                            : look < kFirstLooks ? look
                                                 : kFirstLooks + (look - kFirstLooks) * (dataset.size() - kFirstLooks) /
                                                                     (looked.looks - kFirstLooks);
    scratch.reset();
    const storage::WholeRead sample = dataset::read_sample(dataset, i, scratch);
    FirstSample first;
    Result result;
    if (sample.state == storage::WholeRead::State::no_room) {
      result = failed(Code::no_memory, "it is larger than the memory that may be used");
    } else if (!sample.ok()) {
      const storage::Failure& failure = sample.failure;
      if (failure.ends_the_run) {
        throw Error(failure.kind, fmt::format("cannot read `{}`: {}", dataset.name(i), failure.text), failure.hint);
      }
      result = failed(Code::io, sample.failure.text.c_str());
    } else {
      result = codec::probe(sample.bytes, first.head, scratch);
    }
    looked.peak_bytes = budget.peak_bytes();
    if (result.ok()) {
      first.name = dataset.name(i);
      first.bytes = sample.bytes;
      const SampleKind kind = codec::kind_of(first.head.media).value();
      if (!is_last_resort && is_too_short(kind, first, options)) {
        if (!looked.too_short) looked.too_short = i;
        continue;
      }
      looked.kind = make_kind(kind, first, options);
      return looked;
    }
    looked.is_limit_too_low |= result.code == Code::no_memory;
    if (looked.first_problem.empty()) looked.first_problem = format_text("`{}`: {}", dataset.name(i), result.cause);
  }
  return looked;
}

// The kind of the first sample that can be read.
std::unique_ptr<const Kind> kind_of_files(const dataset::Dataset& dataset, const LoaderOptions& options,
                                          std::uint64_t& look_bytes) {
  Looked looked = look_at_files(dataset, options, options.memory_limit);
  if (!looked.kind && looked.is_limit_too_low && options.memory_limit < kLeastLook) {
    if (Looked again = look_at_files(dataset, options, kLeastLook); again.kind) looked = std::move(again);
  }
  look_bytes = looked.peak_bytes;
  if (looked.kind) return std::move(looked.kind);
  if (dataset.size() == 0) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot tell what `{}` holds: no sample of it is selected", dataset.facts().address),
                "select at least one sample");
  }
  throw Error(ErrorKind::corrupt,
              format_text("cannot tell what `{}` holds: none of {} samples can be read; {}", dataset.facts().address,
                          looked.looks, looked.first_problem),
              looked.is_limit_too_low ? format_text("raise {}: it does not hold one sample", option("memory_limit"))
                                      : Text("look at it with `stoker inspect`"))
      .about(looked.is_limit_too_low ? "memory_limit" : "");
}

// Options about arrays, where samples are none.
void refuse_array_options(const dataset::Dataset& dataset, const LoaderOptions& options, const KindFacts& facts) {
  const bool are_arrays = facts.kind == SampleKind::array && !facts.is_encoded;
  const bool are_files = are_arrays && !dataset.facts().array;
  const auto refuse = [&](const char* name, const char* why) {
    throw Error(ErrorKind::usage,
                format_text("{} does not go with `{}`: {}", option(name), dataset.facts().address, why), "leave it out")
        .about(name);
  };
  if (!options.arrays.empty() && !are_arrays) refuse("arrays", "its samples are not arrays");
  if (options.shapes != Shapes::equal && !are_files)
    refuse("shapes", are_arrays ? "all samples of one array have one shape" : "its samples are not arrays");
}

std::unique_ptr<const Kind> find_kind(const dataset::Dataset& dataset, const LoaderOptions& options,
                                      std::uint64_t& look_bytes) {
  if (const auto& volumes = dataset.facts().volumes) return std::make_unique<VolumeKind>(volumes, options);
  if (options.decode == Decode::none) return std::make_unique<EncodedKind>(options);
  const std::optional<codec::ArrayInfo>& array = dataset.facts().array;
  return array ? kind_of_rows(*array, options) : kind_of_files(dataset, options, look_bytes);
}

std::size_t find_column(const dataset::Facts& facts, const std::string& name) {
  const auto found = std::find(facts.columns.begin(), facts.columns.end(), name);
  if (std::count(found, facts.columns.end(), name) > 1)
    throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: two columns are named `{}`", facts.address, name),
                "give each column a name of its own");
  return found == facts.columns.end() ? kNoColumn : static_cast<std::size_t>(found - facts.columns.begin());
}

// A label that is no class would give a row without a target.
void refuse_labels_beyond(const dataset::Dataset& dataset, std::uint64_t classes) {
  if (!dataset.facts().classes.empty()) return;  // labels count the classes, and there are enough
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    const std::int64_t label = dataset.label(i).integer;
    if (label >= 0 && static_cast<std::uint64_t>(label) < classes) continue;
    throw Error(ErrorKind::usage,
                fmt::format("cannot mix batches: the label of `{}` is {}, and num_classes = {} means 0 to {}",
                            dataset.name(i), label, classes, classes - 1),
                "number the classes from 0, or give MixUp and CutMix a larger num_classes");
  }
}

}  // namespace

Text cause_of(const Result& result) {
  switch (result.remedy) {
    case Remedy::more_memory:
      return format_text("{}: raise {}", result.cause, option("memory_limit"));
    case Remedy::one_color:
      return format_text("{}: choose {}", result.cause, option("color", {"rgb", "gray"}));
    case Remedy::none:
      break;
  }
  return result.cause;
}

Recipe::Recipe(const dataset::Dataset& dataset, const LoaderOptions& options)
    : label_count_(std::max<std::size_t>(1, dataset.facts().label_columns.size())) {
  LoaderOptions of_samples = options;  // without what is done to batches
  const dataset::Facts& about = dataset.facts();
  mix_ = transform::take_mix(of_samples.transform, about.classes.size());
  if (mix_ && (label_count_ != 1 || about.label_kind != dataset::LabelKind::integer)) {
    throw Error(ErrorKind::usage, "cannot mix batches: MixUp and CutMix need one label per sample that is a class",
                format_text("choose one column of classes with {}", option("label")));
  }
  if (mix_) refuse_labels_beyond(dataset, mix_->classes);
  kind_ = find_kind(dataset, of_samples, look_bytes_);
  if (mix_) transform::check_mix(*mix_, outputs());
  refuse_array_options(dataset, options, facts());
  assert(facts().columns.size() <= kMaxValues && "operations read more columns than a key has room for");
  for (const transform::IndexColumn& column : facts().columns)
    columns_.push_back(find_column(dataset.facts(), column.name));
}

std::uint64_t Recipe::length_of(std::uint64_t bytes) const noexcept {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) / static_cast<double>(facts().first_bytes) *
                                    static_cast<double>(facts().first_length));
}

std::uint64_t Recipe::row_bytes(std::size_t output, std::uint64_t length) const noexcept {
  const transform::Output& o = facts().outputs[output];
  if (!o.varies) return std::uint64_t{o.views} * o.view_bytes;
  std::uint64_t bytes = length * size_of(o.dtype);
  for (std::size_t i = 0; i + 1 < o.shape.size(); ++i) bytes *= o.shape[i];
  return bytes;
}

void Recipe::read_values(const dataset::Dataset& dataset, std::uint64_t index, SampleKey& key) const noexcept {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i] == kNoColumn) continue;
    const double value = dataset.column(columns_[i], index);
    if (!std::isnan(value)) key.values[i] = value;
  }
}

}  // namespace stoker::loader
