// `stoker pack --kind volume`: volumes as bricks that fit a patch. Single-threaded.
#pragma once

#include "flags.h"
#include "terminal.h"

namespace stoker::cli {

Section volume_pack_flags();
int run_pack_volumes(const Arguments& arguments, const Face& face);  // throws Error

}  // namespace stoker::cli
