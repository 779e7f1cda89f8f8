// A source whose files change in place while their size and modification time stay the same: the pack, an interrupted
// packing and a repair notice it.
#include "stoker/prepare/source_times.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/os/fault.h"
#include "stoker/prepare/check.h"
#include "stoker/prepare/pack.h"

namespace stoker::prepare {
namespace {

namespace fs = std::filesystem;

constexpr int kSounds = 10;
constexpr std::uint32_t kFrames = 5'000;

// For raw and encoded packs.
class ChangedSource : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    for (int i = 0; i < kSounds; ++i) folder_.write(name_of(i), loader::wav(kFrames, static_cast<std::int16_t>(i)));
  }
  static std::string name_of(int number) {
    return fmt::format("data/{}/{:02}.wav", number < 5 ? "cat" : "dog", number);
  }

  PackOptions options() const {
    PackOptions options;
    options.source = folder_.path("data");
    options.destination = folder_.path("x.pack");
    if (GetParam()) options.samples = kFrames;
    options.shard_size = kMiB;
    options.cache_dir = folder_.path("cache");
    options.now_ns = [] { return std::numeric_limits<std::int64_t>::max(); };  // all files count as settled
    return options;
  }
  void change_in_place(int number, std::int16_t value) const {
    const std::string path = folder_.path(name_of(number));
    const auto time = fs::last_write_time(path);
    const auto size = fs::file_size(path);
    folder_.write(name_of(number), loader::wav(kFrames, value));
    fs::last_write_time(path, time);
    ASSERT_EQ(fs::file_size(path), size);
  }
  // The value of each sound in the pack.
  std::vector<int> values() const {
    const auto data = loader::open_uncached(folder_.path("x.pack"));
    loader::LoaderOptions loading = loader::batches_of(1);
    loading.output.dtype = DType::i16;
    std::vector<int> values;
    for (const loader::Taken& taken : loader::epoch_of(data, loading)) {
      std::int16_t value;
      std::memcpy(&value, taken.rows[0].data(), 2);
      values.push_back(value);
    }
    return values;
  }
  void for_all_cached(const std::function<void(const fs::path&)>& use) const {
    for (const auto& entry : fs::directory_iterator(folder_.path("cache"))) {
      if (entry.path().filename().string().starts_with("packed-")) use(entry.path());
    }
  }

  loader::Folder folder_;
};

TEST_P(ChangedSource, IsPackedAgainWhereItChanged) {
  make_pack(options());
  change_in_place(3, 300);

  const PackReport report = make_pack(options());

  EXPECT_EQ(report.changed, 1u);
  EXPECT_EQ(report.kept, 9u);
  EXPECT_EQ(report.compared, 1u) << "the others have the time that they had";
  EXPECT_EQ(values(), (std::vector<int>{0, 1, 2, 300, 4, 5, 6, 7, 8, 9}));
}

TEST_P(ChangedSource, IsNotReadWhereItsTimesSayThatItDidNotChange) {
  make_pack(options());
  for (int again = 0; again < 2; ++again) {
    const PackReport report = make_pack(options());
    EXPECT_TRUE(report.idle);
    EXPECT_EQ(report.compared, 0u);
  }
}

TEST_P(ChangedSource, IsComparedOnceWhereNothingIsKnownOfItsTimes) {
  make_pack(options());
  const std::vector<std::function<void()>> losses = {
      [&] { fs::remove_all(folder_.path("cache")); },
      [&] { for_all_cached([](const fs::path& path) { fs::resize_file(path, 60); }); },
      [&] {
        for_all_cached([](const fs::path& path) {
          std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
          file.seekp(50).put('\x55');
        });
      },
  };
  for (const auto& lose : losses) {
    lose();
    PackReport report = make_pack(options());
    EXPECT_TRUE(report.idle);
    EXPECT_EQ(report.compared, 10u);
    report = make_pack(options());
    EXPECT_TRUE(report.idle);
    EXPECT_EQ(report.compared, 0u);
  }
  fs::permissions(folder_.path(name_of(4)), fs::perms::owner_read);
  EXPECT_EQ(make_pack(options()).compared, 1u) << "of this one something changed, if not its content";
  EXPECT_EQ(make_pack(options()).compared, 0u);
}

TEST_P(ChangedSource, IsComparedWhereItChangedJustBeforeItWasPacked) {
  PackOptions now = options();
  now.now_ns = nullptr;
  make_pack(now);
  const PackReport report = make_pack(options());
  EXPECT_TRUE(report.idle);
  EXPECT_EQ(report.compared, 10u);
}

TEST_P(ChangedSource, IsTakenForUnchangedIfTimesAreTrusted) {
  make_pack(options());
  change_in_place(3, 300);
  PackOptions trusting = options();
  trusting.trust_times = true;
  const PackReport report = make_pack(trusting);
  EXPECT_TRUE(report.idle);
  EXPECT_EQ(report.compared, 0u);
  EXPECT_EQ(make_pack(options()).changed, 1u) << "what was trusted is not taken for seen";
}

TEST_P(ChangedSource, IsPackedFromTheStartIfItChangedWhileThePackingWasInterrupted) {
  PackOptions often = options();
  often.sync_bytes = 15'000;
  for (const bool changes : {false, true}) {
    fs::remove_all(often.destination);
    {
      const os::InjectFault full(os::Call::write, {.error_number = ENOSPC, .skip = 8, .times = 1'000'000});
      EXPECT_THROW(make_pack(often), Error);
    }
    if (changes) change_in_place(0, 100);
    EXPECT_EQ(make_pack(often).resumed > 0, !changes);
    EXPECT_EQ(values(), (std::vector<int>{changes ? 100 : 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }
}

TEST_P(ChangedSource, DoesNotRepairAPackOfItsOldContent) {
  make_pack(options());
  const auto row = dataset::open_packed(folder_.path("x.pack"))->row(3);
  for (const bool changed : {true, false}) {
    {
      const std::string shard = folder_.path(GetParam() ? "x.pack/data-00000.npy" : "x.pack/data-00000.tar");
      std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(row.offset + 2'000)).put('\x55');
    }
    change_in_place(3, changed ? 300 : 3);
    CheckOptions checking;
    checking.address = folder_.path("x.pack");
    checking.repair = true;

    const CheckReport report = check(checking);

    ASSERT_EQ(report.damaged.size(), 1u);
    EXPECT_EQ(report.damaged[0].repaired, !changed);
    if (changed) {
      EXPECT_NE(report.damaged[0].not_repaired.find("another content now"), std::string::npos)
          << report.damaged[0].not_repaired;
    }
  }
  EXPECT_EQ(values(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

INSTANTIATE_TEST_SUITE_P(Kinds, ChangedSource, testing::Bool(),
                         [](const auto& about) { return about.param ? "raw" : "encoded"; });

}  // namespace
}  // namespace stoker::prepare
