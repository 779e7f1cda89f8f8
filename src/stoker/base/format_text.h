// Makes a Text that names options: format_text("raise {}, or lower {}", option("memory_limit"), option("batch_size")).
// Takes whatever fmt::format takes, and OptionName and Text besides. Safe from any thread.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/text.h"
#include "stoker/base/utf8.h"

namespace stoker {

// Private to format_text: the form in which arguments are put into the marked string.
struct TextMaker {
  static std::string mark(const OptionName& name);
  static const std::string& mark(const Text& text) noexcept { return text.marked_; }
  // A text from outside cannot hold the control characters that mark options.
  template <class T>
  requires std::is_convertible_v<const T&, std::string_view>
  static std::string mark(const T& text) { return one_line(text); }
  template <class T>
  requires(!std::is_convertible_v<const T&, std::string_view>) static const T& mark(const T& value) noexcept {
    return value;
  }
  static Text make(std::string marked) {
    Text text;
    text.marked_ = std::move(marked);
    return text;
  }
  template <class T>
  using Marked = decltype(mark(std::declval<const T&>()));
};

template <class... Args>
Text format_text(fmt::format_string<TextMaker::Marked<Args>...> format, const Args&... args) {
  return TextMaker::make(fmt::format(format, TextMaker::mark(args)...));
}

}  // namespace stoker
