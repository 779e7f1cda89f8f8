#include "stoker/loader/bad_row.h"

#include <string_view>

#include <fmt/format.h>

#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/dataset/read_sample.h"
#include "stoker/storage/failure.h"

namespace stoker::loader {
namespace {

ErrorKind kind_of(const RowResult& verdict) {
  switch (verdict.result.code) {
    case Code::unsupported:
    case Code::mismatch:
      return ErrorKind::unsupported;
    case Code::too_large:
    case Code::no_memory:
      return ErrorKind::unavailable;
    default:
      return ErrorKind::corrupt;
  }
}

OptionName other_policies() {
  return option("on_error", {"skip", "replace", "zero"});
}

// Says what a sample needs that it cannot have, and the memory_limit with which it could. `batch_bytes`: its batch will
// need so much besides.
void explain_need(const Job& job, BadRow& bad, std::string_view what, std::uint64_t bytes,
                  std::uint64_t Allowance::*share, std::uint64_t batch_bytes = 0) {
  const std::uint64_t enough = enough_limit(job.memory_facts.demand,
                                            [&](const Allowance& allowance) {
                                              return allowance.*share >= bytes && allowance.batch_bytes >= batch_bytes;
                                            }) *
                               (job.padding_bytes != 0 ? 2 : 1);
  bad.error.cause = format_text("{} needs {}, more than the {} that {} {} leaves for it", what, format_bytes(bytes),
                                format_bytes(job.memory.allowance.*share), option("memory_limit"),
                                format_bytes(job.options.memory_limit));
  bad.kind = ErrorKind::unavailable;
  if (enough == 0) return;
  const std::string limit = fmt::format("{}MiB", (enough + kMiB - 1) / kMiB);
  bad.error.cause = format_text("{}; {} is enough", bad.error.cause, option("memory_limit", limit));
  bad.hint = format_text("raise {} to {}, or use {}", option("memory_limit"), limit, other_policies());
}

}  // namespace

Error error_of_row(const BadRow& bad, const Text& message) {
  if (!bad.is_skippable) return Error(bad.kind, message, bad.hint);
  const Text hint = bad.hint.empty() ? format_text("use {} to go on without it", other_policies()) : bad.hint;
  return Error(bad.kind, message, hint).about("on_error");
}

BadRow describe_unread(const Job& job, std::uint64_t index, const ReadFault& fault) {
  const Recipe& recipe = job.recipe;
  BadRow bad;
  SampleError& error = bad.error;
  error.stage = "read";
  if (fault.too_large) {
    const std::uint64_t batch_bytes = recipe.varies() ? job.slab_bytes_for(recipe.length_of(fault.actual_bytes)) : 0;
    explain_need(job, bad, "reading it", fault.actual_bytes, &Allowance::encoded_bytes, batch_bytes);
  } else if (fault.too_long != 0) {
    error.stage = "transform";
    explain_need(job, bad, fmt::format("a batch of {} rows of its length", format_count(job.options.batch_size)),
                 job.slab_bytes_for(fault.too_long), &Allowance::batch_bytes);
  } else if (fault.size_changed && job.many_parts) {
    error.cause =
        fmt::format("it lies beyond the end of its file, which has {} bytes", format_count(fault.actual_bytes));
  } else if (fault.size_changed) {
    error.cause = dataset::size_changed_cause(job.dataset->location(index).bytes, fault.actual_bytes);
  } else {
    const storage::Failure failure = fault.failure ? *fault.failure : storage::failure_of(fault.error_number);
    error.cause = failure.text;
    bad.kind = failure.kind;
    bad.ends_the_run = failure.ends_the_run;
    if (failure.ends_the_run || !failure.hint.empty()) {
      bad.hint = failure.hint;
      bad.is_skippable = false;
    } else if (failure.may_retry) {
      bad.hint = format_text("the cause may pass: run it again later, or use {} to go on without the sample",
                             other_policies());
    }
  }
  if (job.many_parts && fault.too_long == 0 && !fault.too_large) {
    error.cause = format_text("part {}: {}", fault.part + 1, error.cause);
  }
  return bad;
}

BadRow describe_unmade(const Job& job, const RowResult& verdict, std::uint64_t wanted_bytes) {
  BadRow bad;
  SampleError& error = bad.error;
  error.stage = verdict.stage;
  error.cause = cause_of(verdict.result);
  if (verdict.result.offset != kNoOffset) error.offset = static_cast<std::int64_t>(verdict.result.offset);
  bad.kind = kind_of(verdict);
  if (verdict.result.code == Code::no_memory && wanted_bytes != 0) {
    const bool is_for_all = verdict.most_bytes > wanted_bytes;
    explain_need(job, bad, is_for_all ? "working memory for any crop of it" : "working memory for it",
                 is_for_all ? verdict.most_bytes : wanted_bytes, &Allowance::working_bytes);
  }
  return bad;
}

}  // namespace stoker::loader
