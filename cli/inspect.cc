// stoker inspect: what a data set holds: counts, classes, media, sizes, pictures or sounds or arrays, bad files.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/codec/whole.h"
#include "stoker/meter/counters.h"
#include "stoker/os/cpu.h"
#include "stoker/os/memory.h"

#include "files.h"
#include "interrupt.h"
#include "scan.h"
#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

template <typename T>
struct Range {
  T least{}, most{};
  bool seen = false;
  void add(T value) {
    least = seen ? std::min(least, value) : value;
    most = seen ? std::max(most, value) : value;
    seen = true;
  }
  void add(const Range& other) {
    if (other.seen) add(other.least), add(other.most);
  }
};

struct BadFile {
  std::uint64_t index = 0;
  std::string name, cause;
};

// What the codecs said of the samples that were read.
struct Examined {
  std::uint64_t count = 0, pictures = 0, sounds = 0, arrays = 0;
  Range<std::uint32_t> width, height;
  std::map<int, std::uint64_t> channels, bits;  // of pictures
  std::map<std::uint32_t, std::uint64_t> rates, sound_channels;
  Range<double> seconds;
  double total_seconds = 0;
  std::map<std::string, std::uint64_t> array_shapes;              // "float32 [80, 3000]"
  std::map<std::vector<std::string>, std::uint64_t> npz_members;  // of files with several arrays: the first is read
  std::map<std::string, std::uint64_t> mislabelled;               // "png named .jpg"
  std::vector<BadFile> bad;

  void add(const codec::Head& head);

  void add(const Examined& other) {
    count += other.count, pictures += other.pictures, sounds += other.sounds, arrays += other.arrays;
    width.add(other.width), height.add(other.height), seconds.add(other.seconds);
    total_seconds += other.total_seconds;
    for (const auto& [key, n] : other.channels) channels[key] += n;
    for (const auto& [key, n] : other.bits) bits[key] += n;
    for (const auto& [key, n] : other.rates) rates[key] += n;
    for (const auto& [key, n] : other.sound_channels) sound_channels[key] += n;
    for (const auto& [key, n] : other.array_shapes) array_shapes[key] += n;
    for (const auto& [key, n] : other.npz_members) npz_members[key] += n;
    for (const auto& [key, n] : other.mislabelled) mislabelled[key] += n;
    bad.insert(bad.end(), other.bad.begin(), other.bad.end());
  }
};

struct ClassCount {
  std::string name;
  std::uint64_t count = 0;
};

struct Sizes {
  std::uint64_t least = 0, median = 0, p99 = 0, most = 0;
  double mean = 0;
};

struct Bucket {
  double from = 0, to = 0;
  std::uint64_t count = 0;
};

struct Inspection {
  std::string address, kind;
  std::uint64_t count = 0, total_bytes = 0;
  std::string labels;  // "classes", "whole numbers", "real numbers", "none"
  std::vector<std::string> columns;
  std::vector<ClassCount> classes;  // in order of name
  std::map<std::string, std::uint64_t> media;
  Sizes sizes;
  std::vector<Bucket> histogram;
  std::string array;  // of a bare .npy
  double scan_s = 0;
  Examined examined;
  bool examined_all = false;
  std::vector<dataset::Loss> losses;
  std::vector<std::string> notes;
};

std::string shape_text(const codec::ArrayInfo& info, std::size_t skip = 0) {
  std::string shape;
  for (std::size_t i = skip; i < info.rank; ++i) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", info.shape[i]);
  return fmt::format("{} [{}]", name(info.dtype), shape);
}

void Examined::add(const codec::Head& head) {
  switch (codec::kind_of(head.media).value()) {
    case SampleKind::image:
      ++pictures, ++channels[head.image.channels], ++bits[head.image.bits];
      width.add(head.image.width), height.add(head.image.height);
      break;
    case SampleKind::audio: {
      ++sounds, ++rates[head.audio.rate_hz], ++sound_channels[head.audio.channels];
      const double length = head.audio.rate_hz != 0 ? static_cast<double>(head.audio.frames) / head.audio.rate_hz : 0;
      seconds.add(length);
      total_seconds += length;
      break;
    }
    case SampleKind::array:
      ++arrays, ++array_shapes[shape_text(head.array)];
      break;
  }
}

