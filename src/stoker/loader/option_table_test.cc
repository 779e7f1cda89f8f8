#include "stoker/loader/option_table.h"

#include <set>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::loader {
namespace {

Error error_of_setting(std::string_view name, const Value& value) {
  try {
    Request request;
    set_option(request, find_option(name), value);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, "it was taken");
}

Value kept(std::string_view name, std::string_view word) {
  const Option& row = find_option(name);
  Request request;
  set_option(request, row, read_value(row, word));
  return row.get(request);
}

// A value of the option that is not its default, where it has one.
Value other_value(const Option& row) {
  const auto word = [&](std::string_view text) { return read_value(row, text); };
  switch (row.type) {
    case ValueType::count:
    case ValueType::bytes:
    case ValueType::real:
      return word("7");
    case ValueType::duration:
      return word("7s");
    case ValueType::word:
      return word(row.words.back());
    case ValueType::on_off:
    case ValueType::shuffle:
      return word("true");
    case ValueType::text:
      return word(row.name == "transform" ? "flip" : "column");
    case ValueType::names:
      return Names{"cat", "dog"};
  }
  return {};
}

TEST(OptionTable, EveryRowSetsAndGetsItsOwnField) {
  std::set<std::string_view> names;
  for (const Option& row : option_table()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(names.insert(row.name).second) << "it is declared twice";
    Request request;
    const Value before = row.get(request);
    set_option(request, row, other_value(row));
    EXPECT_NE(row.get(request), before);
    for (const Option& other : option_table()) {
      const bool is_alias = (other.name == "last_batch") != (row.name == "last_batch") &&
                            (other.name == "drop_last" || row.name == "drop_last");
      if (other.name == row.name || is_alias) continue;
      EXPECT_EQ(other.get(request), other.get(Request{})) << other.name;
    }
    EXPECT_FALSE(row.meaning.empty());
    EXPECT_FALSE(values_text(row).empty());
  }
}

TEST(OptionTable, EveryWordIsTakenAndGivenBack) {
  for (const Option& row : option_table()) {
    for (const std::string_view word : row.words) EXPECT_EQ(kept(row.name, word), Value(std::string(word))) << row.name;
  }
}

TEST(OptionTable, ADefaultThatIsAValueIsTaken) {
  for (const Option& row : option_table()) {
    const Value value = row.get(Request{});
    if (std::holds_alternative<std::monostate>(value)) {
      EXPECT_TRUE(row.takes_none) << row.name;
      EXPECT_FALSE(row.unset.empty()) << row.name;
      continue;
    }
    Request request;
    set_option(request, row, value);
    EXPECT_EQ(row.get(request), value) << row.name;
  }
}

TEST(OptionTable, AWrongValueIsRefusedByNameWithTheRightOnes) {
  const Error word = error_of_setting("on_error", Value("skipp"));
  EXPECT_EQ(word.message(), "on_error is one of raise, skip, replace, zero, not `skipp`");
  EXPECT_EQ(word.hint(), "did you mean `skip`?");
  EXPECT_EQ(word.option(), "on_error");
  EXPECT_EQ(error_of_setting("batch_size", Value(std::uint64_t{0})).message(),
            "batch_size is a whole number from 1 to 100,000,000, not `0`");
  EXPECT_EQ(error_of_setting("num_workers", Value(2.5)).message(),
            "num_workers is auto or a whole number from 0 to 1,024, not `2.5`");
  EXPECT_EQ(error_of_setting("memory_limit", Value("plenty")).option(), "memory_limit");
  EXPECT_EQ(error_of_setting("transform", Value("nothing:1")).option(), "transform");
  EXPECT_EQ(error_of_setting("batch_size", Unknown{"[1]"}).message(),
            "batch_size is a whole number from 1 to 100,000,000, not `[1]`");
}

TEST(OptionTable, NamesComeAsAListOrFromAFile) {
  const os::TempFolder folder;
  const std::string file = folder.file("classes.txt", "# two\ncat\ndog\n");
  EXPECT_EQ(kept("class_list", file), Value(Names{"cat", "dog"}));
  EXPECT_EQ(error_of_setting("class_list", Names{}).message(),
            "class_list is a list of names or a file with one on each line, not `[]`");
  EXPECT_EQ(error_of_setting("class_list", Value(folder.path() + "/none")).option(), "class_list");
  EXPECT_EQ(error_of_setting("batch_size", Names{"a", "b"}).message(),
            "batch_size is a whole number from 1 to 100,000,000, not `['a', 'b']`");
}

TEST(OptionTable, TheCommandLineSpellsTheSameErrorWithItsFlags) {
  const auto is_flag = [](std::string_view) { return true; };
  EXPECT_EQ(error_of_setting("color", Value("blue")).text().in_flags(is_flag),
            "--image-color is one of rgb, gray, keep, not `blue`");
  EXPECT_EQ(error_of_setting("max_errors", Value(0.0)).hint_text().in_flags(is_flag), "--on-error raise allows none");
}

TEST(OptionTable, AnUnknownOptionOffersTheNearest) {
  try {
    make_request({{"bach_size", Value(std::uint64_t{2})}});
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "the loader has no option `bach_size`");
    EXPECT_EQ(error.hint(), "did you mean batch_size?");
  }
}

