// What `stoker tune` is asked to run, from its flags. One thread.
#pragma once

#include "stoker/tune/target.h"

#include "flags.h"

namespace stoker::cli {

tune::Target make_target(const Arguments& arguments);  // throws Error(usage)
tune::Grid make_grid(const Arguments& arguments,
                     tune::Target& target);  // throws Error; the keys of --set go to the target

}  // namespace stoker::cli
