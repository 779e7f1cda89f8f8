// A job taken apart: its step alone, its loader alone (warm and cold), and both together. What a step waits is then the
// difference, and the ledger of the last run must say the same. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/base/spell_text.h"
#include "stoker/meter/ledger.h"

namespace stoker::measure {

// Seconds are means of a step, or of a batch where there is no step.
struct DeepRuns {
  std::uint64_t steps = 0;       // of each run
  double compute_s = 0;          // one batch over and over, no loader; before the others
  double compute_again_s = 0;    // and after them
  double warm_s = 0;             // the loader alone, its files in the page cache, or its objects read as `store` says
  std::string store;             // where a store's objects came from: "the store", "the disk cache"; empty: files
  std::optional<double> cold_s;  // the loader alone, its files dropped from the page cache (cold=data)
  std::string cold_why;          // why it was not run
  std::optional<double> cold_left;  // share of the sampled pages that stayed there nevertheless
  double real_s = 0;                // both
  double ledger_compute_s = 0;      // what the ledger says of that run: h2d included
  double ledger_fetch_s = 0, ledger_prep_s = 0, ledger_handoff_s = 0;
  std::vector<Text> notes;

  double ledger_wait_s() const noexcept { return ledger_fetch_s + ledger_prep_s + ledger_handoff_s; }
};

enum class Doubtful : std::uint8_t { neither, ledger, difference };

struct DeepAnswer {
  meter::Verdict verdict;                 // of the ledger
  double wait_s = 0;                      // by difference; not below 0
  double apart = 0;                       // the two waits, as a share of the step
  Doubtful doubtful = Doubtful::neither;  // within 10 % they agree
  std::string why_doubtful;               // a sentence
  double hidden = 0;                      // of the loader's time, the share that ran beside the step
  std::vector<Text> notes;
};

std::string_view name(Doubtful doubtful) noexcept;  // "neither", "ledger", "difference"
DeepAnswer compare(const DeepRuns& runs);

// What the runner of a Python entry point wrote. Throws Error(corrupt), naming `name`.
DeepRuns parse_deep(std::string_view json, const std::string& name);
// `spell` words the options that notes name.
Json to_json(const DeepRuns& runs, const DeepAnswer& answer, const SpellText& spell = &Text::in_python);

}  // namespace stoker::measure
