#include "stoker/dataset/volumes.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/dataset/tree_test.h"

namespace stoker::dataset {
namespace {

std::string volume_file(std::string_view descr, std::string_view shape, std::size_t bytes) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  for (std::size_t i = 0; i < bytes; ++i) file += static_cast<char>(i % 251);
  return file;
}

VolumesOptions patches_of(const Extents& patch, std::uint64_t samples) {
  VolumesOptions options;
  options.patches.patch = patch;
  options.patches.samples = samples;
  return options;
}

class VolumesOpened : public ::testing::Test {
 protected:
  std::string write(const char* name, std::string_view shape, std::size_t elements, std::string_view descr = "|u1") {
    return tree_.write(name, volume_file(descr, shape, elements * (descr == "<u2" ? 2 : 1)));
  }
  std::string refusal(const std::vector<VolumeAddress>& addresses, const VolumesOptions& options) {
    const std::optional<Error> error = error_of([&] { (void)open_volumes(addresses, options, without_cache()); });
    return error ? error->message() : "taken";
  }
  Tree tree_;
};

TEST_F(VolumesOpened, LabelsAreTheNumbersOfTheVolumes) {
  const std::string a = write("a.npy", "(4, 5, 6)", 120), b = write("b.npy", "(7, 5, 6)", 210);
  const DatasetPtr data = open_volumes({{a, "", 1}, {b, "", 3}}, patches_of({2, 2, 2}, 8), without_cache());
  EXPECT_EQ(labels_of(*data), (std::vector<std::int64_t>{0, 0, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(data->facts().kind, "volumes");
  EXPECT_EQ(data->name(3), "b.npy[3]");
  EXPECT_EQ(data->parts(0, {}), 0u) << "mapped: the worker takes the elements from there";
}

TEST_F(VolumesOpened, PlanesAreThePartsOfAVolumeThatIsReadDirectly) {
  const std::string a = write("a.npy", "(4, 5, 6)", 120);
  OpenOptions options = without_cache();
  options.storage = storage::Storage::direct;
  const DatasetPtr data = open_volumes({{a, a, 1}}, patches_of({3, 2, 4}, 5), options);
  const RowKey key{1, 2, 3};
  ASSERT_EQ(data->parts(3, key), 6u) << "of the image and of the mask";
  const Placement at = data->facts().volumes->plan().place(3, key);
  for (std::uint32_t part = 0; part < 6; ++part) {
    const storage::Location where = data->locate_part(3, key, part, {});
    EXPECT_EQ(where.bytes, 6u + 4) << "from the first element of a plane to the last";
    EXPECT_EQ(where.offset, 128 + (at.corner[0] + part % 3) * 30 + at.corner[1] * 6 + at.corner[2]);
  }
  EXPECT_EQ(data->facts().largest_bytes, 60u);
}

TEST_F(VolumesOpened, RefusesWhatDoesNotGoTogether) {
  const std::string a = write("a.npy", "(4, 5, 6)", 120), other = write("b.npy", "(4, 5, 7)", 140),
                    wide = write("c.npy", "(4, 5, 6)", 120, "<u2"), flat = write("d.npy", "(120,)", 120);
  const VolumesOptions options = patches_of({2, 2, 2}, 8);
  EXPECT_EQ(refusal({{a, other, 1}}, options),
            fmt::format("the mask `{}` is 4x5x7, and its volume `{}` is 4x5x6: both have one shape", other, a));
  EXPECT_EQ(refusal({{a, "", 1}, {wide, "", 1}}, options),
            fmt::format("the volume `{}` is uint16 and `{}` is uint8: all of a data set have one type", wide, a));
  EXPECT_EQ(refusal({{a, a, 1}, {a, "", 1}}, options), fmt::format("`{}` has no mask, and others have one", a));
  EXPECT_NE(refusal({{flat, "", 1}}, options), "taken");
  EXPECT_EQ(refusal({}, options), "cannot open volumes: the list is empty");
  VolumesOptions foreground = options;
  foreground.patches.foreground = 0.5;
  EXPECT_EQ(refusal({{a, "", 1}}, foreground), "foreground needs masks: it asks for patches with label");
}

TEST_F(VolumesOpened, ACsvNamesImagesMasksAndWeights) {
  const std::string csv = tree_.write("sets/volumes.csv", "image,mask,weight\na.npy,/m/a.npy,2\n\"b,c.npy\",,\n");
  const std::vector<VolumeAddress> volumes = read_volumes_csv(csv);
  ASSERT_EQ(volumes.size(), 2u);
  EXPECT_EQ(volumes[0].image, tree_.at("sets/a.npy"));
  EXPECT_EQ(volumes[0].mask, "/m/a.npy");
  EXPECT_EQ(volumes[0].weight, 2);
  EXPECT_EQ(volumes[1].image, tree_.at("sets/b,c.npy"));
  EXPECT_EQ(volumes[1].mask, "");
  EXPECT_EQ(volumes[1].weight, 1);
  EXPECT_TRUE(
      mentions(error_of([&] { (void)read_volumes_csv(tree_.write("x.csv", "path\na\n")); }), "no column `image`"));
  EXPECT_TRUE(mentions(error_of([&] { (void)read_volumes_csv(tree_.write("y.csv", "image,weight\na,x\n")); }),
                       "the weight `x` of row 2 is not a number"));
}

TEST_F(VolumesOpened, WordsOfTheCommandLineAreRead) {
  EXPECT_EQ(parse_extents("72x136x136", "patch"), (Extents{72, 136, 136}));
  EXPECT_EQ(parse_extents("8", "patch"), (Extents{8, 8, 8}));
  EXPECT_TRUE(error_of([] { (void)parse_extents("8x9", "patch"); }));
  EXPECT_EQ(parse_normalize("zscore").how, Normalize::How::zscore);
  EXPECT_EQ(parse_normalize("window:-1000:400").second, 400);
  EXPECT_EQ(parse_normalize("scale:0.5:1").first, 0.5);
  for (const char* const wrong : {"z", "window", "window:1", "scale:a:b", "window:1:2:3", "scale:inf:0"})
    EXPECT_TRUE(error_of([&] { (void)parse_normalize(wrong); })) << wrong;
}

}  // namespace
}  // namespace stoker::dataset
