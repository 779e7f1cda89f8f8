// RandAugment, TrivialAugmentWide, AutoAugment and AugMix: which operations of what magnitude chance picks, as
// torchvision's tables say; TimmRandAugment, as timm's. Pure; from any thread.
#pragma once

#include "stoker/base/random.h"
#include "stoker/transform/action.h"

namespace stoker::transform {

void draw_policy(const RandAugment& op, Random& random, const ImageSize& size, ActionSink& sink) noexcept;
void draw_policy(const TrivialAugmentWide& op, Random& random, const ImageSize& size, ActionSink& sink) noexcept;
void draw_policy(const TimmRandAugment& op, Random& random, const ImageSize& size, ActionSink& sink) noexcept;
void draw_policy(const AugMix& op, Random& random, const ImageSize& size, ActionSink& sink) noexcept;
void draw_policy(const AutoAugment& op, Random& random, const ImageSize& size, ActionSink& sink) noexcept;

// What a fill of one number or one per channel means.
std::array<float, 4> fill_of(const Numbers& fill) noexcept;

}  // namespace stoker::transform
