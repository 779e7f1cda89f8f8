// `stoker measure --deep`: the same job in parts and whole, to check the ledger by difference.
#pragma once

#include "terminal.h"

namespace stoker::cli {

// Of an address: our own loader with an emulated step. Of `module:function`: what that function of a Python program
// gives. Returns the exit code.
int measure_deep(const Arguments& arguments, const Face& face);

}  // namespace stoker::cli
