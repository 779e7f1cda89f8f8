#include "stoker/loader/row_bytes.h"

#include <gtest/gtest.h>

#include "stoker/loader/engine_parts_test.h"

namespace stoker::loader {
namespace {

Row row_at(std::uint64_t index) {
  Row row;
  row.index = row.id = index;
  return row;
}

TEST(RowBytes, OfASampleAreItsOwnAndTheirRoomIsAligned) {
  const std::string sound = wav(101, 1);
  EngineParts parts(std::make_shared<HeldData>(std::vector{sound, wav(200, 1)}), rows_of_100(2));
  const RowBytes::Need need = parts.row_bytes.need_of(row_at(0), 0);
  EXPECT_EQ(need.bytes, sound.size());
  EXPECT_GE(need.room, parts.fetcher->buffer_bytes(sound.size()));
  EXPECT_EQ(need.room % parts.row_bytes.alignment(), 0u);
  EXPECT_GT(parts.row_bytes.need_of(row_at(1), 0).bytes, need.bytes);
}

TEST(RowBytes, ThatLieInAViewNeedNoRoom) {
  Folder folder;
  folder.write("x.npy", npy(8, 100));
  LoaderOptions options = batches_of(2);
  options.storage = storage::Storage::mmap;
  options.output.dtype = DType::f32;  // so that rows are not copies
  dataset::OpenOptions opening;
  opening.storage = storage::Storage::mmap;
  EngineParts parts(open_uncached(folder.path("x.npy"), opening), options);
  ASSERT_FALSE(parts.job.in_place);
  const RowBytes::Need need = parts.row_bytes.need_of(row_at(3), 0);
  EXPECT_EQ(need.bytes, 100u);
  EXPECT_EQ(need.room, 0u);
}

TEST(RowBytes, WithoutAStoreInMemoryNothingIsResident) {
  EngineParts parts(held_sounds(4), rows_of_100(2));
  EXPECT_TRUE(parts.row_bytes.resident(0, parts.job.dataset->location(0)).empty());
  EXPECT_TRUE(parts.row_bytes.resident_part(parts.job.dataset->location(0)).empty());
  EXPECT_EQ(make_ram_store(parts.job), nullptr);
}

}  // namespace
}  // namespace stoker::loader
