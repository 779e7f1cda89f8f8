#include "stoker/report/svg.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "stoker/base/utf8.h"

namespace stoker::report {
namespace {

std::vector<double> steps_of(double step, double most) {
  std::vector<double> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(step * i);
    if (all.back() >= most) break;
  }
  return all;
}

double nice_step(double raw) {
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= raw * 0.999) return factor * power;
  }
  return 10 * power;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_bytes(text, at);
    const char c = text[at];
    const std::string_view character = text.substr(at, size);
    if (size == 0 || character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF") {  // XML has no U+FFFE and U+FFFF
      out += kNoCharacter;
      at += std::max<std::size_t>(1, size);
      continue;
    }
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (size == 1 && (c == 0x7F || (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t'))) {
          out += kNoCharacter;
        } else {
          out += text.substr(at, size);
        }
    }
    at += size;
  }
  return out;
}

std::vector<double> ticks(double most, int about) {
  if (!(most > 0) || !std::isfinite(most)) return {0, 1};
  return steps_of(nice_step(most / std::max(1, about)), most);
}

std::vector<double> byte_ticks(double most, int about) {
  if (!(most > 0) || !std::isfinite(most)) return {0, 1};
  const double unit = std::pow(1024, std::floor(std::log2(most) / 10));
  return steps_of(unit * nice_step(most / unit / std::max(1, about)), most);
}

double text_width(std::string_view text, double size) noexcept {
  double width = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) continue;  // inside a character
    width += std::string_view("iljtf.,:;'|!() ").find(c) != std::string_view::npos ? 0.33
             : std::string_view("mwMW%").find(c) != std::string_view::npos         ? 0.88
                                                                                   : 0.58;
  }
  return width * size;
}

std::string number(double value) {
  if (!std::isfinite(value)) return "0";
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

Svg::Svg(double width, double height, std::string_view kind, std::string_view says)
    : text_(fmt::format(
          R"(<svg xmlns="http://www.w3.org/2000/svg" class="{0}" viewBox="0 0 {1} {2}" width="{1}" height="{2}" role="img" aria-label="{3}">)",
          escaped(kind), number(width), number(height), escaped(says))) {}

void Svg::attributes(std::string_view style, std::string_view tip) {
  text_ += fmt::format(R"( class="{}")", style);
  if (!tip.empty()) text_ += fmt::format(R"( data-tip="{}")", escaped(tip));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style) {
  text_ += fmt::format(R"(<line x1="{}" y1="{}" x2="{}" y2="{}")", number(x1), number(y1), number(x2), number(y2));
  attributes(style, {});
  text_ += "/>";
}

void Svg::box(double x, double y, double width, double height, std::string_view style, std::string_view tip,
              double round) {
  text_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}")", number(x), number(y),
                       number(std::max(0.0, width)), number(std::max(0.0, height)));
  if (round > 0) text_ += fmt::format(R"( rx="{}")", number(round));
  attributes(style, tip);
  text_ += "/>";
}

void Svg::circle(double x, double y, double radius, std::string_view style, std::string_view tip) {
  text_ += fmt::format(R"(<circle cx="{}" cy="{}" r="{}")", number(x), number(y), number(radius));
  attributes(style, tip);
  text_ += "/>";
}

void Svg::path(std::string_view d, std::string_view style, std::string_view tip) {
  text_ += fmt::format(R"(<path d="{}")", d);
  attributes(style, tip);
  text_ += "/>";
}

void Svg::text(double x, double y, Anchor anchor, std::string_view style, std::string_view text) {
  text_ += fmt::format(R"(<text x="{}" y="{}")", number(x), number(y));
  if (anchor != Anchor::start)
    text_ += fmt::format(R"( text-anchor="{}")", anchor == Anchor::middle ? "middle" : "end");
  attributes(style, {});
  text_ += ">" + escaped(text) + "</text>";
}

std::string Svg::whole() && {
  text_ += "</svg>";
  return std::move(text_);
}

}  // namespace stoker::report
