// Does actions to the image of a canvas, in order. Operations on single bytes that follow one another become one table.
// One thread each.
#pragma once

#include <cstdint>

#include "stoker/base/result.h"
#include "stoker/transform/action.h"
#include "stoker/transform/chain_mix.h"
#include "stoker/transform/colour.h"
#include "stoker/transform/planes.h"

namespace stoker::transform {

class ActionRunner final : public ActionSink {
 public:
  ActionRunner(Canvas& canvas, Scratch& scratch) noexcept : canvas_(canvas), scratch_(scratch) {}

  void act(const Action& action) noexcept override;
  // Applies what is pending. The first thing that went wrong, if any.
  Result finish() noexcept;

 private:
  void flush() noexcept;
  void add_table(const ByteTable& table) noexcept;
  void change(const Action& action) noexcept;

  Canvas& canvas_;
  Scratch& scratch_;
  ByteTables pending_;
  ChainMix mix_;
  Result result_;
};

// At most what an action takes from the scratch beside the canvas. What a mix_start takes stays taken until its last
// mix_chain.
std::uint64_t action_bytes(const Action& action, const ImageSize& size) noexcept;

}  // namespace stoker::transform
