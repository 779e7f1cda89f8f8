// Up to three combinations of options, A to C, from careful to bold. Only changes that act on different stages are
// combined, and their gain is that of the whole pipeline with all of them: gains that share a limit never multiply.
// Pure arithmetic; from any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/plan/options.h"

namespace stoker::plan {

struct Bundle {
  char label = 'A';
  std::string title = {};                 // "careful", "balanced", "bold"
  std::vector<std::size_t> members = {};  // of the options, in the order in which to make the changes
  std::vector<std::string> names = {}, commands = {};
  RateSpread gain = {};
  std::optional<double> days = {}, epoch_hours = {};         // of the job, and of one of its epochs
  std::optional<double> host_bytes = {}, device_bytes = {};  // peak
  Risk risk = Risk::unknown;
  std::string reason = {};
  std::string training = {};  // how the training changes; empty: it does not
  std::string limit = {};     // the stage that limits it then
};

// What both changes make of the present stages; none where they act on the same one.
std::optional<Stages> combined(const Stages& now, const Stages& one, const Stages& other);

// A: low risk and the least memory; B: the fastest of at most medium risk; C: the fastest that fits, also where it
// changes the training. One that is no faster than the one before is left out, and the others keep their letters.
// Empty: no ledger, or nothing is worth it.
std::vector<Bundle> bundles(const Situation& situation, const std::vector<Option>& options);

}  // namespace stoker::plan
