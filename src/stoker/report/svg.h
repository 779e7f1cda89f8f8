// Drawings as SVG text, and escaping of text from users and their programs. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker::report {

// For text and attributes of HTML and XML. Control characters and bytes that are no UTF-8 become U+FFFD.
std::string escaped(std::string_view text);

// Round numbers that cover 0 to `most`; the last is >= most.
std::vector<double> ticks(double most, int about);
// The same in steps of a power of 1024, for bytes.
std::vector<double> byte_ticks(double most, int about);

// About as wide as `text` is when drawn at `size` px in a sans-serif face.
double text_width(std::string_view text, double size) noexcept;

enum class Anchor : unsigned char { start, middle, end };

// Colours and faces come from the page's style, by class.
class Svg {
 public:
  // `kind` is a class of the drawing; `says` is what it shows, for those who cannot see it.
  Svg(double width, double height, std::string_view kind, std::string_view says);

  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void box(double x, double y, double width, double height, std::string_view style, std::string_view tip = {},
           double round = 0);
  void circle(double x, double y, double radius, std::string_view style, std::string_view tip = {});
  void path(std::string_view d, std::string_view style, std::string_view tip = {});
  void text(double x, double y, Anchor anchor, std::string_view style, std::string_view text);

  std::string whole() &&;

 private:
  void attributes(std::string_view style, std::string_view tip);
  std::string text_;
};

// A number as it stands in attributes: at most two decimals.
std::string number(double value);

}  // namespace stoker::report
