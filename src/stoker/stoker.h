// What Stoker promises to C++ users. Everything else may change between minor versions.
#pragma once

#include "stoker/base/error.h"         // stoker::Error
#include "stoker/base/units.h"         // stoker::parse_bytes, format_*
#include "stoker/base/version.h"       // stoker::kVersion
#include "stoker/dataset/dataset.h"    // stoker::dataset::open
#include "stoker/feed/advice.h"        // stoker::feed::verdict_of, next_step
#include "stoker/feed/feed.h"          // stoker::feed::feed: an emulated accelerator
#include "stoker/loader/loader.h"      // stoker::loader::Loader, LoaderOptions, Batch
#include "stoker/plan/answer.h"        // stoker::plan::make_plan
#include "stoker/plan/input.h"         // stoker::plan::run_of
#include "stoker/plan/wishes.h"        // stoker::plan::add_wishes
#include "stoker/report/files.h"       // stoker::report::read_report, write_report; to_html, to_markdown
#include "stoker/transform/ops.h"      // stoker::transform::parse_ops
#include "stoker/tune/recorded_run.h"  // stoker::tune::read_all: a run to plan from
#include "stoker/tune/run_config.h"    // stoker::tune::RunConfig
#include "stoker/tune/run_data.h"      // stoker::tune::open_run_data
#include "stoker/tune/run_setup.h"     // stoker::tune::make_search, trial_options
#include "stoker/tune/tuner.h"         // stoker::tune::run_search

namespace stoker {
using loader::Batch;
using loader::BatchPtr;
using loader::Loader;
using loader::LoaderOptions;
}  // namespace stoker
