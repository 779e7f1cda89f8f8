// How each operation is spelled: its name in Python and in the short text, with an example. Private to the ops*.cc
// files.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "stoker/transform/ops.h"

namespace stoker::transform {

struct Form {
  std::string_view full, text;  // as in Python; as to_text writes it
  std::array<std::string_view, 2> aliases;
  std::string_view example, meaning;
};

// In the order of Op's variant.
extern const std::array<Form, std::variant_size_v<decltype(Op::what)>> kForms;

inline constexpr std::array<std::string_view, 5> kFilters = {"bilinear", "bicubic", "nearest", "box", "lanczos"};
inline constexpr std::span<const std::string_view> kWarpFilters = std::span(kFilters).first(3);
inline constexpr std::array<std::string_view, 4> kPaddings = {"constant", "edge", "reflect", "symmetric"};
inline constexpr std::array<std::string_view, 3> kPolicies = {"imagenet", "cifar10", "svhn"};
inline constexpr std::array<std::string_view, 4> kTimmFilters = {"random", "bilinear", "bicubic", "nearest"};
inline constexpr std::array<std::string_view, 3> kGainTypes = {"amplitude", "power", "db"};
inline constexpr std::array<std::string_view, 3> kEdges = {"reflect", "constant", "replicate"};
inline constexpr std::array<std::string_view, 2> kMelScales = {"htk", "slaney"};
inline constexpr std::array<std::string_view, 2> kMelNorms = {"none", "slaney"};
inline constexpr std::array<std::string_view, 2> kDctNorms = {"ortho", "none"};
inline constexpr std::array<std::string_view, 3> kBeyonds = {"reflection", "border", "zeros"};
inline constexpr std::array<std::string_view, 2> kAmplitudeKinds = {"power", "magnitude"};

// The words of an enumeration, in its order.
template <typename T>
constexpr auto& words_of() {
  if constexpr (std::is_same_v<T, Filter>) return kFilters;
  if constexpr (std::is_same_v<T, Padding>) return kPaddings;
  if constexpr (std::is_same_v<T, Policy>) return kPolicies;
  if constexpr (std::is_same_v<T, TimmFilter>) return kTimmFilters;
  if constexpr (std::is_same_v<T, GainType>) return kGainTypes;
  if constexpr (std::is_same_v<T, Edge>) return kEdges;
  if constexpr (std::is_same_v<T, MelScale>) return kMelScales;
  if constexpr (std::is_same_v<T, MelNorm>) return kMelNorms;
  if constexpr (std::is_same_v<T, DctNorm>) return kDctNorms;
  if constexpr (std::is_same_v<T, AmplitudeKind>) return kAmplitudeKinds;
  if constexpr (std::is_same_v<T, Beyond>) return kBeyonds;
}

// Those that a field of an augmentation takes: augmentations only warp.
template <typename T>
constexpr std::span<const std::string_view> words_of_field() {
  if constexpr (std::is_same_v<T, Filter>) return kWarpFilters;
  if constexpr (!std::is_same_v<T, Filter>) return words_of<T>();
}

template <typename T>
constexpr std::size_t index_of() {
  const auto find = []<typename... Ts>(const std::variant<Ts...>*) {
    std::size_t at = 0;
    (void)((std::is_same_v<T, Ts> || (++at, false)) || ...);
    return at;
  };
  return find(static_cast<const decltype(Op::what)*>(nullptr));
}

// Calls `use` with a default T, where T is the alternative number `which` of Op's variant and is an augmentation.
// False: it is another operation.
template <typename Use>
bool with_augmentation(std::size_t which, const Use& use) {
  const auto each = [&]<typename... Ts>(const std::variant<Ts...>*) {
    const auto one = [&]<typename T>(const T*) {
      if constexpr (Augmentation<T>) {
        if (index_of<T>() != which) return false;
        use(T{});
        return true;
      }
      return false;
    };
    return (one(static_cast<const Ts*>(nullptr)) || ...);
  };
  return each(static_cast<const decltype(Op::what)*>(nullptr));
}

// True for operations that hold others: RandomApply, RandomChoice, RandomOrder.
bool holds_ops(std::size_t which);

// The place of `name` in kForms. Throws Error(usage) that offers the nearest name.
std::size_t find_form(std::string_view name);

Normalize imagenet();

[[noreturn]] void refuse(const std::string& message, const std::string& hint = {});
// Throws Error(usage) where operations that lie in `depth` others lie too deep.
void check_depth(std::size_t depth);
[[noreturn]] void refuse_argument(const Form& form, std::string_view cause);

// timm's text for its RandAugment, read and written. ops_timm.cc has them.
TimmConfig read_timm_config(const Form& form, std::string_view text);
std::string timm_text(const TimmConfig& config);

// What one number `value` means for a field that is drawn from a range.
Span spread(const Form& form, std::string_view name, double value, const Limits& limits);

}  // namespace stoker::transform
