#include "stoker/dataset/inspection.h"

#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/dataset/read_sample.h"
#include "stoker/os/cpu.h"
#include "stoker/os/memory.h"

namespace stoker::dataset {
namespace {

bool is_interrupted(const InspectOptions& options) {
  return options.interrupted && options.interrupted();
}

std::string shape_text(const codec::ArrayInfo& info, std::size_t skip = 0) {
  std::string shape;
  for (std::size_t i = skip; i < info.rank; ++i) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", info.shape[i]);
  return fmt::format("{} [{}]", name(info.dtype), shape);
}

std::string with_offset(const Result& result) {
  if (result.offset == kNoOffset) return fmt::format("{}: {}", name(result.code), result.cause);
  return fmt::format("{}: {} (byte {})", name(result.code), result.cause, result.offset);
}

// Decodes one sample whole. One examiner per thread.
class Examiner {
 public:
  Examiner(const Dataset& data, std::uint64_t most_bytes)
      : data_(data), most_bytes_(most_bytes), budget_(most_bytes), scratch_(&budget_) {}

  void examine(std::uint64_t index) {
    ++seen.count;
    std::string cause = read_sample(data_, index, bytes_).failure.text;
    if (cause.empty()) cause = decode(index);
    if (!cause.empty()) seen.bad.push_back({index, data_.name(index), cause});
    scratch_.reset();
  }

  Examined seen;

 private:
  std::string decode(std::uint64_t index) {
    if (data_.facts().array) return {};  // a row of an array: it was read, and that is all there is to it
    codec::Head head;
    const Result probed = codec::probe(bytes_, head, scratch_);
    const codec::Media media = head.media, named = data_.media(index);
    if (media != named && media.is_known() && named.is_known()) {
      ++seen.mislabelled[fmt::format("{} inside, named as {}", codec::name(media), codec::name(named))];
    }
    if (!probed.ok()) return with_offset(probed);
    const std::uint64_t wanted = codec::decoded_bytes(head);
    std::byte* const into = room_for(wanted);
    if (!into) return too_large(wanted);
    const Result decoded = codec::decode(bytes_, head, /*strict=*/false, into, scratch_);
    if (!decoded.ok()) return with_offset(decoded);
    seen.add(head);
    std::array<std::string_view, kMembersNamed> names;
    if (const std::size_t count = codec::list_arrays(media, bytes_, names); count > 1)
      ++seen.npz_members[{names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(count, names.size()))}];
    return {};
  }

  // Null where one sample would take more than its share of the machine: what a header claims is not to be trusted.
  std::byte* room_for(std::uint64_t bytes) {
    if (bytes > most_bytes_) return nullptr;
    if (bytes > room_ || !decoded_) {
      decoded_.reset();
      decoded_.reset(new (std::nothrow) std::byte[bytes + 1]);  // not touched before the decoder does
      room_ = decoded_ ? bytes : 0;
    }
    return decoded_.get();
  }

  std::string too_large(std::uint64_t bytes) const {
    return fmt::format("needs {} decoded, more than the {} that inspect gives one sample", format_bytes(bytes),
                       format_bytes(most_bytes_));
  }

  static constexpr std::size_t kMembersNamed = 16;

  const Dataset& data_;
  const std::uint64_t most_bytes_;
  std::vector<std::byte> bytes_;
  std::unique_ptr<std::byte[]> decoded_;
  std::uint64_t room_ = 0;
  Budget budget_;
  Scratch scratch_;
};

Examined examine(const Dataset& data, const std::vector<std::uint64_t>& indices, const InspectOptions& options) {
  Examined all;
  std::mutex mutex;
  std::string failure;
  std::atomic<std::uint64_t> next{0};
  if (options.begun) options.begun(indices.size());
  const int threads = static_cast<int>(
      std::min<std::uint64_t>(static_cast<std::uint64_t>(os::effective_cores().whole()), indices.size()));
  const std::uint64_t most_bytes = os::memory_limit().bytes / 4 / static_cast<std::uint64_t>(std::max(1, threads));
  const auto work = [&] {
    Examiner examiner(data, most_bytes);
    try {
      for (std::uint64_t i = next++; i < indices.size() && !is_interrupted(options); i = next++) {
        examiner.examine(indices[i]);
        if (options.progress) options.progress(i);
      }
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex);
      failure = error.what();
      next = indices.size();
    }
    const std::lock_guard lock(mutex);
    all.add(examiner.seen);
  };
  std::vector<std::thread> crew;
  crew.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) crew.emplace_back(work);
  for (std::thread& thread : crew) thread.join();
  if (is_interrupted(options)) throw Error(ErrorKind::unavailable, "interrupted");
  if (!failure.empty())
    throw Error(ErrorKind::unavailable,
                fmt::format("cannot read the samples of `{}`: {}", data.facts().address, failure));
  return all;
}

std::string shown(double value) {
  return format_bytes(static_cast<std::uint64_t>(std::llround(value)));
}

// How many equal buckets, 8 at most, have bounds that people can tell apart: files of like size would all be "2.1 KiB".
int distinct_buckets(double least, double most) {
  int count = 8;
  const auto are_distinct = [&] {
    const double width = (most - least) / count;
    for (int i = 0; i < count; ++i) {
      if (shown(least + i * width) == shown(least + (i + 1) * width)) return false;
    }
    return true;
  };
  while (count > 1 && !are_distinct()) --count;
  return count;
}