TEST(OptionTable, NumbersAreReadFromWordsAndTextsOnlyWhereTextIsAValue) {
  EXPECT_EQ(kept("memory_limit", "64MB"), Value(std::uint64_t{64'000'000}));
  EXPECT_EQ(kept("timeout", "2m"), Value(120.0));
  EXPECT_EQ(kept("num_workers", "auto"), Value("auto"));
  EXPECT_EQ(kept("prefetch_factor", "0"), Value(std::uint64_t{0}));
  EXPECT_EQ(kept("shuffle", "blocks:2:8"), Value("blocks:2:8"));
  EXPECT_EQ(error_of_setting("batch_size", Value("4")).kind(), ErrorKind::usage) << "a text is not a count";
}

TEST(OptionTable, ContradictionsAndRanksThatDoNotExistAreRefused) {
  EXPECT_THROW(make_request({{"drop_last", true}, {"last_batch", Value("pad")}}), Error);
  EXPECT_NO_THROW(make_request({{"drop_last", true}, {"last_batch", Value("drop")}}));
  EXPECT_NO_THROW(make_request({{"drop_last", true}, {"last_batch", Value()}}));
  EXPECT_THROW(make_request({{"rank", Value(std::uint64_t{2})}, {"world_size", Value(std::uint64_t{2})}}), Error);
}

TEST(OptionTable, WhatConcernsTheDataSetGoesToItToo) {
  const Request request = make_request({{"storage", Value("mmap")}, {"on_error", Value("skip")}});
  EXPECT_EQ(request.opening.storage, storage::Storage::mmap);
  EXPECT_TRUE(request.opening.skip_losses);
}

Error error_of_checking(LoaderOptions options) {
  try {
    check_options(options);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, "it was taken");
}

TEST(OptionTable, ChecksTheOptionsOfACppCallerAndNamesTheWrongOne) {
  check_options({});
  LoaderOptions options;
  options.batch_size = 0;
  EXPECT_EQ(error_of_checking(options).message(), "batch_size is a whole number from 1 to 100,000,000, not `0`");
  EXPECT_EQ(error_of_checking(options).option(), "batch_size");
  options = {};
  options.num_workers = -2;
  EXPECT_EQ(error_of_checking(options).message(), "num_workers is auto or a whole number from 0 to 1,024, not `-2`");
  options = {};
  options.io_threads = 0;
  EXPECT_EQ(error_of_checking(options).option(), "io_threads");
  options = {};
  options.max_errors = 1.5;
  EXPECT_EQ(error_of_checking(options).option(), "max_errors");
  options = {};
  options.world_size = 2;
  options.rank = 2;
  EXPECT_EQ(error_of_checking(options).option(), "rank");
}

TEST(OptionTable, ChecksAWordWithoutARequest) {
  check_value(find_option("num_workers"), "4");
  EXPECT_THROW(check_value(find_option("num_workers"), "many"), Error);
}

}  // namespace
}  // namespace stoker::loader
