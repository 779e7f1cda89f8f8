#include "stoker/base/text.h"

#include <gtest/gtest.h>

#include "stoker/base/format_text.h"

namespace stoker {
namespace {

std::string in_flags(const Text& text) {
  return text.in_flags([](std::string_view) { return true; });
}

TEST(Text, EachFaceSpellsTheSameOption) {
  const Text text = format_text("raise {} to {}, or lower {}", option("memory_limit"), "4GB", option("batch_size"));
  EXPECT_EQ(text.in_python(), "raise memory_limit to 4GB, or lower batch_size");
  EXPECT_EQ(in_flags(text), "raise --memory-limit to 4GB, or lower --batch-size");
}

TEST(Text, ValuesAreQuotedInPythonOnly) {
  const Text text = format_text("use {}", option("on_error", {"skip", "replace", "zero"}));
  EXPECT_EQ(text.in_python(), "use on_error=\"skip\", \"replace\" or \"zero\"");
  EXPECT_EQ(in_flags(text), "use --on-error skip, replace or zero");
  EXPECT_EQ(format_text("{}", option("num_workers", "4")).in_python(), "num_workers=4");
  EXPECT_EQ(format_text("{}", option("memory_limit", "68MiB")).in_python(), "memory_limit=\"68MiB\"");
}

TEST(Text, ASwitchIsSpelledAsTheCommandLineReadsIt) {
  EXPECT_EQ(in_flags(format_text("{}", option("exif_orientation", "True"))), "--exif-orientation");
  EXPECT_EQ(in_flags(format_text("{}", option("shuffle", "blocks"))), "--shuffle=blocks");
  EXPECT_EQ(in_flags(format_text("{}", option("color", {"rgb", "gray"}))), "--image-color rgb or gray");
}

TEST(Text, AnOptionThatTheVerbLacksIsSpelledAsInPython) {
  const Text text = format_text("{} or {}", option("copy", "True"), option("memory_limit"));
  EXPECT_EQ(text.in_flags([](std::string_view name) { return name == "memory_limit"; }), "copy=True or --memory-limit");
}

TEST(Text, ATextInsideAnotherKeepsItsOptions) {
  const Text cause = format_text("no room: raise {}", option("memory_limit"));
  EXPECT_EQ(in_flags(format_text("cannot read `{}`: {}", "a.jpg", cause)),
            "cannot read `a.jpg`: no room: raise --memory-limit");
}

TEST(Text, AFileNameCannotForgeAnOption) {
  const std::string name = "\x01memory_limit\x03";
  EXPECT_EQ(in_flags(format_text("cannot open `{}`", name)), "cannot open `\\x01memory_limit\\x03`");
  EXPECT_EQ(in_flags(Text(name)), "\\x01memory_limit\\x03");
  EXPECT_EQ(in_flags(format_text("{}", option("label", name))), "--label \\x01memory_limit\\x03");
}

TEST(Text, WordsThatLookLikeOptionsStayAsTheyAre) {
  EXPECT_EQ(in_flags(Text("cannot open `batch_size=4.csv`")), "cannot open `batch_size=4.csv`");
}

}  // namespace
}  // namespace stoker
