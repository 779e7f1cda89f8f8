// A pack that several machines make together. Each one makes parts of it; all name the same destination on a disk that
// they share. A part owns whole shards, whose borders follow from the listing. Joining moves the shards into one pack
// and writes its index. The pack equals, byte for byte, the one that a single machine makes with the same options.
// Parts do not wait for each other. Blocks; one thread calls, threads of its own work.
//
//   train.pack                       appears when the parts are joined
//   .train.pack.parts/2-of-4/        shards and journal of a part; a run that was killed goes on there
//   .train.pack.parts/2-of-4/part.json   the part is finished
#pragma once

#include "stoker/prepare/pack.h"

namespace stoker::prepare {

// `options.part` says which. A part that is there already is left as it is. Throws Error.
PackReport make_pack_part(const PackOptions& options);

// Joins the parts of `options.destination` and removes them. Throws Error if one is missing, unfinished, or was made
// from other files or with other options than these.
PackReport join_pack(const PackOptions& options);

}  // namespace stoker::prepare
