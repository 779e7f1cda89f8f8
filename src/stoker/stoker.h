// What Stoker promises to C++ users. Everything else may change between minor versions.
#pragma once

#include "stoker/base/error.h"       // stoker::Error
#include "stoker/base/units.h"       // stoker::parse_bytes, format_*
#include "stoker/base/version.h"     // stoker::kVersion
#include "stoker/dataset/dataset.h"  // stoker::dataset::open
#include "stoker/loader/loader.h"    // stoker::loader::Loader, LoaderOptions, Batch
#include "stoker/transform/ops.h"    // stoker::transform::parse_ops

namespace stoker {
using loader::Batch;
using loader::BatchPtr;
using loader::Loader;
using loader::LoaderOptions;
}  // namespace stoker
