#include "stoker/loader/bad_row.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "stoker/loader/engine_parts_test.h"

namespace stoker::loader {
namespace {

bool has(const Text& text, const std::string& part) {
  return text.in_python().find(part) != std::string::npos;
}

TEST(BadRow, SaysWhyItsBytesAreNotThere) {
  const Job job(held_sounds(8), rows_of_100(2));
  ReadFault fault;
  fault.error_number = ENOENT;
  const BadRow bad = describe_unread(job, 0, fault);
  EXPECT_EQ(bad.error.stage, "read");
  EXPECT_EQ(bad.kind, ErrorKind::not_found);
  EXPECT_FALSE(bad.ends_the_run);
}

TEST(BadRow, EndsTheRunWhereTheMachineIsToBlame) {
  const Job job(held_sounds(8), rows_of_100(2));
  ReadFault fault;
  fault.error_number = EMFILE;
  EXPECT_TRUE(describe_unread(job, 0, fault).ends_the_run);
}

TEST(BadRow, NamesTheMemoryLimitWithWhichASampleCouldBeRead) {
  const Job job(held_sounds(8), rows_of_100(2));
  ReadFault fault;
  fault.too_large = true;
  fault.actual_bytes = 1 << 10;
  const BadRow bad = describe_unread(job, 0, fault);
  EXPECT_EQ(bad.kind, ErrorKind::unavailable);
  EXPECT_TRUE(has(bad.error.cause, "reading it needs 1.0 KiB")) << bad.error.cause.in_python();
  EXPECT_TRUE(has(bad.error.cause, "memory_limit")) << bad.error.cause.in_python();
}

TEST(BadRow, NamesTheWorkingMemoryThatDecodingAskedFor) {
  const Job job(held_sounds(8), rows_of_100(2));
  const RowResult no_memory{failed(Code::no_memory, "no working memory for it"), "decode"};
  const BadRow bad = describe_unmade(job, no_memory, 99 << 20);
  EXPECT_TRUE(has(bad.error.cause, "working memory for it needs 99.0 MiB")) << bad.error.cause.in_python();
  EXPECT_EQ(describe_unmade(job, no_memory, 0).error.cause.in_python(), "no working memory for it: raise memory_limit");
}

TEST(BadRow, OffersToGoOnWithoutItUnlessTheFailureHasItsOwnRemedy) {
  BadRow bad;
  EXPECT_EQ(error_of_row(bad, "it is bad").hint(),
            "use on_error=\"skip\", \"replace\" or \"zero\" to go on without it");
  bad.is_skippable = false;
  bad.hint = "log in again";
  EXPECT_EQ(error_of_row(bad, "it is bad").hint(), "log in again");
}

TEST(BadRow, SaysWhetherReadingAgainMayHelp) {
  const Job job(held_sounds(8), rows_of_100(2));
  ReadFault fault;
  fault.error_number = EIO;
  EXPECT_TRUE(has(describe_unread(job, 0, fault).hint, "run it again later, or use on_error="));
  fault.error_number = EACCES;
  EXPECT_TRUE(describe_unread(job, 0, fault).hint.empty());
}

TEST(BadRow, SaysWhereInTheFileDecodingStopped) {
  const Job job(held_sounds(8), rows_of_100(2));
  const BadRow bad = describe_unmade(job, {failed(Code::truncated, "it ends early", 44), "decode"}, 0);
  EXPECT_EQ(bad.error.offset, 44);
  EXPECT_EQ(bad.error.cause.in_python(), "it ends early");
  EXPECT_EQ(bad.kind, ErrorKind::corrupt);
}

}  // namespace
}  // namespace stoker::loader
