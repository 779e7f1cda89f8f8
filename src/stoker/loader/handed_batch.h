// The batch that the consumer gets: a handle on a slab whose rows are all there. See batch.h for what it promises.
#pragma once

#include <cstdint>
#include <memory>

#include "stoker/loader/batch.h"
#include "stoker/loader/pending.h"
#include "stoker/loader/slabs.h"

namespace stoker::loader {

// `slab` goes back to `pool` when the last copy is dropped; null for a batch without rows. Copies what it needs of
// `pending` and `recipe`. Tensors are laid out for `batch_size` rows.
BatchPtr hand_out(std::shared_ptr<SlabPool> pool, Slab* slab, dataset::DatasetPtr dataset, const Recipe& recipe,
                  const Pending& pending, std::uint64_t batch_size);

}  // namespace stoker::loader
