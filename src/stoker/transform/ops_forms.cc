#include "stoker/transform/ops_forms.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/transform/ops_check.h"

namespace stoker::transform {

constinit const std::array<Form, std::variant_size_v<decltype(Op::what)>> kForms = {{
    {"RandomResizedCrop",
     "rrc",
     {"randomresizedcrop", ""},
     "rrc:224:scale=0.2..1:ratio=0.75..1.33:filter=bicubic",
     "random area and aspect, resized to 224x224 (rrc:HxW for another shape)"},
    {"Resize",
     "resize",
     {"", ""},
     "resize:256:filter=bilinear",
     "shorter side becomes 256 (resize:HxW for both); filters: bilinear, bicubic, nearest, box"},
    {"CenterCrop", "centercrop", {"ccrop", ""}, "centercrop:224", "the middle 224x224 (centercrop:HxW)"},
    {"HorizontalFlip", "flip", {"horizontalflip", "hflip"}, "flip:0.5", "mirrored with probability 0.5"},
    {"Normalize",
     "normalize",
     {"", ""},
     "normalize:imagenet",
     "(x/255 - mean) / std; own figures: normalize:0.5/0.5 or normalize:0.485+0.456+0.406/0.229+0.224+0.225"},
    {"ToFloat", "tofloat", {"", ""}, "tofloat", "float32 in [0, 1]"},
    {"Window",
     "window",
     {"", ""},
     "window:level=-700..100:width=300..2000:offset=32768",
     "16-bit slices: a random or fixed (level=40) window becomes [0, 1]"},
    {"PadOrTrim", "pad", {"padortrim", ""}, "pad:8000", "audio: exactly 8000 frames, from the start"},
    {"Resample", "resample", {"", ""}, "resample:16000", "audio: to 16000 Hz"},
    {"Mono", "mono", {"", ""}, "mono", "audio: mean of the channels"},
    {"Views",
     "views",
     {"", ""},
     "views(big=2[rrc:224,flip],small=8[rrc:96,flip])",
     "one decode, many views: name=count[operations]"},
}};

void refuse(const std::string& message, const std::string& hint) {
  throw Error(ErrorKind::usage, message, hint).about("transform");
}

void refuse_argument(const Form& form, std::string_view cause) {
  refuse(fmt::format("cannot use transform `{}`: {}", form.full, cause), fmt::format("for example `{}`", form.example));
}

std::size_t find_form(std::string_view name) {
  const std::string word = to_lower(name);
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < kForms.size(); ++i) {
    const Form& form = kForms[i];
    if (word == form.text || word == form.aliases[0] || word == form.aliases[1] || name == form.full) {
      if (!word.empty()) return i;
    }
    known.push_back(form.text);
    for (const std::string_view alias : form.aliases) {
      if (!alias.empty()) known.push_back(alias);
    }
  }
  if (word.empty()) {
    refuse("cannot read the transform: an operation between commas is empty",
           "for example `rrc:224,flip,normalize:imagenet`");
  }
  const std::string near = nearest(word, known.data(), known.size());
  if (near.empty()) {
    std::string names;
    for (const Form& form : kForms) names += fmt::format("{}{}", names.empty() ? "" : ", ", form.text);
    refuse(fmt::format("unknown transform `{}`", name), fmt::format("known are {}", names));
  }
  refuse(fmt::format("unknown transform `{}`: did you mean `{}`?", name, near),
         fmt::format("for example `{}`", kForms[find_form(near)].example));
}

Normalize imagenet() {
  return {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
}

std::string_view name(Filter filter) noexcept {
  return kFilters[static_cast<std::size_t>(filter)];
}

std::string_view name(const Op& op) noexcept {
  return kForms[op.what.index()].full;
}

std::string ops_help() {
  std::string text;
  for (const Form& form : kForms) {
    text += fmt::format("  {}\n      {}: {}\n", form.example, form.full, form.meaning);
  }
  return text;
}

}  // namespace stoker::transform
