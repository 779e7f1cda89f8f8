// A row that could not be made: what is said of it, before policy decides what becomes of it. Pure functions of the job
// and of what went wrong; safe from any thread.
#pragma once

#include <cstdint>

#include "stoker/base/error.h"
#include "stoker/base/text.h"
#include "stoker/loader/job.h"
#include "stoker/loader/pending.h"

namespace stoker::loader {

struct BadRow {
  SampleError error;  // its stage, cause and offset; the caller fills in which sample it is
  ErrorKind kind = ErrorKind::corrupt;
  bool ends_the_run = false;  // whatever the policy
  bool is_skippable = true;   // another on_error is a remedy
  Text hint = {};             // empty: that is the only remedy
};

// What on_error=raise throws; `message` names the sample.
Error error_of_row(const BadRow& bad, const Text& message);
// The bytes of sample `index` are not there.
BadRow describe_unread(const Job& job, std::uint64_t index, const ReadFault& fault);
// The bytes are there, but cannot become a row. `wanted_bytes`: the working memory that it asked for in vain, or 0.
BadRow describe_unmade(const Job& job, const RowResult& verdict, std::uint64_t wanted_bytes);

}  // namespace stoker::loader
