// stoker inspect: what a data set holds: counts, classes, media, sizes, images or audio or arrays, bad files.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/dataset/inspection.h"
#include "stoker/meter/counters.h"

#include "inspect_volume.h"
#include "interrupt.h"
#include "scan.h"
#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

std::string bytes(double value) {
  return format_bytes(static_cast<std::uint64_t>(std::llround(value)));
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

std::string to_text(const dataset::Inspection& found, double scan_s, const Terminal& terminal,
                    std::uint64_t classes_shown) {
  constexpr std::size_t kShown = 20;  // losses, bad files
  std::string out;
  const auto row = [&](std::string_view label, std::string_view text) { out += labelled(terminal, label, 11, text); };
  out += fmt::format("{}: {} samples, {} ({})\n\n", terminal.paint(Paint::bold, printable(found.address)),
                     format_count(found.count), format_bytes(found.total_bytes), found.kind);
  if (!found.classes.empty()) {
    const auto by_count = [](const dataset::ClassCount& a, const dataset::ClassCount& b) { return a.count < b.count; };
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
                          format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(scan_s * 1e9))),
                          format_rate(scan_s > 0 ? static_cast<double>(found.count) / scan_s : 0)));
  row("sizes", fmt::format("min {}  median {}  mean {}  p99 {}  max {}", format_bytes(found.sizes.least),
                           format_bytes(found.sizes.median), bytes(found.sizes.mean), format_bytes(found.sizes.p99),
                           format_bytes(found.sizes.most)));
  out += "\n";
  std::uint64_t tallest = 1;
  for (const dataset::SizeBucket& bucket : found.histogram) tallest = std::max(tallest, bucket.count);
  const int cells = std::clamp(terminal.width - 42, 10, 50);
  for (const dataset::SizeBucket& bucket : found.histogram) {
    const bool single = bytes(bucket.from) == bytes(bucket.to);
    const std::string range =
        single ? bytes(bucket.from) : fmt::format("{:>10} - {:<10}", bytes(bucket.from), bytes(bucket.to));
    const std::string gauge = terminal.gauge(static_cast<double>(bucket.count) / static_cast<double>(tallest), cells);
    out += fmt::format("  {:<23}  {} {}\n", range, terminal.paint(Paint::cyan, gauge), format_count(bucket.count));
  }
  out += "\n";
  const dataset::Examined& seen = found.examined;
  row("read", fmt::format("{} of {} samples, decoded whole{}", format_count(seen.count), format_count(found.count),
                          found.examined_all ? "" : " (--decode-all reads all)"));
  if (seen.images) {
    const auto side = [](const dataset::Extremes<std::uint32_t>& range) {
      return range.least == range.most ? std::to_string(range.least) : fmt::format("{} to {}", range.least, range.most);
    };
    row("images", fmt::format("width {}, height {}; channels {}; bits {}", side(seen.width), side(seen.height),
                              tally(seen.channels), tally(seen.bits)));
  }
  if (seen.audio) {
    row("audio", fmt::format("{}; channels {}; {:.2f} to {:.2f} s, {:.2f} s on average", tally(seen.rates, " Hz"),
                             tally(seen.audio_channels), seen.seconds.least, seen.seconds.most,
                             seen.total_seconds / static_cast<double>(seen.audio)));
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
    for (const std::string& member : members)
      others += fmt::format("{}`{}`", others.empty() ? "" : ", ", printable(member));
    row("note",
        fmt::format("{} .npz file{} with several arrays ({}): a loader needs --arrays, and only the first was read",
                    format_count(count), count == 1 ? "" : "s", others));
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

Json to_json(const dataset::Inspection& found, double scan_s) {
  Json json = {{"schema", "stoker.inspect/2"}, {"stoker_version", kVersion}, {"address", found.address},
               {"kind", found.kind},           {"samples", found.count},     {"total_bytes", found.total_bytes},
               {"labels", found.labels},       {"columns", found.columns},   {"scan_s", scan_s}};
  json["classes"] = Json::array();
  for (const dataset::ClassCount& entry : found.classes)
    json["classes"].push_back({{"name", entry.name}, {"count", entry.count}});
  json["media"] = counts_to_json(found.media);
  if (!found.array.empty()) json["array"] = found.array;
  json["sizes"] = {{"min", found.sizes.least},
                   {"median", found.sizes.median},
                   {"mean", found.sizes.mean},
                   {"p99", found.sizes.p99},
                   {"max", found.sizes.most}};
  json["size_histogram"] = Json::array();
  for (const dataset::SizeBucket& bucket : found.histogram) {
    json["size_histogram"].push_back({{"from", bucket.from}, {"to", bucket.to}, {"count", bucket.count}});
  }
  const dataset::Examined& seen = found.examined;
  Json examined = {{"samples", seen.count}, {"all", found.examined_all}};
  if (seen.images) {
    examined["images"] = {{"count", seen.images},
                          {"width", {seen.width.least, seen.width.most}},
                          {"height", {seen.height.least, seen.height.most}},
                          {"channels", counts_to_json(seen.channels)},
                          {"bits", counts_to_json(seen.bits)}};
  }
  if (seen.audio) {
    examined["audio"] = {{"count", seen.audio},
                         {"rates_hz", counts_to_json(seen.rates)},
                         {"channels", counts_to_json(seen.audio_channels)},
                         {"seconds", {seen.seconds.least, seen.seconds.most}},
                         {"mean_seconds", seen.total_seconds / static_cast<double>(seen.audio)}};
  }
  if (seen.arrays) examined["arrays"] = {{"count", seen.arrays}, {"shapes", counts_to_json(seen.array_shapes)}};
  examined["npz_members"] = Json::array();
  for (const auto& [members, count] : seen.npz_members) {
    const std::vector<std::string> others(members.begin() + 1, members.end());
    examined["npz_members"].push_back({{"read", members[0]}, {"not_read", others}, {"files", count}});
  }
  examined["mislabelled"] = counts_to_json(seen.mislabelled);
  examined["bad_files"] = Json::array();
  for (const dataset::BadFile& bad : seen.bad) {
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
  const std::string& address = arguments.operand();
  if (arguments.has("--volume") || is_volumes(address)) {
    for (const char* const flag : {"--label", "--subset", "--decode-all"}) {
      if (arguments.has(flag))
        throw Error(ErrorKind::usage, fmt::format("`{}` does not go with volumes: `{}` is one", flag, address),
                    "leave it out");
    }
    return inspect_volumes(face, address, arguments.text("--html"));
  }
  if (arguments.has("--html"))
    throw Error(ErrorKind::usage, fmt::format("`--html` is for volumes, and `{}` is none", address),
                "leave it out, or show a .npy, a folder of slices or prepared DICOM as volumes: `--volume`");
  dataset::OpenOptions options;
  options.label = arguments.text("--label");
  options.skip_losses = true;
  if (arguments.has("--subset")) options.subset = arguments.count("--subset", 1);
  options.subset_seed = arguments.count("--subset-seed");
  const std::uint64_t classes_shown = arguments.count("--classes");

  const std::int64_t began = meter::now_ns();
  const dataset::DatasetPtr data = scan(face, address, options);
  const double scan_s = static_cast<double>(meter::now_ns() - began) * 1e-9;
  std::optional<Bar> bar;
  dataset::Inspection found =
      dataset::inspect(*data, {.everything = arguments.has("--decode-all"),
                               .interrupted = interrupted,
                               .begun = [&](std::uint64_t total) { bar.emplace(face, "reading", total); },
                               .progress = [&](std::uint64_t done) { bar->update(done, "samples"); }});
  bar.reset();
  found.address = address;
  if (face.json) {
    answer(to_json(found, scan_s).dump(2) + "\n");
  } else {
    answer(to_text(found, scan_s, face.out, classes_shown));
  }
  return found.examined.bad.empty() && found.losses.empty() ? 0 : 1;
}

}  // namespace

const Verb& inspect_verb() {
  static const Verb verb = {
      "inspect",
      "what a data set holds: counts, classes, media, sizes, bad files",
      "ADDRESS",
      "a folder, an index.csv, a .npy, a pack, tar shards, or a volume",
      {{"stoker inspect data/train", "count files, classes and sizes; decode a sample of 1,000 files"},
       {"stoker inspect data/train --decode-all", "decode every file; exit code 1 if one is bad"},
       {"stoker inspect data/index.csv --label score --json", "take labels from the column `score`, and print JSON"},
       {"stoker inspect scan.nii.gz", "show a volume: shape, spacing, chunks, compression and its middle slice"}},
      {{"what to look at",
        {{"--label", "COLUMN", "", "of an index.csv; without: `label` where there is one", true},
         {"--subset", "N", "", "only N samples, chosen by --subset-seed", true},
         {"--subset-seed", "N", "42", "of --subset", true},
         {"--classes", "N", "8", "how many classes to list", true},
         {"--decode-all", "", "", "decode every file, not only a sample of 1,000", true},
         {"--volume", "", "", "show a .npy, a folder of slices or prepared DICOM as volumes: shape, chunks, a slice"},
         {"--html", "FILE", "", "of volumes: write a page with their middle slices too"}}},
       common_flags()},
      [] { return std::string("Exit code 1 says that a bad file was found, or that a part could not be listed.\n"); },
      run_inspect};
  return verb;
}

}  // namespace stoker::cli
