// Arrays whose shapes differ, through the whole loader.
#include "stoker/loader/ragged_kind.h"

#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/loader/made_data_test.h"

namespace stoker::loader {
namespace {

std::string int16_npy(std::uint64_t rows, std::uint64_t columns) {
  std::string header = fmt::format("{{'descr': '<i2', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  header.resize((10 + header.size() + 64) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string elements;
  for (std::uint64_t i = 0; i < rows * columns; ++i) elements += little(rows * 1000 + i, 2);
  return std::string("\x93NUMPY\x01\x00", 8) + little(header.size(), 2) + header + elements;
}

std::string npy_of_bytes(std::uint64_t count) {
  std::string header = fmt::format("{{'descr': '|u1', 'fortran_order': False, 'shape': ({},), }}", count);
  header.resize((10 + header.size() + 64) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + little(header.size(), 2) + header + std::string(count, 'x');
}

class RaggedArrays : public ::testing::Test {
 protected:
  RaggedArrays() {
    for (std::uint64_t i = 0; i < 5; ++i) folder_.write(fmt::format("{}.npy", i), int16_npy(2 + i, 3 + 7 * i));
  }
  dataset::DatasetPtr data() {
    dataset::OpenOptions opening;
    opening.use_cache = false;
    return dataset::open(folder_.path(""), opening);
  }
  Folder folder_;
};

TEST_F(RaggedArrays, ArePackedWithTheirShapes) {
  for (const int workers : {0, 2}) {
    LoaderOptions options = batches_of(2, workers);
    options.shapes = Shapes::list;
    Loader loader(data(), options);
    loader.start_epoch(0);
    std::uint64_t sample = 0;
    while (const BatchPtr batch = loader.next()) {
      ASSERT_TRUE(batch->packs_rows());
      for (std::uint64_t row = 0; row < batch->size(); ++row, ++sample) {
        const std::byte* const bytes = batch->tensors()[0].data + batch->places()[row];
        RaggedHead head;
        std::memcpy(&head, bytes, sizeof head);
        EXPECT_EQ(head.dtype, static_cast<std::int64_t>(DType::i16));
        ASSERT_EQ(head.rank, 2);
        EXPECT_EQ(head.shape[0], static_cast<std::int64_t>(2 + sample));
        EXPECT_EQ(head.shape[1], static_cast<std::int64_t>(3 + 7 * sample));
        std::int16_t last = 0;
        const std::int64_t count = head.shape[0] * head.shape[1];
        std::memcpy(&last, bytes + 128 + (count - 1) * 2, 2);
        EXPECT_EQ(last, static_cast<std::int16_t>(head.shape[0] * 1000 + count - 1));
        EXPECT_EQ(batch->lengths()[row], static_cast<std::int64_t>(128 + (count * 2 + 63) / 64 * 64));
      }
    }
    EXPECT_EQ(sample, 5u);
  }
}

TEST_F(RaggedArrays, AreBadSamplesWhereShapesAreEqual) {
  LoaderOptions options = batches_of(2, 1);
  options.on_error = OnError::skip;
  Loader loader(data(), options);
  loader.start_epoch(0);
  std::uint64_t rows = 0;
  while (const BatchPtr batch = loader.next()) rows += batch->size();
  EXPECT_EQ(rows, 1u);
}

TEST_F(RaggedArrays, RefuseTransformsAndAnotherType) {
  LoaderOptions options = batches_of(2, 1);
  options.shapes = Shapes::pad;
  options.output.dtype = DType::f32;
  EXPECT_THROW(Loader(data(), options), Error);
}

TEST_F(RaggedArrays, AnotherNumberOfAxesIsABadSample) {
  folder_.write("5.npy", npy_of_bytes(4));
  LoaderOptions options = batches_of(1, 1);
  options.shapes = Shapes::list;
  options.on_error = OnError::skip;
  Loader loader(data(), options);
  loader.start_epoch(0);
  std::uint64_t rows = 0;
  while (const BatchPtr batch = loader.next()) rows += batch->size();
  EXPECT_EQ(rows, 5u);
}

}  // namespace
}  // namespace stoker::loader
