// What `stoker tune` is asked to run and to vary, from its flags. One thread.
#pragma once

#include "stoker/tune/wishes.h"

#include "flags.h"

namespace stoker::cli {

tune::TargetWishes target_wishes(
    const Arguments& arguments);  // throws Error(usage) where there is neither operand nor command
tune::GridWishes grid_wishes(const Arguments& arguments);

}  // namespace stoker::cli