// Buckets a factor of 2 apart, or equal ones where the sizes lie close together; at most 14.
std::vector<SizeBucket> histogram_of(const std::vector<std::uint64_t>& sorted) {
  std::vector<SizeBucket> buckets;
  const double least = static_cast<double>(sorted.front()), most = static_cast<double>(sorted.back());
  if (sorted.front() == sorted.back()) return {{least, most, sorted.size()}};
  if (most / std::max(1.0, least) < 8) {
    const int count = distinct_buckets(least, most);
    const double width = (most - least) / count;
    for (int i = 0; i < count; ++i) buckets.push_back({least + i * width, least + (i + 1) * width, 0});
  } else {
    const double factor = std::max(2.0, std::exp2(std::ceil(std::log2(most / std::max(1.0, least)) / 13)));
    double from = std::exp2(std::floor(std::log2(std::max(1.0, least))));
    if (least == 0) buckets.push_back({0, from, 0});
    for (; from <= most; from *= factor) buckets.push_back({from, from * factor, 0});
  }
  std::size_t at = 0;
  for (const std::uint64_t size : sorted) {
    while (at + 1 < buckets.size() && static_cast<double>(size) >= buckets[at].to) ++at;
    ++buckets[at].count;
  }
  return buckets;
}

Inspection look(const Dataset& data, const InspectOptions& options) {
  Inspection found;
  const Facts& facts = data.facts();
  found.address = facts.address;
  found.kind = facts.kind;
  found.count = data.size();
  found.total_bytes = facts.total_bytes;
  found.columns = facts.columns;
  found.notes = facts.notes;
  found.losses = facts.losses;
  for (const std::string& name : facts.classes) found.classes.push_back({name});
  found.labels = !facts.classes.empty()                   ? "classes"
                 : facts.label_kind == LabelKind::integer ? "whole numbers"
                 : facts.label_kind == LabelKind::real    ? "real numbers"
                                                          : "none";
  if (facts.array) found.array = shape_text(*facts.array);
  std::vector<std::uint64_t> sizes(data.size());
  std::map<codec::Media, std::uint64_t> media;
  double total = 0;
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    if (i % 65536 == 0 && is_interrupted(options)) throw Error(ErrorKind::unavailable, "interrupted");
    sizes[i] = data.location(i).bytes;
    total += static_cast<double>(sizes[i]);
    ++media[data.media(i)];
    const auto label = static_cast<std::uint64_t>(data.label(i).integer);
    if (label < found.classes.size()) ++found.classes[label].count;
  }
  for (const auto& [kind, count] : media) found.media[std::string(codec::name(kind))] = count;
  if (!sizes.empty()) {
    std::sort(sizes.begin(), sizes.end());
    const std::size_t n = sizes.size();
    found.sizes = {sizes.front(), sizes[n / 2], sizes[std::min(n - 1, n * 99 / 100)], sizes.back(),
                   total / static_cast<double>(n)};
    found.histogram = histogram_of(sizes);
  }
  return found;
}

std::vector<std::uint64_t> choose(const Dataset& data, bool everything) {
  constexpr std::uint64_t kSample = 1000;
  const std::uint64_t n = data.size(), count = everything ? n : std::min(n, kSample);
  std::vector<std::uint64_t> chosen;
  for (std::uint64_t i = 0; i < count; ++i) {
    chosen.push_back(static_cast<std::uint64_t>((static_cast<unsigned __int128>(i) * n) / count));
  }
  if (everything) return chosen;
  // An empty file needs no reading to be known as bad.
  std::set<std::uint64_t> all(chosen.begin(), chosen.end());
  for (std::uint64_t i = 0; i < n; ++i) {
    if (data.location(i).bytes == 0) all.insert(i);
  }
  return {all.begin(), all.end()};
}

}  // namespace

void Examined::add(const codec::Head& head) {
  switch (codec::kind_of(head.media).value()) {
    case SampleKind::image:
      ++images, ++channels[head.image.channels], ++bits[head.image.bits];
      width.add(head.image.width), height.add(head.image.height);
      break;
    case SampleKind::audio: {
      ++audio, ++rates[head.audio.rate_hz], ++audio_channels[head.audio.channels];
      const double length = head.audio.rate_hz != 0 ? static_cast<double>(head.audio.frames) / head.audio.rate_hz : 0;
      seconds.add(length);
      total_seconds += length;
      break;
    }
    case SampleKind::array:
      ++arrays, ++array_shapes[shape_text(head.array)];
      break;
    case SampleKind::volume:
      break;  // no file is one
  }
}

void Examined::add(const Examined& other) {
  count += other.count, images += other.images, audio += other.audio, arrays += other.arrays;
  width.add(other.width), height.add(other.height), seconds.add(other.seconds);
  total_seconds += other.total_seconds;
  for (const auto& [key, n] : other.channels) channels[key] += n;
  for (const auto& [key, n] : other.bits) bits[key] += n;
  for (const auto& [key, n] : other.rates) rates[key] += n;
  for (const auto& [key, n] : other.audio_channels) audio_channels[key] += n;
  for (const auto& [key, n] : other.array_shapes) array_shapes[key] += n;
  for (const auto& [key, n] : other.npz_members) npz_members[key] += n;
  for (const auto& [key, n] : other.mislabelled) mislabelled[key] += n;
  bad.insert(bad.end(), other.bad.begin(), other.bad.end());
}

Inspection inspect(const Dataset& data, const InspectOptions& options) {
  Inspection found = look(data, options);
  const std::vector<std::uint64_t> indices = choose(data, options.everything);
  found.examined = examine(data, indices, options);
  found.examined_all = indices.size() == data.size();
  std::sort(found.examined.bad.begin(), found.examined.bad.end(),
            [](const BadFile& a, const BadFile& b) { return a.index < b.index; });
  return found;
}

}  // namespace stoker::dataset
