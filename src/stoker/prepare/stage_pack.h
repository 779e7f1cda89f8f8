// A copy into a pack: packs have ways of their own to be written, resumed and brought up to date. Blocks.
#pragma once

#include "stoker/prepare/stage.h"

namespace stoker::prepare {

// The destination is a pack. Throws Error, also for options that only a copy into a folder has.
StageReport stage_pack(const StageOptions& options);

}  // namespace stoker::prepare
