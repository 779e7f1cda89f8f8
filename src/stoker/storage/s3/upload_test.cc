#include "stoker/storage/s3/upload.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/storage/interruption.h"
#include "stoker/storage/s3/store_test.h"

namespace stoker::storage::s3 {
namespace {

constexpr std::size_t kPart = 16 << 20;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string patterned_text(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 13 + i / 4099);
  return text;
}

std::size_t count_of(const S3Store& store, std::string_view method) {
  std::size_t count = 0;
  for (const S3Store::Seen& seen : store.seen()) count += seen.method == method;
  return count;
}

struct Written : testing::Test {
  Written() { store.put("bucket/there", "x"); }  // so that the bucket exists
  std::unique_ptr<ObjectWriter> create(const std::string& key) { return store.backend().create("bucket/" + key); }

  S3Store store;
};

using S3Upload = Written;

TEST_F(S3Upload, SmallObjectsAreOneRequest) {
  const auto writer = create("a b/ü.bin");
  writer->write(bytes_of("hello "));
  writer->write(bytes_of("world"));
  EXPECT_FALSE(store.bytes_of("bucket/a b/ü.bin"));
  writer->finish();
  EXPECT_EQ(store.bytes_of("bucket/a b/ü.bin"), "hello world");
  EXPECT_EQ(count_of(store, "PUT"), 1u);
  EXPECT_EQ(count_of(store, "POST"), 0u);
  create("empty")->finish();
  EXPECT_EQ(store.bytes_of("bucket/empty"), "");
}

TEST_F(S3Upload, SignsTheHashOfTheBody) {
  const auto writer = create("x");
  writer->write(bytes_of("abc"));
  writer->finish();
  EXPECT_EQ(store.seen().back().body_hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(S3Upload, LargeObjectsGoInPartsAndAppearWhole) {
  const std::string text = patterned_text(2 * kPart + 12345);
  const auto writer = create("large");
  writer->write(bytes_of(text));
  EXPECT_FALSE(store.bytes_of("bucket/large"));
  writer->finish();
  EXPECT_TRUE(store.bytes_of("bucket/large") == text);
  EXPECT_EQ(count_of(store, "PUT"), 3u);
  EXPECT_EQ(store.open_uploads(), 0u);
}

TEST_F(S3Upload, LeavesNothingWhenItIsDropped) {
  {
    const auto writer = create("dropped");
    writer->write(bytes_of(patterned_text(kPart + 1)));
  }
  EXPECT_FALSE(store.bytes_of("bucket/dropped"));
  EXPECT_EQ(store.open_uploads(), 0u);
  EXPECT_EQ(count_of(store, "DELETE"), 1u);
}

TEST_F(S3Upload, LeavesNothingWhenItIsInterruptedWhileItBegins) {
  store.set_latency(std::chrono::milliseconds(300));
  Interruption interruption([&] { return count_of(store, "POST") > 0; });  // it is there, and has no answer yet
  {
    const InterruptionScope scope(&interruption);
    const auto writer = create("stopped");
    const auto write_all = [&] {
      writer->write(bytes_of(patterned_text(kPart + 1)));
      writer->finish();
    };
    EXPECT_THROW(write_all(), Error);
  }
  EXPECT_EQ(store.open_uploads(), 0u);
  EXPECT_EQ(count_of(store, "DELETE"), 1u);
}

TEST_F(S3Upload, TriesAPartAgain) {
  const auto writer = create("busy");
  store.fail("bucket/busy", {.status = 503, .code = "SlowDown"}, 2);
  writer->write(bytes_of(patterned_text(kPart + 1)));
  writer->finish();
  EXPECT_TRUE(store.bytes_of("bucket/busy") == patterned_text(kPart + 1));
}

TEST_F(S3Upload, KnowsThatItIsDoneWhereTheLastAnswerWasLost) {
  const std::string text = patterned_text(kPart + 1);
  store.fail("bucket/lost", {}, 3);  // the beginning and two parts go well
  store.fail("bucket/lost", {.reset = true});
  const auto writer = create("lost");
  writer->write(bytes_of(text));
  writer->finish();
  EXPECT_TRUE(store.bytes_of("bucket/lost") == text);
}

TEST_F(S3Upload, SaysWhatIsRefusedAndWhichPermissionIsMissing) {
  const auto writer = create("refused");
  store.fail("bucket/refused", {.status = 403, .code = "AccessDenied"}, 1);
  writer->write(bytes_of("x"));
  try {
    writer->finish();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("cannot write `s3://bucket/refused`: HTTP status 403"), std::string::npos);
    EXPECT_NE(error.hint().find("s3:PutObject"), std::string::npos);
  }
}

TEST_F(S3Upload, RemovesObjectsAlsoThoseThatAreNotThere) {
  store.backend().remove("bucket/there");
  EXPECT_FALSE(store.bytes_of("bucket/there"));
  EXPECT_NO_THROW(store.backend().remove("bucket/there"));
}

}  // namespace
}  // namespace stoker::storage::s3