std::string with_offset(const Result& result) {
  if (result.offset == kNoOffset) return fmt::format("{}: {}", name(result.code), result.cause);
  return fmt::format("{}: {} (byte {})", name(result.code), result.cause, result.offset);
}

// Decodes one sample whole. One examiner per thread.
class Examiner {
 public:
  Examiner(const dataset::Dataset& data, std::uint64_t most_bytes)
      : data_(data), most_bytes_(most_bytes), budget_(most_bytes), scratch_(&budget_) {}

  void examine(std::uint64_t index) {
    ++seen.count;
    std::string cause = read_sample(data_, index, bytes_);
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

  const dataset::Dataset& data_;
  const std::uint64_t most_bytes_;
  std::vector<std::byte> bytes_;
  std::unique_ptr<std::byte[]> decoded_;
  std::uint64_t room_ = 0;
  Budget budget_;
  Scratch scratch_;
};

Examined examine(const dataset::Dataset& data, const std::vector<std::uint64_t>& indices, const Face& face) {
  Examined all;
  std::mutex mutex;
  std::string failure;
  std::atomic<std::uint64_t> next{0};
  Bar bar(face, "reading", indices.size());
  const int threads = static_cast<int>(
      std::min<std::uint64_t>(static_cast<std::uint64_t>(os::effective_cores().whole()), indices.size()));
  const std::uint64_t most_bytes = os::memory_limit().bytes / 4 / static_cast<std::uint64_t>(std::max(1, threads));
  const auto work = [&] {
    Examiner examiner(data, most_bytes);
    try {
      for (std::uint64_t i = next++; i < indices.size() && !interrupted(); i = next++) {
        examiner.examine(indices[i]);
        bar.update(i, "samples");
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
  for (int i = 0; i < threads; ++i) crew.emplace_back(work);
  for (std::thread& thread : crew) thread.join();
  if (interrupted()) throw Error(ErrorKind::unavailable, "interrupted");
  if (!failure.empty())
    throw Error(ErrorKind::unavailable,
                fmt::format("cannot read the samples of `{}`: {}", data.facts().address, failure));
  return all;
}

std::string bytes(double value) {
  return format_bytes(static_cast<std::uint64_t>(std::llround(value)));
}

// How many equal buckets, 8 at most, have bounds that people can tell apart: files of like size would all be "2.1 KiB".
int distinct_buckets(double least, double most) {
  int count = 8;
  const auto are_distinct = [&] {
    const double width = (most - least) / count;
    for (int i = 0; i < count; ++i) {
      if (bytes(least + i * width) == bytes(least + (i + 1) * width)) return false;
    }
    return true;
  };
  while (count > 1 && !are_distinct()) --count;
  return count;
}

// Buckets a factor of 2 apart, or equal ones where the sizes lie close together; at most 14.
std::vector<Bucket> histogram_of(const std::vector<std::uint64_t>& sorted) {
  std::vector<Bucket> buckets;
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

Inspection look(const dataset::Dataset& data) {
  Inspection found;
  const dataset::Facts& facts = data.facts();
  found.address = facts.address;
  found.kind = facts.kind;
  found.count = data.size();
  found.total_bytes = facts.total_bytes;
  found.columns = facts.columns;
  found.notes = facts.notes;
  found.losses = facts.losses;
  for (const std::string& name : facts.classes) found.classes.push_back({name});
  found.labels = !facts.classes.empty()                            ? "classes"
                 : facts.label_kind == dataset::LabelKind::integer ? "whole numbers"
                 : facts.label_kind == dataset::LabelKind::real    ? "real numbers"
                                                                   : "none";
  if (facts.array) found.array = shape_text(*facts.array);
  std::vector<std::uint64_t> sizes(data.size());
  std::map<codec::Media, std::uint64_t> media;
  double total = 0;
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    if (i % 65536 == 0 && interrupted()) throw Error(ErrorKind::unavailable, "interrupted");
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

std::vector<std::uint64_t> choose(const dataset::Dataset& data, bool everything) {
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

template <typename T>
std::string tally(const std::map<T, std::uint64_t>& counts, std::string_view unit = "") {
  std::string out;
  for (const auto& [value, count] : counts) {
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", value, unit);
    if (counts.size() > 1) out += fmt::format(" ({})", format_count(count));
  }
  return out;
}

std::string to_text(const Inspection& found, const Terminal& terminal, std::uint64_t classes_shown) {
  constexpr std::size_t kShown = 20;  // losses, bad files
  std::string out;
  const auto row = [&](std::string_view label, std::string_view text) { out += labelled(terminal, label, 11, text); };
  out += fmt::format("{}: {} samples, {} ({})\n\n", terminal.paint(Paint::bold, printable(found.address)),
                     format_count(found.count), format_bytes(found.total_bytes), found.kind);
  if (!found.classes.empty()) {
    const auto by_count = [](const ClassCount& a, const ClassCount& b) { return a.count < b.count; };
    const auto [least, most] = std::minmax_element(found.classes.begin(), found.classes.end(), by_count);
    row("classes",
        fmt::format("{}; least {} ({}), most {} ({})", format_count(found.classes.size()), format_count(least->count),
                    printable(least->name), format_count(most->count), printable(most->name)));
    std::string list;
    const std::size_t shown = std::min<std::size_t>(classes_shown, found.classes.size());
    for (std::size_t i = 0; i < shown; ++i) {
      list +=
          fmt::format("{}{} {}", i ? ", " : "", printable(found.classes[i].name), format_count(found.classes[i].count));
    }
    if (shown < found.classes.size()) list += fmt::format("{}... (--classes N shows more)", shown ? ", " : "");
    row("", list);
  } else {
    row("labels", found.labels);
  }
  if (!found.columns.empty()) {
    std::string list;
    for (const std::string& column : found.columns) list += (list.empty() ? "" : ", ") + printable(column);
    row("columns", list);
  }
  row("media", fmt::format("{}{}", tally(found.media), found.array.empty() ? "" : ": " + found.array));
  row("scan", fmt::format("{} ({} samples/s)",
                          format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(found.scan_s * 1e9))),
                          format_rate(found.scan_s > 0 ? static_cast<double>(found.count) / found.scan_s : 0)));
  row("sizes", fmt::format("min {}  median {}  mean {}  p99 {}  max {}", format_bytes(found.sizes.least),
                           format_bytes(found.sizes.median), bytes(found.sizes.mean), format_bytes(found.sizes.p99),
                           format_bytes(found.sizes.most)));
  out += "\n";
  std::uint64_t tallest = 1;
  for (const Bucket& bucket : found.histogram) tallest = std::max(tallest, bucket.count);
  const int cells = std::clamp(terminal.width - 42, 10, 50);
  for (const Bucket& bucket : found.histogram) {
    const bool single = bytes(bucket.from) == bytes(bucket.to);
    const std::string range =
        single ? bytes(bucket.from) : fmt::format("{:>10} - {:<10}", bytes(bucket.from), bytes(bucket.to));
    const std::string gauge = terminal.gauge(static_cast<double>(bucket.count) / static_cast<double>(tallest), cells);
    out += fmt::format("  {:<23}  {} {}\n", range, terminal.paint(Paint::cyan, gauge), format_count(bucket.count));
  }
  out += "\n";
  const Examined& seen = found.examined;
  row("read", fmt::format("{} of {} samples, decoded whole{}", format_count(seen.count), format_count(found.count),
                          found.examined_all ? "" : " (--decode-all reads all)"));
  if (seen.pictures) {
    const auto side = [](const Range<std::uint32_t>& range) {
      return range.least == range.most ? std::to_string(range.least) : fmt::format("{} to {}", range.least, range.most);
    };
    row("pictures", fmt::format("width {}, height {}; channels {}; bits {}", side(seen.width), side(seen.height),
                                tally(seen.channels), tally(seen.bits)));
  }
  if (seen.sounds) {
    row("sound", fmt::format("{}; channels {}; {:.2f} to {:.2f} s, {:.2f} s on average", tally(seen.rates, " Hz"),
                             tally(seen.sound_channels), seen.seconds.least, seen.seconds.most,
                             seen.total_seconds / static_cast<double>(seen.sounds)));
  }
  if (seen.arrays) {
    if (seen.array_shapes.size() > 6) {
      row("arrays",
          fmt::format("{} different shapes, such as {}", seen.array_shapes.size(), seen.array_shapes.begin()->first));
    } else {
      row("arrays", tally(seen.array_shapes));
    }
  }
  for (const auto& [members, count] : seen.npz_members) {
    std::string others;
    for (std::size_t i = 1; i < members.size(); ++i)
      others += fmt::format("{}`{}`", others.empty() ? "" : ", ", printable(members[i]));
    row("note", fmt::format("{} .npz file{} with several arrays: only `{}` is read, not {}", format_count(count),
                            count == 1 ? "" : "s", printable(members[0]), others));
  }
  for (const auto& [what, count] : seen.mislabelled) {
    row("note", fmt::format("{} file{}: {}; content decides", format_count(count), count == 1 ? "" : "s", what));
  }
  for (const std::string& note : found.notes) row("note", printable(note));
  if (!found.losses.empty()) {
    row("lost", terminal.paint(Paint::red, format_count(found.losses.size())));
    for (std::size_t i = 0; i < std::min(kShown, found.losses.size()); ++i)
      out += fmt::format("    {}\n", printable(found.losses[i].message()));
    if (found.losses.size() > kShown)
      out += fmt::format("    and {} more: --json lists all\n", format_count(found.losses.size() - kShown));
  }
  if (seen.bad.empty()) {
    row("bad files", found.examined_all ? "none" : "none among those read");
  } else {
    row("bad files", terminal.paint(Paint::red, format_count(seen.bad.size())));
    for (std::size_t i = 0; i < std::min(kShown, seen.bad.size()); ++i) {
      out += fmt::format("    {}: {}\n", printable(seen.bad[i].name), printable(seen.bad[i].cause));
    }
    if (seen.bad.size() > kShown)
      out += fmt::format("    and {} more: --json lists all\n", format_count(seen.bad.size() - kShown));
  }
  return out;
}

template <typename T>
Json counts_to_json(const std::map<T, std::uint64_t>& counts) {
  Json out = Json::object();
  for (const auto& [key, count] : counts) out[fmt::format("{}", key)] = count;
  return out;
}

Json to_json(const Inspection& found) {
  Json json = {{"schema", "stoker.inspect/1"}, {"stoker_version", kVersion}, {"address", found.address},
               {"kind", found.kind},           {"samples", found.count},     {"total_bytes", found.total_bytes},
               {"labels", found.labels},       {"columns", found.columns},   {"scan_s", found.scan_s}};
  json["classes"] = Json::array();
  for (const ClassCount& entry : found.classes)
    json["classes"].push_back({{"name", entry.name}, {"count", entry.count}});
  json["media"] = counts_to_json(found.media);
  if (!found.array.empty()) json["array"] = found.array;
  json["sizes"] = {{"min", found.sizes.least},
                   {"median", found.sizes.median},
                   {"mean", found.sizes.mean},
                   {"p99", found.sizes.p99},
                   {"max", found.sizes.most}};
  json["size_histogram"] = Json::array();
  for (const Bucket& bucket : found.histogram) {
    json["size_histogram"].push_back({{"from", bucket.from}, {"to", bucket.to}, {"count", bucket.count}});
  }
  const Examined& seen = found.examined;
  Json examined = {{"samples", seen.count}, {"all", found.examined_all}};
  if (seen.pictures) {
    examined["pictures"] = {{"count", seen.pictures},
                            {"width", {seen.width.least, seen.width.most}},
                            {"height", {seen.height.least, seen.height.most}},
                            {"channels", counts_to_json(seen.channels)},
                            {"bits", counts_to_json(seen.bits)}};
  }
  if (seen.sounds) {
    examined["sounds"] = {{"count", seen.sounds},
                          {"rates_hz", counts_to_json(seen.rates)},
                          {"channels", counts_to_json(seen.sound_channels)},
                          {"seconds", {seen.seconds.least, seen.seconds.most}},
                          {"mean_seconds", seen.total_seconds / static_cast<double>(seen.sounds)}};
  }
  if (seen.arrays) examined["arrays"] = {{"count", seen.arrays}, {"shapes", counts_to_json(seen.array_shapes)}};
  examined["npz_members"] = Json::array();
  for (const auto& [members, count] : seen.npz_members) {
    const std::vector<std::string> others(members.begin() + 1, members.end());
    examined["npz_members"].push_back({{"read", members[0]}, {"not_read", others}, {"files", count}});
  }
  examined["mislabelled"] = counts_to_json(seen.mislabelled);
  examined["bad_files"] = Json::array();
  for (const BadFile& bad : seen.bad) {
    examined["bad_files"].push_back({{"index", bad.index}, {"name", bad.name}, {"cause", bad.cause}});
  }
  json["examined"] = std::move(examined);
  json["lost"] = Json::array();
  for (const dataset::Loss& loss : found.losses) {
    json["lost"].push_back(
        {{"name", loss.name}, {"cause", loss.cause}, {"offset", loss.offset}, {"bytes", loss.bytes}});
  }
  json["notes"] = found.notes;
  return json;
}

int run_inspect(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  const std::string address = arguments.operand();
  dataset::OpenOptions options;
  options.label = arguments.text("--label");
  options.skip_losses = true;
  if (arguments.has("--subset")) options.subset = arguments.count("--subset", 1);
  options.subset_seed = arguments.count("--subset-seed");
  const std::uint64_t classes_shown = arguments.count("--classes");

  const std::int64_t began = meter::now_ns();
  const dataset::DatasetPtr data = scan(face, address, options);
  const double scan_s = static_cast<double>(meter::now_ns() - began) * 1e-9;
  Inspection found = look(*data);
  found.address = address;
  found.scan_s = scan_s;
  const std::vector<std::uint64_t> indices = choose(*data, arguments.has("--decode-all"));
  found.examined = examine(*data, indices, face);
  found.examined_all = indices.size() == data->size();
  std::sort(found.examined.bad.begin(), found.examined.bad.end(),
            [](const BadFile& a, const BadFile& b) { return a.index < b.index; });
  if (face.json) {
    answer(to_json(found).dump(2) + "\n");
  } else {
    answer(to_text(found, face.out, classes_shown));
  }
  return found.examined.bad.empty() && found.losses.empty() ? 0 : 1;
}

}  // namespace

const Verb& inspect_verb() {
  static const Verb verb = {
      "inspect",
      "what a data set holds: counts, classes, media, sizes, bad files",
      "ADDRESS",
      "a folder, an index.csv, a .npy, a pack or tar shards",
      {{"stoker inspect data/train", "what is there, with a sample of 1,000 files decoded"},
       {"stoker inspect data/train --decode-all", "decode every file; exit code 1 if one is bad"},
       {"stoker inspect data/index.csv --label score --json", "labels from the column `score`, for a program to read"}},
      {{"what to look at",
        {{"--label", "COLUMN", "", "of an index.csv; without: `label` where there is one", true},
         {"--subset", "N", "", "only N samples, chosen by --subset-seed", true},
         {"--subset-seed", "N", "42", "of --subset", true},
         {"--classes", "N", "8", "how many classes to list", true},
         {"--decode-all", "", "", "decode every file, not only a sample of 1,000", true}}},
       common_flags()},
      [] { return std::string("Exit code 1 says that a bad file was found, or that a part could not be listed.\n"); },
      run_inspect};
  return verb;
}

}  // namespace stoker::cli
