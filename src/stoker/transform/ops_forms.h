// How each operation is spelled: its name in Python and in the short text, with an example. Private to the ops*.cc
// files.
#pragma once

#include <array>
#include <cstddef>
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

inline constexpr std::array<std::string_view, 4> kFilters = {"bilinear", "bicubic", "nearest", "box"};

template <typename T>
constexpr std::size_t index_of() {
  const auto find = []<typename... Ts>(const std::variant<Ts...>*) {
    std::size_t at = 0;
    (void)((std::is_same_v<T, Ts> || (++at, false)) || ...);
    return at;
  };
  return find(static_cast<const decltype(Op::what)*>(nullptr));
}

// The place of `name` in kForms. Throws Error(usage) that offers the nearest name.
std::size_t find_form(std::string_view name);

Normalize imagenet();

[[noreturn]] void refuse(const std::string& message, const std::string& hint = {});
[[noreturn]] void refuse_argument(const Form& form, std::string_view cause);

}  // namespace stoker::transform
