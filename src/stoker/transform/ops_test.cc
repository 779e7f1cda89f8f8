#include "stoker/transform/ops.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/random.h"

namespace stoker::transform {
namespace {

template <typename T>
T only(std::string_view text) {
  const Ops ops = parse_ops(text);
  EXPECT_EQ(ops.size(), 1u) << text;
  return std::get<T>(ops.at(0).what);
}

// The refusal's sentence and hint.
template <typename Read>
std::string refusal_of(Read read) {
  try {
    (void)read();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(error.message().find('\n'), std::string::npos);
    return error.message() + " | " + error.hint();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}
std::string refusal(std::string_view text) {
  return refusal_of([&] { return parse_ops(text); });
}
std::string json_refusal(std::string_view json) {
  return refusal_of([&] { return ops_from_json(json); });
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Ops, AreReadFromShortText) {
  const auto crop = only<RandomResizedCrop>("rrc:224x160:scale=0.2..1:ratio=0.75..1.33:filter=bicubic");
  EXPECT_EQ(crop.height, 224u);
  EXPECT_EQ(crop.width, 160u);
  EXPECT_EQ(crop.scale_min, 0.2);
  EXPECT_EQ(crop.scale_max, 1.0);
  EXPECT_EQ(crop.ratio_min, 0.75);
  EXPECT_EQ(crop.ratio_max, 1.33);
  EXPECT_EQ(crop.filter, Filter::bicubic);
  EXPECT_EQ(only<RandomResizedCrop>("rrc:96").width, 96u);
  EXPECT_EQ(only<RandomResizedCrop>("rrc").height, 224u);
  EXPECT_EQ(only<Resize>("resize:256").width, 0u);
  EXPECT_EQ(only<Resize>("resize:10x20").width, 20u);
  EXPECT_EQ(only<CenterCrop>("ccrop:7").width, 7u);
  EXPECT_EQ(only<HorizontalFlip>("flip:p=0.25").p, 0.25);
  EXPECT_EQ(only<PadOrTrim>("pad:8000").frames, 8000u);
  EXPECT_EQ(only<Resample>("resample:22050").hz, 22050u);
  const auto window = only<Window>("window:level=-700..100:width=1500:offset=32768");
  EXPECT_EQ(window.level_min, -700);
  EXPECT_EQ(window.level_max, 100);
  EXPECT_EQ(window.width_min, 1500);
  EXPECT_EQ(window.width_max, 1500);
  EXPECT_EQ(window.offset, 32768.0);
  EXPECT_EQ(only<Window>("window:-600:1500").width_max, 1500);
  EXPECT_FALSE(only<Window>("window").offset.has_value());
}

TEST(Ops, NormalizeTakesAPresetOrFiguresWithoutCommas) {
  EXPECT_EQ(only<Normalize>("normalize:imagenet").mean, (std::vector<float>{0.485F, 0.456F, 0.406F}));
  EXPECT_EQ(only<Normalize>("normalize:0.5/0.25").std, (std::vector<float>{0.25F}));
  EXPECT_EQ(only<Normalize>("normalize:1e+1+-2+3/4+5+6").mean, (std::vector<float>{10, -2, 3}));
}

TEST(Ops, HaveTheNamesOfPythonAndShortOnes) {
  EXPECT_EQ(to_text(parse_ops("RandomResizedCrop:8, HorizontalFlip, Normalize:imagenet")),
            "rrc:8,flip,normalize:imagenet");
  EXPECT_EQ(to_text(parse_ops("hflip,CenterCrop:9,ToFloat")), "flip,centercrop:9,tofloat");
  EXPECT_EQ(to_text(parse_ops("Mono,Resample:8000,PadOrTrim:5")), "mono,resample:8000,pad:5");
  EXPECT_TRUE(parse_ops("").empty());
}

TEST(Ops, ViewsHoldListsOfTheirOwn) {
  const auto views = only<Views>("views(big=2[rrc:224,flip],small=8[rrc:96,flip:0.1])");
  ASSERT_EQ(views.groups.size(), 2u);
  EXPECT_EQ(views.groups[0].name, "big");
  EXPECT_EQ(views.groups[1].count, 8u);
  EXPECT_EQ(to_text(views.groups[1].ops), "rrc:96,flip:0.1");
}

TEST(Ops, AnUnknownNameOffersTheNearest) {
  EXPECT_TRUE(has(refusal("rcc:224"), "did you mean `rrc`"));
  EXPECT_TRUE(has(refusal("normalise:imagenet"), "did you mean `normalize`"));
  EXPECT_TRUE(has(refusal("RandomResizeCrop"), "did you mean `randomresizedcrop`"));
  EXPECT_TRUE(has(refusal("quaternion"), "known are rrc, resize"));
}

TEST(Ops, AWrongArgumentShowsTheRightForm) {
  EXPECT_TRUE(has(refusal("rrc:big"), "`big` is not a size"));
  EXPECT_TRUE(has(refusal("rrc:big"), "for example `rrc:224"));
  EXPECT_TRUE(has(refusal("rrc:224x0"), "is not a size"));
  EXPECT_TRUE(has(refusal("rrc:0"), "not between 1 and"));
  EXPECT_TRUE(has(refusal("rrc:224:scale=1..0.2"), "does not go from low to high"));
  EXPECT_TRUE(has(refusal("rrc:224:scale=0..1"), "not a share of the area"));
  EXPECT_TRUE(has(refusal("rrc:224:scal=0.1..1"), "`scal` is not one of its arguments (size, scale, ratio, filter)"));
  EXPECT_TRUE(has(refusal("rrc:224:filter=hamming"), "none of bilinear, bicubic, nearest, box, lanczos"));
  EXPECT_TRUE(has(refusal("rrc:224:"), "is empty"));
  EXPECT_TRUE(has(refusal("flip:2"), "not between 0 and 1"));
  EXPECT_TRUE(has(refusal("flip:nan"), "not a number"));
  EXPECT_TRUE(has(refusal("mono:3"), "takes no argument"));
  EXPECT_TRUE(has(refusal("normalize"), "missing"));
  EXPECT_TRUE(has(refusal("normalize:0.5"), "neither `imagenet` nor MEAN/STD"));
  EXPECT_TRUE(has(refusal("normalize:0.5/0"), "not above 0"));
  EXPECT_TRUE(has(refusal("normalize:1+2/1"), "2 means and 1 stds"));
  EXPECT_TRUE(has(refusal("window:width=0"), "not above 0"));
  EXPECT_TRUE(has(refusal("pad:0"), "not between 1"));
  EXPECT_TRUE(has(refusal("pad:-3"), "frames = -3 is below 0"));
  EXPECT_TRUE(has(refusal("pad:3.5"), "not a whole number"));
  EXPECT_TRUE(has(refusal("mixup:0.2:-3"), "num_classes = -3 is below 0"));
  EXPECT_TRUE(has(refusal("mixup:0.2:99999999999"), "num_classes = 99999999999 is too large"));
  EXPECT_TRUE(has(refusal("random_rotation:15:box"), "interpolation `box` is none of bilinear, bicubic, nearest"));
  EXPECT_FALSE(has(refusal("random_rotation:15:box"), "nearest, box"));
  EXPECT_TRUE(has(refusal("rrc:224,,flip"), "is empty"));
  EXPECT_TRUE(has(refusal("views(big=2[rrc:224)"), "closes nothing"));
  EXPECT_TRUE(has(refusal("views(big=2[rrc:224]"), "is missing"));
  EXPECT_TRUE(has(refusal("views(big[rrc:224])"), "name=count[operations]"));
  EXPECT_TRUE(has(refusal("views(a=1[flip],a=2[flip])"), "given twice"));
  EXPECT_TRUE(has(refusal("views(a=0[flip])"), "0 views"));
  EXPECT_TRUE(has(refusal("views(a=1[views(b=1[flip])])"), "inside another Views"));
  EXPECT_TRUE(has(refusal("views"), "groups are missing"));
}

TEST(Ops, ThatLieTooDeepAreRefusedBeforeTheyAreRead) {
  const auto nested = [](std::size_t depth) {
    std::string text, json;
    for (std::size_t i = 0; i < depth; ++i) {
      text += "random_apply[";
      json += R"([{"op": "RandomApply", "transforms": )";
    }
    text += "invert" + std::string(depth, ']');
    json += R"([{"op": "RandomInvert"}])";
    for (std::size_t i = 0; i < depth; ++i) json += "}]";
    return std::pair(text, json);
  };
  const auto [text, json] = nested(16);
  EXPECT_EQ(to_text(parse_ops(text)), text);
  EXPECT_EQ(to_text(ops_from_json(json)), text);
  EXPECT_TRUE(has(refusal(nested(17).first), "operations lie in more than 16 others"));
  EXPECT_TRUE(has(refusal(nested(100'000).first), "operations lie in more than 16 others"));
  EXPECT_THROW(ops_from_json(nested(17).second), Error);
  EXPECT_LT(refusal(std::string(100'000, '[')).size(), 400u);
}

TEST(Ops, AugMixHasTorchvisionsArguments) {
  const auto op = only<AugMix>("augmix:5:4:2:0.5:all_ops=false:interpolation=nearest:fill=9");
  EXPECT_EQ(op.severity, 5u);
  EXPECT_EQ(op.mixture_width, 4u);
  EXPECT_EQ(op.chain_depth, 2);
  EXPECT_EQ(op.alpha, 0.5);
  EXPECT_FALSE(op.all_ops);
  EXPECT_EQ(only<AugMix>("augmix").chain_depth, -1);
  EXPECT_TRUE(has(refusal("augmix:11"), "severity = 11 is not between 1 and 10"));
  EXPECT_TRUE(has(refusal("augmix:chain_depth=1.5"), "chain_depth = 1.5 is not a whole number"));
  EXPECT_TRUE(has(refusal("augmix:alpha=0"), "alpha = 0 is not between"));
}

TEST(Ops, TextsOfTimmAreRead) {
  const TimmConfig config = only<TimmRandAugment>("timm_randaug:rand-m9-mstd0.5-inc1").config;
  EXPECT_EQ(config.magnitude, 9u);
  EXPECT_EQ(config.magnitude_std, 0.5);
  EXPECT_TRUE(config.is_increasing);
  EXPECT_EQ(config.num_ops, 2u);
  EXPECT_EQ(config.p, 0.5);
  EXPECT_EQ(only<TimmRandAugment>("timm_randaug:rand").config.magnitude, 10u);
  EXPECT_FALSE(only<TimmRandAugment>("timm_randaug:rand-m9-inc0").config.is_increasing);
  EXPECT_EQ(only<TimmRandAugment>("timm_randaug:rand-mmax0").config.most, 10u);  // as timm reads it
  for (const char* const text :
       {"timm_randaug:rand-m9-mstd0.5-inc1", "timm_randaug:rand-m7-n3-p0.8-mmax15:bicubic:1+2+3",
        "timm_randaug:rand-m20-mstd101-mmax30", "timm_randaug"}) {
    EXPECT_EQ(to_text(parse_ops(text)), text);
  }
  EXPECT_EQ(to_text(parse_ops("timm_randaug:rand-mstd999999-m5")), "timm_randaug:rand-m5-mstd101");
  EXPECT_EQ(to_text(parse_ops("timm_randaug:rand-mstd0.00000001")), "timm_randaug:rand-m10-mstd0.00000001");
  EXPECT_EQ(to_text(ops_from_json(R"([{"op": "TimmRandAugment", "config": "rand-m9-n1", "fill": [9]}])")),
            "timm_randaug:rand-m9-n1:fill=9");
}

TEST(Ops, TextsOfTimmAreRefusedByTheirPart) {
  const auto fault = [](const std::string& text) { return refusal("timm_randaug:" + text); };
  EXPECT_TRUE(has(fault("rand-m9-w0"), "`w0` of `rand-m9-w0` is none of m, n, p, mstd, mmax, inc"));
  EXPECT_TRUE(has(fault("rand-m"), "`m` of `rand-m` is not a word and a number, such as m9"));
  EXPECT_TRUE(has(fault("rand-m9-"), "not a word and a number"));
  EXPECT_TRUE(has(fault("rand-m9-inc"), "`inc` of"));
  EXPECT_TRUE(has(fault("rand-m9.5"), "not a whole one"));
  EXPECT_TRUE(has(fault("rand-n65"), "from 0 to 64"));
  EXPECT_TRUE(has(fault("rand-p2"), "p = 2 is not between 0 and 1"));
  EXPECT_TRUE(has(fault("rand-m9-m8"), "`m` is given twice"));
  EXPECT_TRUE(has(fault("rand-m9-t3b"), "`t3b` of `rand-m9-t3b` is none of the sets tweights, t3a, t3aw"));
  EXPECT_TRUE(has(fault("original-mstd0.5"), "starts with rand-"));
  EXPECT_TRUE(has(fault("9"), "for example `timm_randaug:rand-m9-mstd0.5-inc1`"));
  EXPECT_TRUE(has(fault("rand-m9:interpolation=box"), "none of random, bilinear, bicubic, nearest"));
  EXPECT_TRUE(has(json_refusal(R"([{"op": "TimmRandAugment", "config": 9}])"), "config = 9 is not a text"));
}

TEST(Ops, AreReadFromJson) {
  const Ops ops = ops_from_json(R"([
      {"op": "RandomResizedCrop", "height": 96, "width": 64.0, "scale_min": 0.3, "filter": "box"},
      {"op": "HorizontalFlip", "p": 1}, {"op": "Normalize", "preset": "imagenet"}, {"op": "Normalize", "mean": 0.5, "std": [0.25]},
      {"op": "Views", "groups": [{"name": "a", "count": 2, "ops": [{"op": "Window", "offset": null}]}]}])");
  EXPECT_EQ(to_text(ops),
            "rrc:96x64:scale=0.3..1:filter=box,flip:1,normalize:imagenet,normalize:0.5/0.25,"
            "views(a=2[window:level=-700..100:width=300..2000])");
}

TEST(Ops, FromJsonRefuseWhatTheyDoNotKnow) {
  EXPECT_TRUE(has(json_refusal("{"), "not valid JSON"));
  EXPECT_TRUE(has(json_refusal("{}"), "not a list"));
  EXPECT_TRUE(has(json_refusal(R"([{"height": 3}])"), "\"op\""));
  EXPECT_TRUE(has(json_refusal(R"([{"op": "Resise"}])"), "did you mean `resize`"));
  EXPECT_TRUE(has(json_refusal(R"([{"op": "Resize", "heigth": 3}])"), "did you mean `height`"));
  EXPECT_TRUE(has(json_refusal(R"([{"op": "Resize", "height": -3}])"), "not a whole number"));
  EXPECT_TRUE(has(json_refusal(R"([{"op": "Resize", "height": 4294967297}])"), "in range"));
  EXPECT_TRUE(has(json_refusal(R"([{"op": "Resize", "filter": 1}])"), "none of bilinear"));
  EXPECT_TRUE(has(json_refusal(R"([{"op": "Normalize", "mean": [1]}])"), "std is missing"));
  EXPECT_TRUE(has(json_refusal(R"([{"op": "Normalize", "mean": ["a"], "std": [1]}])"), "not a list of numbers"));
  EXPECT_TRUE(has(json_refusal(R"([{"op": "Views", "groups": [{"count": 1}]}])"), "no name"));
}

Op draw_op(Random& random, bool inside) {
  const auto size = [&] { return 1 + random.below(500); };
  const auto filter = [&] { return static_cast<Filter>(random.below(4)); };
  switch (random.below(inside ? 10 : 11)) {
    case 0:
      return {RandomResizedCrop{size(), size(), random.uniform(1e-9, 0.5), random.uniform(0.5, 1),
                                random.uniform(0.1, 1), random.uniform(1, 9), filter()}};
    case 1:
      return {Resize{size(), random.below(2) * size(), filter()}};
    case 2:
      return {CenterCrop{size(), size()}};
    case 3:
      return {HorizontalFlip{random.uniform()}};
    case 4: {
      Normalize op;
      for (std::uint32_t i = random.below(4); i < 4; ++i) {
        op.mean.push_back(static_cast<float>(random.uniform(-1, 1) * std::pow(10.0, random.uniform(-20, 20))));
        op.std.push_back(static_cast<float>(random.uniform(1e-3, 1) * std::pow(10.0, random.uniform(-20, 20))));
      }
      return {op};
    }
    case 5:
      return {ToFloat{}};
    case 6: {
      Window op{random.uniform(-2000, 0), random.uniform(0, 1e7), random.uniform(1e-7, 1), random.uniform(1, 5000), {}};
      if (random.below(2) == 1) op.offset = random.uniform(-1e6, 1e6);
      return {op};
    }
    case 7:
      return {PadOrTrim{1 + random.below(1u << 31)}};
    case 8:
      return {Resample{1 + random.below(200000)}};
    case 9:
      return {Mono{}};
    default:
      break;
  }
  Views views;
  for (std::uint32_t g = 0; g <= random.below(3); ++g) {
    views.groups.push_back({std::string(1, static_cast<char>('a' + g)), 1 + random.below(9), {}});
    for (std::uint32_t i = random.below(4); i > 0; --i) views.groups.back().ops.push_back(draw_op(random, true));
  }
  return {views};
}

bool same(const Ops& a, const Ops& b);
bool same(const Op& a, const Op& b) {
  if (a.what.index() != b.what.index()) return false;
  if (const auto* x = std::get_if<RandomResizedCrop>(&a.what)) {
    const auto& y = std::get<RandomResizedCrop>(b.what);
    return x->height == y.height && x->width == y.width && x->scale_min == y.scale_min && x->scale_max == y.scale_max &&
           x->ratio_min == y.ratio_min && x->ratio_max == y.ratio_max && x->filter == y.filter;
  }
  if (const auto* x = std::get_if<Resize>(&a.what)) {
    const auto& y = std::get<Resize>(b.what);
    return x->height == y.height && x->width == y.width && x->filter == y.filter;
  }
  if (const auto* x = std::get_if<CenterCrop>(&a.what)) {
    return x->height == std::get<CenterCrop>(b.what).height && x->width == std::get<CenterCrop>(b.what).width;
  }
  if (const auto* x = std::get_if<HorizontalFlip>(&a.what)) return x->p == std::get<HorizontalFlip>(b.what).p;
  if (const auto* x = std::get_if<Normalize>(&a.what)) {
    return x->mean == std::get<Normalize>(b.what).mean && x->std == std::get<Normalize>(b.what).std;
  }
  if (const auto* x = std::get_if<Window>(&a.what)) {
    const auto& y = std::get<Window>(b.what);
    return x->level_min == y.level_min && x->level_max == y.level_max && x->width_min == y.width_min &&
           x->width_max == y.width_max && x->offset == y.offset;
  }
  if (const auto* x = std::get_if<PadOrTrim>(&a.what)) return x->frames == std::get<PadOrTrim>(b.what).frames;
  if (const auto* x = std::get_if<Resample>(&a.what)) return x->hz == std::get<Resample>(b.what).hz;
  if (const auto* x = std::get_if<Views>(&a.what)) {
    const auto& y = std::get<Views>(b.what);
    if (x->groups.size() != y.groups.size()) return false;
    for (std::size_t i = 0; i < y.groups.size(); ++i) {
      if (x->groups[i].name != y.groups[i].name || x->groups[i].count != y.groups[i].count) return false;
      if (!same(x->groups[i].ops, y.groups[i].ops)) return false;
    }
  }
  return true;
}
bool same(const Ops& a, const Ops& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i])) return false;
  }
  return true;
}

TEST(Ops, AnyListComesBackFromItsText) {
  for (std::uint32_t i = 0; i < 2000; ++i) {
    Random random(5, 0, i);
    Ops ops;
    for (std::uint32_t n = random.below(5); n > 0; --n) ops.push_back(draw_op(random, false));
    const std::string text = to_text(ops);
    ASSERT_TRUE(same(parse_ops(text), ops)) << text;
  }
}

TEST(Ops, DamagedTextIsReadOrRefusedAndNothingElse) {
  const std::string lists[] = {"views(big=2[rrc:224x160:scale=0.2..1:filter=box,flip:0.5],small=8[resize:96])",
                               "rrc:64,normalize:0.5+1e-3/0.2+1,window:-7..1:3,pad:8,resample:16000,flip:p=0.25"};
  const std::string_view letters = ",:=.()[]x+/-e059 abn";
  std::uint32_t read = 0;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    Random random(9, 0, i);
    std::string text = lists[i % 2];
    for (std::uint32_t n = random.below(4); n > 0 && !text.empty(); --n) {
      const std::uint32_t at = random.below(static_cast<std::uint32_t>(text.size()));
      if (random.below(2) == 0) {
        text.erase(at, 1 + random.below(5));
      } else {
        text[at] = letters[random.below(static_cast<std::uint32_t>(letters.size()))];
      }
    }
    try {
      const Ops ops = parse_ops(text);
      ASSERT_TRUE(same(parse_ops(to_text(ops)), ops)) << text;
      ++read;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::usage) << text;
    }
  }
  EXPECT_GT(read, 100u);
}

TEST(Ops, TheHelpShowsExamplesThatAreRead) {
  const std::string help = ops_help();
  std::size_t from = 0, examples = 0;
  while (from < help.size()) {
    const std::size_t end = help.find('\n', from);
    const std::string line = help.substr(from, end - from);
    if (line.rfind("      ", 0) != 0) {
      EXPECT_EQ(parse_ops(line.substr(2)).size(), 1u) << line;
      ++examples;
    }
    from = end + 1;
  }
  EXPECT_EQ(examples, 58u);
}

}  // namespace
}  // namespace stoker::transform
