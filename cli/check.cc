// stoker check: is every sample of a pack, or of any other data set, what it should be?
#include "stoker/prepare/check.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "stoker/base/json.h"
#include "stoker/base/units.h"

#include "json_head.h"
#include "pack_bar.h"
#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

using prepare::CheckReport;
using prepare::Damage;

constexpr std::size_t kNamedDamage = 100;  // damaged samples that the text names

std::string to_text(const CheckReport& report, const Terminal& terminal) {
  std::string out;
  const std::size_t bad = report.damaged.size();
  const std::string what =
      fmt::format("{} {}{}, {} ({})", format_count(report.count), report.unit, report.count == 1 ? "" : "s",
                  format_bytes(report.bytes), report.kind.empty() ? "pack" : report.kind);
  if (bad == 0 && report.broken.empty()) {
    out += fmt::format("{}: sound: {}\n", printable(report.address), what);
  } else if (report.count == 0) {
    out += fmt::format("{}: {}\n", printable(report.address), report.is_sound() ? "repaired" : "damaged");
  } else if (bad == 0) {
    out += fmt::format("{}: {}: {}\n", printable(report.address), report.is_sound() ? "repaired" : "damaged", what);
  } else {
    out += fmt::format("{}: {}{} damaged of {}\n", printable(report.address), report.is_sound() ? "repaired: " : "",
                       format_count(bad), what);
  }
  for (const std::string& broken : report.broken)
    out += fmt::format("  {}{}\n", printable(broken), report.broken_repaired ? " (repaired)" : "");
  for (std::size_t i = 0; i < std::min(bad, kNamedDamage); ++i) {
    const Damage& damage = report.damaged[i];
    out += fmt::format("  {}: {}{}\n", printable(damage.name), printable(damage.cause),
                       damage.repaired                ? " (repaired)"
                       : !damage.not_repaired.empty() ? fmt::format(" (not repaired: {})", damage.not_repaired)
                                                      : "");
  }
  if (bad > kNamedDamage) out += fmt::format("  and {} more; --json names all\n", format_count(bad - kNamedDamage));
  const auto row = [&](std::string_view label, std::string_view text) { out += labelled(terminal, label, 10, text); };
  row("time", fmt::format("{}, {} MB/s{}",
                          format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(report.seconds * 1e9))),
                          format_rate(static_cast<double>(report.bytes) / 1e6 / std::max(1e-9, report.seconds)),
                          report.decoded ? ", all decoded" : ""));
  for (const std::string& note : in_flags(report.notes, check_verb())) row("note", printable(note));
  return out;
}

Json to_json(const CheckReport& report) {
  Json json = json_head("check");
  json.update({{"address", report.address},
               {"kind", report.kind},
               {"sound", report.is_sound()},
               {"samples", report.count},
               {"bytes", report.bytes},
               {"decoded", report.decoded},
               {"seconds", report.seconds},
               {"broken", report.broken},
               {"broken_repaired", report.broken_repaired}});
  json["damaged"] = Json::array();
  for (const Damage& damage : report.damaged) {
    json["damaged"].push_back({{"index", damage.index},
                               {"name", damage.name},
                               {"cause", damage.cause},
                               {"repaired", damage.repaired},
                               {"not_repaired", damage.not_repaired}});
  }
  json["notes"] = in_flags(report.notes, check_verb());
  return json;
}

int run_check(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  prepare::CheckOptions options;
  options.address = arguments.operand();
  options.label = arguments.text("--label");
  options.decode = arguments.has("--decode-all");
  options.repair = arguments.has("--repair");
  options.source = arguments.text("--source");
  PackBar bar(face);
  options.progress = std::ref(bar);
  const CheckReport report = prepare::check(options);
  bar.clear();
  if (face.json) {
    answer(to_json(report).dump(2) + "\n");
  } else {
    answer(to_text(report, face.out));
  }
  return report.is_sound() ? 0 : 1;
}

}  // namespace

const Verb& check_verb() {
  static const Verb verb = {
      "check",
      "is every sample what it should be? names those that are not, and exits 1",
      "ADDRESS",
      "a pack; or a folder, an index.csv, a .npy or .tar shards",
      {{"stoker check train.pack", "compare the checksums, the index and the heads of the shards"},
       {"stoker check data/train --decode-all", "decode every file of a folder"},
       {"stoker check train.pack --repair", "rebuild the damaged samples from the source of the pack"}},
      {{"what is checked",
        {{"--decode-all", "", "", "decode every sample wholly, not its head alone", true},
         {"--label", "COLUMN", "", "of an index.csv; without: `label` where there is one"}}},
       {"repair",
        {{"--repair", "", "", "rebuild the damaged samples of a pack from its source; the others stay", true},
         {"--source", "ADDRESS", "", "where the source is now, if it was moved"}}},
       common_flags()},
      nullptr,
      run_check};
  return verb;
}

}  // namespace stoker::cli
