// A pack that lies in a store. It is made in a local folder first, as any pack,
// and uploaded when it is whole; pack.json goes last, so that nobody can open
// half a pack. Blocks until it is there.
#pragma once

#include <string>

#include "stoker/prepare/pack.h"

namespace stoker::prepare {

// `options.destination` is an address of a store. Throws Error; what this run
// uploaded is then removed again.
PackReport make_pack_in_store(const PackOptions& options);

}  // namespace stoker::prepare
