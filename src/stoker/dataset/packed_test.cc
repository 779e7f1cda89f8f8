// Packs as a reader meets them: sound ones, damaged ones, and those of a later version. Written here by hand, with the
// functions of pack_format.h; prepare/ tests the writer.
#include "stoker/dataset/packed.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/dataset/tar_format.h"
#include "stoker/dataset/tree_test.h"

namespace stoker::dataset {
namespace {

// What a test may spoil before the pack is written.
struct Draft {
  PackManifest pack;
  std::vector<PackRow> rows;
  std::vector<std::string> shards;  // bytes
  std::string names, columns;
};

// Rows of two int16 in two shards: (0, 1), (10, 11), (20, 21) and (30, 31).
Draft raw_draft() {
  Draft draft;
  PackManifest& pack = draft.pack;
  pack.stoker_version = "0.1.0";
  pack.kind = PackKind::raw;
  pack.dtype = DType::i16;
  pack.shape = {2};
  pack.content = "array";
  pack.label_kind = LabelKind::integer;
  pack.classes = {"cat", "dog"};
  pack.fingerprint = 77;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const std::size_t shard = i / 2;
    if (i % 2 == 0) {
      const std::uint64_t shape[] = {2, 2};
      draft.shards.push_back(npy_header(DType::i16, shape));
    }
    const auto first = static_cast<std::int16_t>(10 * i), second = static_cast<std::int16_t>(10 * i + 1);
    PackRow row;
    row.id = static_cast<std::int64_t>(100 + i);
    row.label = i % 2;
    row.shard = static_cast<std::uint32_t>(shard);
    row.offset = draft.shards[shard].size();
    row.bytes = 4;
    draft.shards[shard]
        .append(reinterpret_cast<const char*>(&first), 2)
        .append(reinterpret_cast<const char*>(&second), 2);
    draft.rows.push_back(row);
    append_name(draft.names, fmt::format("cat/{}.wav", i));
  }
  return draft;
}

std::string write(const Tree& tree, Draft draft) {
  PackManifest& pack = draft.pack;
  pack.count = draft.rows.size();
  pack.shards.clear();
  pack.files.clear();
  for (std::size_t i = 0; i < draft.shards.size(); ++i) {
    const std::string name = shard_name(pack.kind, i);
    pack.shards.push_back({name, draft.shards[i].size(), 2});
    tree.write("x.pack/" + name, draft.shards[i]);
  }
  std::string index = index_header(pack.count, pack.label_kind);
  index.append(reinterpret_cast<const char*>(draft.rows.data()), draft.rows.size() * sizeof(PackRow));
  const auto add = [&](std::string_view name, const std::string& bytes) {
    pack.files.push_back({std::string(name), bytes.size(), hash_text(bytes)});
    tree.write(fmt::format("x.pack/{}", name), bytes);
  };
  add(kPackIndex, index);
  add(kPackNames, draft.names);
  if (!pack.columns.empty()) add(kPackColumns, draft.columns);
  tree.write("x.pack/pack.json", to_json(pack));
  return tree.at("x.pack");
}

std::string bytes_of(const Dataset& dataset, std::uint64_t index) {
  const storage::Location at = dataset.location(index);
  std::string bytes(at.bytes, '\0');
  const storage::Read read{at.offset, std::as_writable_bytes(std::span(bytes.data(), bytes.size()))};
  at.source->read({&read, 1});
  return bytes;
}

std::optional<Error> error_of_opening(const Tree& tree, const Draft& draft) {
  const std::string path = write(tree, draft);
  return error_of([&] { open(path); });
}

class PackThrough : public testing::TestWithParam<storage::Storage> {};
INSTANTIATE_TEST_SUITE_P(Storages, PackThrough,
                         testing::Values(storage::Storage::buffered, storage::Storage::direct, storage::Storage::mmap),
                         [](const auto& test) { return std::string(storage::name(test.param)); });

TEST_P(PackThrough, RowsOfSeveralShardsAreOneDataSet) {
  const Tree tree;
  OpenOptions options;
  options.storage = GetParam();
  const DatasetPtr data = open(write(tree, raw_draft()), options);

  ASSERT_EQ(data->size(), 4u);
  EXPECT_EQ(data->facts().kind, "raw pack");
  EXPECT_EQ(data->facts().fingerprint, 77u);
  EXPECT_EQ(names_of(*data), (std::vector<std::string>{"cat/0.wav", "cat/1.wav", "cat/2.wav", "cat/3.wav"}));
  EXPECT_EQ(labels_of(*data), (std::vector<std::int64_t>{0, 1, 0, 1}));
  EXPECT_EQ(ids_of(*data), (std::vector<std::uint64_t>{100, 101, 102, 103}));
  ASSERT_TRUE(data->facts().array);
  EXPECT_EQ(data->facts().array->shape[0], 4u);
  EXPECT_EQ(data->facts().array->shape[1], 2u);
  for (std::uint64_t i = 0; i < 4; ++i) {
    std::int16_t values[2];
    std::memcpy(values, bytes_of(*data, i).data(), sizeof values);
    EXPECT_EQ(values[0], 10 * static_cast<int>(i));
    EXPECT_EQ(values[1], 10 * static_cast<int>(i) + 1);
  }
}

TEST(Pack, NamesMayHoldLineFeedsAndBackslashes) {
  const Tree tree;
  Draft draft = raw_draft();
  draft.names.clear();
  const std::vector<std::string> names = {"a\nb.wav", "c\\n.wav", "\r", "plain"};
  for (const std::string& name : names) append_name(draft.names, name);

  EXPECT_EQ(names_of(*open(write(tree, draft))), names);
}

TEST(Pack, RealLabelsAndColumnsComeBack) {
  const Tree tree;
  Draft draft = raw_draft();
  draft.pack.label_kind = LabelKind::real;
  draft.pack.classes.clear();
  draft.pack.columns = {"hu_offset", "who"};
  draft.columns = "hu_offset,who\n1.5,a\n-2,\"b, \"\"c\"\"\"\n,\nx,d\n";
  for (PackRow& row : draft.rows) row.label = std::bit_cast<std::uint64_t>(0.25);

  const DatasetPtr data = open(write(tree, draft));

  EXPECT_EQ(data->label(3).real, 0.25F);
  EXPECT_EQ(data->facts().columns, draft.pack.columns);
  EXPECT_EQ(data->column(0, 0), 1.5);
  EXPECT_EQ(data->column(0, 1), -2);
  EXPECT_TRUE(std::isnan(data->column(0, 2)));
  EXPECT_EQ(data->column_text(1, 1), "b, \"c\"");
  EXPECT_EQ(data->column_text(0, 3), "x");
}

TEST(Pack, OfALaterVersionIsRefusedByNumberAndByTheProgramThatWroteIt) {
  const Tree tree;
  const std::string path = write(tree, raw_draft());
  auto json = Json::parse_or_null(to_json(open_packed(path)->manifest()));
  json["version"] = 2;
  json["stoker_version"] = "9.8.7";
  tree.write("x.pack/pack.json", json.dump());

  const auto error = error_of([&] { open(path); });

  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::unsupported);
  EXPECT_TRUE(mentions(error, "x.pack")) << error->message();
  EXPECT_TRUE(mentions(error, "version 2, written by stoker 9.8.7")) << error->message();
  EXPECT_EQ(error->hint(), "update stoker");
}

