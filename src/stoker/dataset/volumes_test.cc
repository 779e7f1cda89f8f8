#include "stoker/dataset/volumes.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/dataset/page_cache.h"
#include "stoker/dataset/tree_test.h"

namespace stoker::dataset {
namespace {

using Names = std::vector<std::string>;

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
}

TEST_F(VolumesOpened, AWrongCsvIsRefusedByLineWithTheRemedy) {
  const auto refused = [&](const std::string& text) {
    const std::string csv = tree_.write("wrong.csv", text);
    const std::optional<Error> error = error_of([&] { (void)read_volumes_csv(csv); });
    if (!error) return std::string("taken");
    EXPECT_FALSE(error->hint().empty()) << error->message();
    const std::string start = fmt::format("cannot read `{}`: ", csv);
    return error->message().starts_with(start) ? error->message().substr(start.size()) : error->message();
  };
  EXPECT_EQ(refused("path\na\n"), "line 1 has no column `image`: it names `path`");
  EXPECT_EQ(refused("image;mask\na;b\n"), "line 1 has no column `image`: it names `image;mask`");
  EXPECT_EQ(refused("image,mask,Image\na,b,c\n"), "line 1 has the column `image` twice");
  for (const char* const name : {"label", "maks", "masks", "mas"}) {
    EXPECT_EQ(refused(fmt::format("image,{}\na,b\n", name)),
              fmt::format("line 1 has the column `{}`, and none is `mask`", name));
  }
  EXPECT_EQ(refused("image\n\"a\nb\"\n\na,b\n"), "line 5 has 2 values, and the first line names 1 columns");
  EXPECT_EQ(refused("image,mask\na,b\n ,c\n"), "line 3 names no image");
  EXPECT_EQ(refused("image\n\"a\n"), "line 2 has a quote that is not closed");
  EXPECT_EQ(refused("image\n\"a\"b\n"), "line 2 has text behind a closing quote");
  for (const char* const weight : {"x", "inf", "-inf", "nan", "-1", "1e308", "1e400", "1e18x"}) {
    EXPECT_EQ(refused(fmt::format("image,weight\na,1\nb,{}\n", weight)),
              fmt::format("line 3 has the weight `{}`, which is not a number from 0 to 1e+18", weight));
  }
  EXPECT_EQ(refused("image\n"), fmt::format("cannot find volumes in `{}`: it has no rows", tree_.at("wrong.csv")));
}

TEST_F(VolumesOpened, BlanksInsideQuotesBelongToANameAndOthersDoNot) {
  const auto volumes = read_volumes_csv(tree_.write("volumes.csv", "image , mask\n\" a.npy\", b.npy \n"));
  EXPECT_EQ(volumes[0].image, tree_.at(" a.npy"));
  EXPECT_EQ(volumes[0].mask, tree_.at("b.npy"));
}

TEST_F(VolumesOpened, FileAddressesAreLocalPaths) {
  const std::string a = write("a.npy", "(4, 5, 6)", 120), b = write("b.npy", "(4, 5, 6)", 120);
  const std::string csv = tree_.write("volumes.csv", fmt::format("image,mask\nfile://{},b.npy\n", a));
  const auto volumes = read_volumes_csv(volumes_csv_of("file://" + csv));
  EXPECT_EQ(volumes[0].image, a);
  EXPECT_EQ(volumes[0].mask, b);
  EXPECT_EQ(open_volume("file://" + a)->info().extents, (Extents{4, 5, 6}));
  EXPECT_EQ(open_volumes({{"file://" + a, "file://" + b, 1}}, patches_of({2, 2, 2}, 8), without_cache())->size(), 8u);
}

TEST_F(VolumesOpened, WhereSelectsTheSeriesOfAPreparedFolderByTheColumnsOfItsSlices) {
  tree_.write("slices/_index/prepare.json", "{}");
  const std::string csv = tree_.write("slices/_index/volumes.csv", "image\nA\nB\n");
  tree_.write(
      "slices/_index/index.csv",
      "path,series,slice_spacing,hu_offset,row,modality\nA/00000.png,A,1,32768,0,CT\nA/00001.png,A,1,32768,0,CT\n"
      "B/00000.png,B,2,32768,0,MR\n");
  ASSERT_EQ(volumes_csv_of(tree_.at("slices")), csv);
  const auto images = [&](const std::string& where) {
    Names names;
    for (const VolumeAddress& volume : read_volumes_csv(csv, where)) names.push_back(volume.image);
    return names;
  };
  EXPECT_EQ(images("modality == \"CT\""), (Names{tree_.at("slices/A")}));
  EXPECT_EQ(images("slice_spacing > 1"), (Names{tree_.at("slices/B")}));
  EXPECT_EQ(images("image == \"B\""), (Names{tree_.at("slices/B")}));
  EXPECT_TRUE(mentions(error_of([&] { (void)images("site == 3"); }), "slices/_index/index.csv` are `path`, `series`"));
}

TEST_F(VolumesOpened, WhereTakesTheRowsThatMatch) {
  const std::string csv =
      tree_.write("volumes.csv", "image,Split,weight\na.npy,train,1\nb.npy,\"test\",2\nc.npy,train,3\n");
  const auto images = [&](const std::string& where) {
    std::vector<std::string> names;
    for (const VolumeAddress& volume : read_volumes_csv(csv, where))
      names.push_back(volume.image.substr(tree_.at("").size() + 1));
    return names;
  };
  EXPECT_EQ(images(""), (Names{"a.npy", "b.npy", "c.npy"}));
  EXPECT_EQ(images("split == \"train\" and weight > 1"), (Names{"c.npy"}));
  EXPECT_EQ(images("image != \"a.npy\""), (Names{"b.npy", "c.npy"}));
  EXPECT_TRUE(mentions(
      error_of([&] { (void)images("site == 3"); }),
      fmt::format("where names the column `site`, and the columns of `{}` are `image`, `split`, `weight`", csv)));
  EXPECT_TRUE(mentions(error_of([&] { (void)images("weight > 9"); }), "where matches none of the 3 rows of"));
  OpenOptions opening = without_cache();
  opening.where = "weight > 1";
  const std::string a = write("a.npy", "(4, 5, 6)", 120);
  EXPECT_TRUE(mentions(error_of([&] {
                         (void)open_volumes({{a, "", 1}}, patches_of({2, 2, 2}, 8), opening);
                       }),
                       "where does not go with volumes that are named one by one"));
}

TEST_F(VolumesOpened, ChunksInFilesOfTheirOwnLeaveThePageCache) {
  const std::string zarr = tree_.at("v.zarr");
  tree_.write("v.zarr/.zarray",
              R"({"zarr_format": 2, "shape": [4, 4, 8], "chunks": [4, 4, 4], "dtype": "|u1", "compressor": null,
                  "filters": null, "fill_value": 0, "order": "C"})");
  for (const char* const chunk : {"0.0.0", "0.0.1"}) tree_.write(std::string("v.zarr/") + chunk, std::string(64, 'x'));
  const DatasetPtr data = open_volumes({{zarr, "", 1}}, patches_of({2, 2, 2}, 4), without_cache());
  EXPECT_EQ(cached_share(*data), 1.0);
  drop_from_page_cache(*data, [](std::uint64_t) { return true; });
  if (cached_share(*data) == 1.0) GTEST_SKIP() << "this file system keeps everything in memory";
  EXPECT_EQ(cached_share(*data), 0.0);
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
