// Which kind of sample a data set holds, what is known of it before the first batch, and what reaches the batch.
#include "stoker/loader/recipe.h"

#include <gtest/gtest.h>

#include "stoker/loader/held_data_test.h"

namespace stoker::loader {
namespace {

using transform::parse_ops;
using Names = std::vector<std::string>;

Recipe recipe_of(const std::vector<std::string>& samples, std::string_view ops = "") {
  LoaderOptions options = batches_of(2);
  options.transform = parse_ops(ops);
  return Recipe(HeldData(samples), options);
}

TEST(Recipe, TakesTheKindOfTheFirstSampleThatCanBeRead) {
  const Recipe audio = recipe_of({"", "nothing that a codec reads", wav(100, 1)}, "pad:50");
  EXPECT_EQ(audio.facts().kind, SampleKind::audio);
  EXPECT_EQ(audio.facts().rate_hz, 8000u);
  EXPECT_TRUE(audio.facts().has_lengths);
  EXPECT_EQ(audio.row_bytes(0, 0), 50 * sizeof(float));

  const Recipe image = recipe_of({image_with_16_bits()}, "resize:8x6,window");
  EXPECT_EQ(image.facts().kind, SampleKind::image);
  EXPECT_EQ(image.facts().height, 8u);
  EXPECT_EQ(image.facts().width, 6u);
  EXPECT_TRUE(image.facts().is_heavy);

  const Recipe array = recipe_of({npy(3, 5)});
  EXPECT_EQ(array.facts().kind, SampleKind::array);
  EXPECT_EQ(array.row_bytes(0, 0), 15u);
}

TEST(Recipe, SaysWhatNoCodecReadsInTheWordsOfTheTable) {
  try {
    recipe_of({"nothing that a codec reads"});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(codec::refusal()), std::string::npos) << error.message();
  }
}

Names columns_of(const Recipe& recipe) {
  Names names;
  for (const transform::IndexColumn& column : recipe.facts().columns) names.push_back(column.name);
  return names;
}

TEST(Recipe, AsksTheIndexOnlyForWhatOperationsRead) {
  EXPECT_EQ(columns_of(recipe_of({image_with_16_bits()}, "window")), (Names{"hu_offset"}));
  EXPECT_EQ(columns_of(recipe_of({image_with_16_bits()}, "views(a=2[window],b=1[window])")), (Names{"hu_offset"}));
  EXPECT_EQ(columns_of(recipe_of({image_with_16_bits()}, "window:level=0:width=9:offset=3")), Names{});
  EXPECT_EQ(columns_of(recipe_of({wav(100, 1)})), Names{});
}

TEST(Recipe, AudioOfNoFramesIsARowOfZerosWhateverTheTransform) {
  const std::string stored[] = {wav(40, 9), wav(0, 0), wav(0, 0, 16000)};
  for (const char* ops : {"pad:100", "mono,pad:100", "resample:16000,pad:100", "mono", "resample:8000", ""}) {
    for (const DType dtype : {DType::f32, DType::i16, DType::f16}) {
      const bool resamples = std::string_view(ops).find("resample") != std::string_view::npos;
      LoaderOptions options = batches_of(3);
      options.transform = parse_ops(ops);
      options.output.dtype = dtype;
      const std::vector<std::string> samples(stored, stored + (resamples ? 3 : 2));
      Loader loader(std::make_shared<HeldData>(samples), options);
      const std::vector<Taken> batches = drain(loader);
      ASSERT_EQ(batches.size(), 1u) << ops;
      ASSERT_EQ(batches[0].rows.size(), samples.size()) << ops;
      for (std::size_t i = 1; i < samples.size(); ++i) {
        EXPECT_EQ(batches[0].lengths[i], 0) << ops;
        EXPECT_EQ(batches[0].rows[i], std::string(batches[0].rows[0].size(), '\0')) << ops;
      }
    }
  }
}

TEST(Recipe, AudioThatIsTooShortForItsSpectrogramIsABadSampleWhereverItStands) {
  const char* const ops = "mel:8000:400:hop_length=100:n_mels=8";
  for (const std::vector<std::string>& samples : {std::vector{wav(150, 1), wav(1000, 2), wav(500, 3)},
                                                  std::vector{wav(0, 0), wav(150, 1), wav(1000, 2), wav(500, 3)},
                                                  std::vector{wav(1000, 2), wav(500, 3), wav(150, 1)}}) {
    EXPECT_EQ(recipe_of(samples, ops).facts().first_length, 11u);
    for (const std::uint64_t batch_size : {1u, 4u}) {
      LoaderOptions options = batches_of(batch_size);
      options.transform = parse_ops(ops);
      options.on_error = OnError::skip;
      Loader loader(std::make_shared<HeldData>(samples), options);
      std::vector<std::int64_t> lengths;
      for (const Taken& batch : drain(loader))
        lengths.insert(lengths.end(), batch.lengths.begin(), batch.lengths.end());
      EXPECT_EQ(lengths, (std::vector<std::int64_t>{11, 6}));
    }
  }
}

TEST(Recipe, SaysWhatASpectrogramNeedsWhereEveryAudioIsTooShort) {
  try {
    recipe_of({wav(150, 1), wav(180, 2)}, "mel:8000:400");
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("n_fft = 400 needs at least 201 frames, and the first audio has 150"),
              std::string::npos)
        << error.message();
  }
}

TEST(Recipe, ASamplesColumnReachesItsWindow) {
  const Folder folder;
  for (const char* name : {"a.png", "b.png", "c.png"}) folder.write(name, image_with_16_bits());
  folder.write("index.csv", "path,hu_offset,left,right\na.png,0,1,2\nb.png,400,3,4\nc.png,,5,6\n");
  dataset::OpenOptions opening;
  opening.label_columns = {"left", "right"};
  LoaderOptions options = batches_of(3);
  options.transform = parse_ops("window:level=30000:width=60000");
  const std::vector<Taken> taken = epoch_of(open_uncached(folder.path("index.csv"), opening), options);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_NE(taken[0].rows[0], taken[0].rows[1]);
  EXPECT_EQ(taken[0].rows[0], taken[0].rows[2]) << "an empty field is 0";
  EXPECT_EQ(taken[0].labels, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Recipe, RefusesTwoColumnsOfOneNameWhereOneIsRead) {
  const Folder folder;
  folder.write("a.png", image_with_16_bits());
  folder.write("index.csv", "path,hu_offset,hu_offset\na.png,1,2\n");
  const dataset::DatasetPtr data = open_uncached(folder.path("index.csv"));
  LoaderOptions options = batches_of(1);
  EXPECT_NO_THROW(Loader(data, options));
  options.transform = parse_ops("window");
  EXPECT_THROW(Loader(data, options), Error);
}

TEST(Batch, FindsItsTensorsByName) {
  LoaderOptions options = batches_of(2);
  options.transform = parse_ops("views(image=1[resize:8x8],mask=1[resize:4x4])");
  Loader loader(std::make_shared<HeldData>(std::vector(2, image_with_16_bits())), options);
  loader.start_epoch(0);
  const BatchPtr batch = loader.next();
  ASSERT_NE(batch->tensor("mask"), nullptr);
  EXPECT_EQ(batch->tensor("mask")->shape, (std::vector<std::int64_t>{2, 3, 4, 4}));
  EXPECT_EQ(batch->tensor("data"), nullptr);
  EXPECT_EQ(batch->coords(), nullptr) << "rows are whole samples";
  EXPECT_EQ(batch->label_count(), 1u);
}

}  // namespace
}  // namespace stoker::loader
