// `stoker pack --ray ADDRESS`: the parts of a pack as tasks of a Ray cluster, by the Python package. Single-threaded.
#pragma once

#include "flags.h"
#include "terminal.h"

namespace stoker::cli {

Section ray_flags();
int run_pack_on_ray(const Arguments& arguments, const Face& face);  // the exit code of the whole; throws Error

}  // namespace stoker::cli
