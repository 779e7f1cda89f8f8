#include "stoker/tune/settings_text.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::tune {
namespace {

const Point kPoint = {{"batch_size", "64"}, {"pin_memory", "true"}, {"precision", "bf16"}};

TEST(SettingsText, KnobsBecomeKeywordArguments) {
  EXPECT_EQ(as_settings(kPoint, SettingsFormat::python), "batch_size=64, pin_memory=True, precision=\"bf16\"\n");
}

TEST(SettingsText, DottedKeysBecomeTheTablesThatTheyAre) {
  const Point point = {{"batch_size", "64"}, {"data.workers", "4"}};
  EXPECT_EQ(as_settings(point, SettingsFormat::yaml), "batch_size: 64\ndata:\n  workers: 4\n");
  EXPECT_EQ(as_settings(point, SettingsFormat::python), "{\"batch_size\": 64, \"data\": {\"workers\": 4}}\n");
}

TEST(SettingsText, TheExtensionTellsTheFormat) {
  EXPECT_EQ(settings_format("a/best.yml"), SettingsFormat::yaml);
  EXPECT_EQ(settings_format("best.py"), SettingsFormat::python);
  EXPECT_THROW(settings_format("best.txt"), Error);
}

}  // namespace
}  // namespace stoker::tune
