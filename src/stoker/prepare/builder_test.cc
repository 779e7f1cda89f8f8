// Packs that a program builds: batch by batch, interrupted, continued, refused.
#include "stoker/prepare/builder.h"

#include <filesystem>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/os/fault.h"
#include "stoker/prepare/contents_test.h"
#include "stoker/prepare/pack.h"
#include "stoker/prepare/refusal_test.h"

namespace stoker::prepare {
namespace {

using loader::Folder;
namespace fs = std::filesystem;

BuilderOptions at(const Folder& folder) {
  BuilderOptions options;
  options.destination = folder.path("x.pack");
  options.shard_size = kMiB;
  return options;
}

// Rows [first, first + count) of four floats: the id, four times. Labels: id % 3.
std::uint64_t add(PackBuilder& builder, std::int64_t first, std::int64_t count) {
  std::vector<float> values;
  std::vector<std::int64_t> ids;
  std::vector<dataset::Label> labels;
  for (std::int64_t id = first; id < first + count; ++id) {
    values.insert(values.end(), 4, static_cast<float>(id));
    ids.push_back(id);
    labels.push_back({id % 3, 0});
  }
  BuilderRows rows;
  rows.dtype = DType::f32;
  rows.shape = {4};
  rows.bytes = std::as_bytes(std::span(values));
  rows.ids = ids;
  rows.label_kind = dataset::LabelKind::integer;
  rows.labels = labels;
  return builder.append(rows);
}

void expect_rows(const std::string& path, std::uint64_t count) {
  const auto pack = dataset::open_packed(path);
  ASSERT_EQ(pack->size(), count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t id = pack->id(i);
    float values[4];
    const storage::Location at = pack->location(i);
    const storage::Read read{at.offset, std::as_writable_bytes(std::span(values))};
    at.source->read({&read, 1});
    ASSERT_EQ(values[3], static_cast<float>(id));
    ASSERT_EQ(pack->label(i).integer, static_cast<std::int64_t>(id % 3));
    ASSERT_EQ(pack->name(i), std::to_string(id));
  }
}

TEST(PackBuilder, HoldsWhatWasAppendedInOrder) {
  const Folder folder;
  PackBuilder builder(at(folder));
  for (std::int64_t i = 0; i < 50; ++i) EXPECT_EQ(add(builder, 100 * i, 100), 100u);
  EXPECT_FALSE(fs::exists(folder.path("x.pack")));
  builder.close();
  expect_rows(folder.path("x.pack"), 5000);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1) << "nothing is left beside it";
}

TEST(PackBuilder, WithLittleMemoryWritesTheSame) {
  const Folder folder;
  BuilderOptions options = at(folder);
  options.memory_limit = 100;  // six rows
  PackBuilder builder(options);
  add(builder, 0, 5000);
  builder.close();
  expect_rows(options.destination, 5000);
}

TEST(PackBuilder, PassesOverIdsThatAreThere) {
  const Folder folder;
  PackBuilder builder(at(folder));
  add(builder, 0, 10);
  EXPECT_EQ(add(builder, 5, 10), 5u);
  EXPECT_TRUE(builder.has(14));
  EXPECT_FALSE(builder.has(15));
  EXPECT_EQ(builder.count(), 15u);
  builder.close();
  expect_rows(folder.path("x.pack"), 15);
}

TEST(PackBuilder, ThatWasInterruptedIsContinuedByTheNext) {
  const Folder folder;
  {
    PackBuilder whole(at(folder));
    add(whole, 0, 1000);
    add(whole, 1000, 1000);
    whole.close();
  }
  const auto expected = contents_of(folder.path("x.pack"));
  fs::remove_all(folder.path("x.pack"));
  {
    PackBuilder first(at(folder));
    add(first, 0, 1000);
  }  // the program ended without close()
  EXPECT_FALSE(fs::exists(folder.path("x.pack")));
  PackBuilder second(at(folder));
  EXPECT_EQ(second.count(), 1000u);
  EXPECT_TRUE(second.has(999));
  EXPECT_EQ(add(second, 0, 2000), 1000u);
  second.close();
  EXPECT_EQ(contents_of(folder.path("x.pack")), expected);
}

TEST(PackBuilder, AddsToThePackThatIsThere) {
  const Folder folder;
  for (std::int64_t run = 0; run < 3; ++run) {
    PackBuilder builder(at(folder));
    EXPECT_EQ(builder.count(), 100u * static_cast<std::uint64_t>(run));
    add(builder, 100 * run, 100);
    builder.close();
    expect_rows(folder.path("x.pack"), 100 * static_cast<std::uint64_t>(run) + 100);
  }
  BuilderOptions anew = at(folder);
  anew.force = true;
  PackBuilder builder(anew);
  add(builder, 7, 1);
  builder.close();
  expect_rows(folder.path("x.pack"), 1);
}

TEST(PackBuilder, ThatIsClosedTouchesNothingOfTheNextOne) {
  const Folder folder;
  auto first = std::make_unique<PackBuilder>(at(folder));
  add(*first, 0, 10);
  first->close();
  PackBuilder second(at(folder));
  first.reset();
  EXPECT_EQ(refusal([&] { const PackBuilder third(at(folder)); }).kind(), ErrorKind::unavailable);
  add(second, 10, 10);
  second.close();
  expect_rows(folder.path("x.pack"), 20);
}

TEST(PackBuilder, ClosedWithoutNewRowsLeavesThePackAsItIs) {
  const Folder folder;
  {
    PackBuilder builder(at(folder));
    add(builder, 0, 10);
    builder.close();
  }
  const auto before = contents_of(folder.path("x.pack"));
  PackBuilder(at(folder)).close();
  EXPECT_EQ(contents_of(folder.path("x.pack")), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(PackBuilder, RefusesRowsOfAnotherShapeLabelKindOrWithoutIds) {
  const Folder folder;
  PackBuilder builder(at(folder));
  add(builder, 0, 1);
  const std::int64_t ids[] = {5};
  const double value = 1;
  BuilderRows rows;
  rows.dtype = DType::f64;
  rows.bytes = std::as_bytes(std::span(&value, 1));
  rows.ids = ids;
  EXPECT_NE(refusal([&] { builder.append(rows); }).message().find("cannot append float64 [] to the pack"),
            std::string::npos);
  const float values[4] = {};
  rows.dtype = DType::f32;
  rows.shape = {4};
  rows.bytes = std::as_bytes(std::span(values));
  EXPECT_NE(refusal([&] { builder.append(rows); }).message().find("labels of kind none"), std::string::npos);
  rows.ids = {};
  EXPECT_EQ(refusal([&] { builder.append(rows); }).kind(), ErrorKind::usage);
  const std::int64_t negative[] = {-5};
  rows.ids = negative;
  EXPECT_NE(refusal([&] { builder.append(rows); }).message().find("ids begin at 0"), std::string::npos);
  builder.close();
  EXPECT_NE(refusal([&] { add(builder, 9, 1); }).message().find("closed"), std::string::npos);
}

TEST(PackBuilder, RefusesASecondBuilderAndAPackOfASource) {
  const Folder folder;
  {
    const PackBuilder first(at(folder));
    EXPECT_EQ(refusal([&] { const PackBuilder second(at(folder)); }).kind(), ErrorKind::unavailable);
  }
  folder.write("data/a.wav", loader::wav(10, 1));
  PackOptions packing;
  packing.source = folder.path("data");
  packing.destination = folder.path("x.pack");
  packing.samples = 10;
  make_pack(packing);
  EXPECT_NE(refusal([&] { const PackBuilder second(at(folder)); }).message().find("it was made from"),
            std::string::npos);
}

TEST(PackBuilder, NothingThrowsAwayTheRowsOfAnInterruptedOneUnasked) {
  const Folder folder;
  {
    PackBuilder builder(at(folder));
    add(builder, 0, 10);
  }
  folder.write("data/a.wav", loader::wav(10, 1));
  PackOptions packing;
  packing.source = folder.path("data");
  packing.destination = folder.path("x.pack");
  EXPECT_NE(refusal([&] { make_pack(packing); }).message().find("rows that a program wrote"), std::string::npos);
  BuilderOptions other = at(folder);
  other.classes = {"a"};
  EXPECT_NE(refusal([&] { const PackBuilder builder(other); }).message().find("other classes"), std::string::npos);
  EXPECT_EQ(PackBuilder(at(folder)).count(), 10u);
  other.force = true;
  EXPECT_EQ(PackBuilder(other).count(), 0u);
}

TEST(PackBuilder, SaysThatTheDiskIsFullAndGoesOnLater) {
  const Folder folder;
  {
    PackBuilder builder(at(folder));
    add(builder, 0, 1000);
    builder.flush();
    const os::InjectFault full(os::Call::write, {.error_number = ENOSPC, .times = 1'000'000});
    const Error error = refusal([&] {
      add(builder, 1000, 1000);
      builder.flush();
    });
    EXPECT_NE(error.message().find("No space left on device"), std::string::npos);
    EXPECT_NE(refusal([&] { add(builder, 5000, 1); }).message().find("No space left on device"), std::string::npos);
  }
  PackBuilder builder(at(folder));
  EXPECT_EQ(builder.count(), 1000u);
  add(builder, 0, 2000);
  builder.close();
  expect_rows(folder.path("x.pack"), 2000);
}

}  // namespace
}  // namespace stoker::prepare
