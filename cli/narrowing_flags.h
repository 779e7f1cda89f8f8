// The flags that choose classes and samples, the same in every verb that has them. Readers throw Error(usage).
#pragma once

#include <vector>

#include "stoker/dataset/narrowing.h"

#include "flags.h"

namespace stoker::cli {

std::vector<Flag> narrowing_flags();  // --class-subset, --class-subset-seed, --class-list, --subset, --subset-seed
dataset::Narrowing narrowing_of(const Arguments& arguments);  // reads the file of --class-list

}  // namespace stoker::cli