TEST(Pack, AFolderNamedPackWithoutPackJsonIsNotAPack) {
  const Tree tree;
  tree.write("x.pack/data-00000.npy", "half");
  EXPECT_TRUE(mentions(error_of([&] { open(tree.at("x.pack")); }), "it has no pack.json"));
}

TEST(Pack, ARowThatLiesBeyondItsShardIsRefused) {
  const Tree tree;
  for (const auto& spoil : std::vector<std::function<void(PackRow&)>>{
           [](PackRow& row) { row.offset = ~std::uint64_t{0} - 2; }, [](PackRow& row) { row.offset += 4; },
           [](PackRow& row) { row.bytes = ~std::uint64_t{0}; }, [](PackRow& row) { row.offset = 0; },
           [](PackRow& row) { row.shard = 2; }, [](PackRow& row) { row.shard = ~std::uint32_t{0}; },
           [](PackRow& row) { row.id = -1; }, [](PackRow& row) { row.label = 2; }, [](PackRow& row) { row.bytes = 2; },
           [](PackRow& row) { row.offset -= 2; }}) {
    Draft draft = raw_draft();
    spoil(draft.rows[3]);
    const auto error = error_of_opening(tree, draft);
    EXPECT_TRUE(error && error->kind() == ErrorKind::corrupt);
    EXPECT_TRUE(mentions(error, "row 3 of index.npy (`cat/3.wav`)")) << (error ? error->message() : "opened");
  }
}

TEST(Pack, FilesThatAreNotThoseOfPackJsonAreRefusedByName) {
  const Tree tree;
  const std::string path = write(tree, raw_draft());
  for (const auto& [name, bytes] : std::vector<std::pair<std::string, std::string>>{
           {"index.npy", "short"}, {"names.txt", "a\nb\nc\nd\n"}, {"data-00001.npy", "short"}}) {
    write(tree, raw_draft());
    tree.write("x.pack/" + name, bytes);
    EXPECT_TRUE(mentions(error_of([&] { open(path); }), name)) << name;
  }
  write(tree, raw_draft());
  tree.remove("x.pack/data-00000.npy");
  EXPECT_EQ(error_of([&] { open(path); })->kind(), ErrorKind::not_found);
}

TEST(Pack, ShardsOfAnotherShapeAreRefused) {
  const Tree tree;
  Draft draft = raw_draft();
  const std::uint64_t shape[] = {4, 1};
  draft.shards[1].replace(0, kPackDataOffset, npy_header(DType::i16, shape));
  EXPECT_TRUE(mentions(error_of_opening(tree, draft), "data-00001.npy is an array of another shape or dtype"));
}

TEST(Pack, TooFewNamesOrColumnsAreRefused) {
  const Tree tree;
  Draft draft = raw_draft();
  draft.names = "a\nb\nc\n";
  EXPECT_TRUE(mentions(error_of_opening(tree, draft), "names.txt has 3 lines for 4 samples"));
  draft = raw_draft();
  draft.pack.columns = {"a"};
  draft.columns = "a\n1\n2\n3\n";
  EXPECT_TRUE(mentions(error_of_opening(tree, draft), "columns.csv has 3 rows for 4 samples"));
  draft.columns = "a\n1\n2\n3,3\n4\n";
  EXPECT_TRUE(mentions(error_of_opening(tree, draft), "columns.csv is not a table of 1 columns"));
}

// Each value of pack.json in turn is replaced by something else: an Error, or a data set; nothing worse.
TEST(Pack, NoValueInPackJsonCrashesTheReader) {
  const Tree tree;
  const std::string path = write(tree, raw_draft());
  const auto sound = Json::parse_or_null(to_json(open_packed(path)->manifest()));
  int refused = 0;
  const std::function<void(const Json&, const std::function<void(Json)>&)> replace_each =
      [&](const Json& value, const std::function<void(Json)>& put) {
        for (const Json& other :
             {Json(nullptr), Json(-1), Json(~std::uint64_t{0}), Json("../x"), Json::array(), Json::object(), Json(1.5)})
          put(other);
        for (std::size_t i = 0; i < value.size(); ++i) {
          replace_each(*(value.begin() + i), [&](Json other) {
            Json whole = value;
            *(whole.begin() + i) = std::move(other);
            put(std::move(whole));
          });
        }
      };
  replace_each(sound, [&](const Json& json) {
    tree.write("x.pack/pack.json", json.dump());
    refused += error_of([&] { open(path); }).has_value();
  });
  EXPECT_GT(refused, 100);
  for (const char* const text : {"", "{", "[]", "null", "{\"schema\":\"stoker-pack\"}"}) {
    tree.write("x.pack/pack.json", text);
    EXPECT_TRUE(error_of([&] { open(path); })) << text;
  }
}

// tests/formats/make_packs.py made these with the first version that wrote packs.
TEST(KeptPack, OfEncodedPicturesIsReadAsItWas) {
  const std::string formats = STOKER_FORMATS_FOLDER;
  const DatasetPtr data = open(formats + "/encoded.pack");
  EXPECT_EQ(names_of(*data), (std::vector<std::string>{"gray/gray.jpg", "rgb/a.b.png", "rgb/yuv420.JPG"}));
  EXPECT_EQ(labels_of(*data), (std::vector<std::int64_t>{0, 1, 1}));
  EXPECT_EQ(data->facts().classes, (std::vector<std::string>{"gray", "rgb"}));
  EXPECT_EQ(data->id(0), (hash_text("gray/gray.jpg") & ~std::uint64_t{0} >> 1)) << "ids are those of the paths";
  const std::vector<std::string> files = {"gray.jpg", "rgb.png", "yuv420.jpg"};
  for (std::uint64_t i = 0; i < files.size(); ++i) {
    const std::vector<std::byte> file = storage::read_file(formats + "/" + files[i]);
    EXPECT_EQ(bytes_of(*data, i), std::string(reinterpret_cast<const char*>(file.data()), file.size()));
  }
  EXPECT_EQ(names_of(*open(formats + "/encoded.pack/data-00000.tar")),
            (std::vector<std::string>{"gray/gray.jpg", "rgb/a_b.png", "rgb/yuv420.jpg"}));
}

TEST(KeptPack, OfRawSoundsIsReadAsItWas) {
  const auto data = open_packed(std::string(STOKER_FORMATS_FOLDER) + "/raw.pack");
  ASSERT_EQ(data->size(), 2u);
  EXPECT_EQ(data->manifest().dtype, DType::i16);
  EXPECT_EQ(data->manifest().shape, (std::vector<std::uint64_t>{2, 60}));
  EXPECT_EQ(data->manifest().rate_hz, 16000u);
  EXPECT_EQ(labels_of(*data), (std::vector<std::int64_t>{0, 1}));
  for (std::uint64_t i = 0; i < 2; ++i) {
    const std::string bytes = bytes_of(*data, i);
    EXPECT_EQ(hash_text(bytes), data->row(i).xxh3);
    EXPECT_EQ(data->row(i).frames, 50u);
    EXPECT_EQ(bytes.substr(100, 20), std::string(20, '\0')) << "padded";
  }
  const std::string first = bytes_of(*data, 0), second = bytes_of(*data, 1);
  std::int16_t a, b;
  std::memcpy(&a, first.data(), 2);
  std::memcpy(&b, second.data(), 2);
  EXPECT_NEAR(a, b, 1) << "the same sound from two files";
}

TEST(Pack, NumpyHeadsBeginTheirDataAt4096) {
  const std::uint64_t shape[] = {51000, 3, 224, 224};
  const std::string header = npy_header(DType::u8, shape);
  EXPECT_EQ(header.size(), kPackDataOffset);
  codec::ArrayInfo info;
  ASSERT_TRUE(codec::probe_npy(std::as_bytes(std::span(header.data(), header.size())), ~std::uint64_t{0}, info).ok());
  EXPECT_EQ(info.data_offset, kPackDataOffset);
  EXPECT_EQ(info.shape[3], 224u);
}

}  // namespace
}  // namespace stoker::dataset
