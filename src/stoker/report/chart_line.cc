#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "stoker/report/charts.h"
#include "stoker/report/svg.h"
#include "stoker/report/words.h"

namespace stoker::report {
namespace {

constexpr double kText = 12;

// Distances that double, as batch sizes do, are drawn evenly; others to scale.
bool is_doubling(const std::vector<double>& x) {
  return x.size() >= 4 && x.front() > 0 && x.back() / x.front() >= 8 &&
         (x.back() - x[x.size() - 2]) >= 2.5 * (x[1] - x[0]);
}

class Drawing {
 public:
  Drawing(const LineChart& chart, double width)
      : chart_(chart),
        is_narrow_(width < 500),
        left_(0),
        right_(width - (is_narrow_ ? 14 : label_room())),
        top_(34),
        bottom_((is_narrow_ ? 270.0 : 370.0) - 46),
        svg_(width, is_narrow_ ? 270 : 370, "chart", says()) {
    for (const Curve& curve : chart_.curves) {
      for (const Mark& mark : curve.marks) {
        add_x(mark.x);
        most_ = std::max({most_, mark.y.value, mark.y.high.value_or(0)});
      }
    }
    for (const auto& [x, glyph] : chart_.failed) add_x(x);
    if (chart_.limit && *chart_.limit < 4 * most_) {
      most_ = std::max(most_, *chart_.limit);
      draws_limit_ = true;
    }
    marks_ = chart_.unit == Unit::bytes ? byte_ticks(most_ * 1.02, 5) : ticks(most_ * 1.02, 5);
    most_ = marks_.back();
    log_ = is_doubling(xs_);
    for (const double mark : marks_) left_ = std::max(left_, text_width(tick_text(mark), kText) + 14);
  }

  std::string draw() && {
    axes();
    if (chart_.band) band();
    if (draws_limit_) limit();
    if (chart_.knee) knee();
    for (std::size_t i = chart_.curves.size(); i-- > 0;) curve(chart_.curves[i], i);
    if (!is_narrow_) names();
    for (const auto& [x, glyph] : chart_.failed) svg_.text(x_of(x), bottom_ - 6, Anchor::middle, "glyph", glyph);
    return std::move(svg_).whole();
  }

 private:
  double label_room() const {
    double room = 24;
    if (chart_.curves.size() < 2) return room;
    for (const Curve& curve : chart_.curves) room = std::max(room, text_width(curve.name, kText) + 22);
    return std::min(room, 230.0);
  }

  std::string says() const {
    std::string text = fmt::format("{} over {}.", chart_.y_label, chart_.x_label);
    if (chart_.curves.empty()) return text;
    for (const Mark& mark : chart_.curves[0].marks) text += " " + mark.tip + ";";
    return text;
  }

  void add_x(double x) {
    const auto at = std::lower_bound(xs_.begin(), xs_.end(), x);
    if (at == xs_.end() || *at != x) xs_.insert(at, x);
  }
  double x_of(double x) const {
    const double low = log_ ? std::log2(xs_.front()) : xs_.front(), high = log_ ? std::log2(xs_.back()) : xs_.back();
    const double at = log_ ? std::log2(x) : x;
    const double inset = 14;
    if (!(high > low)) return (left_ + right_) / 2;
    return left_ + inset + (right_ - left_ - 2 * inset) * (at - low) / (high - low);
  }
  double y_of(double y) const { return bottom_ - (bottom_ - top_) * y / most_; }
  std::string value_text(double value) const {
    return chart_.unit == Unit::bytes ? byte_text(value) : per_second(value);
  }
  std::string tick_text(double value) const {
    if (chart_.unit == Unit::bytes && value > 0) {
      std::string text = byte_text(value);
      if (const std::size_t zero = text.find(".0 "); zero != std::string::npos) text.erase(zero, 2);
      return text;
    }
    return short_number(value);
  }

  void axes() {
    svg_.text(0, 12, Anchor::start, "axis-name", chart_.y_label);
    for (const double y : marks_) {
      svg_.line(left_, y_of(y), right_, y_of(y), y == 0 ? "axis" : "grid");
      svg_.text(left_ - 8, y_of(y) + 4, Anchor::end, "tick", tick_text(y));
    }
    double free_from = -1e9;
    for (const double x : xs_) {
      svg_.line(x_of(x), bottom_, x_of(x), bottom_ + 4, "axis");
      const std::string text = short_number(x);
      const double half = text_width(text, kText) / 2 + 3;
      if (x_of(x) - half < free_from) continue;
      svg_.text(x_of(x), bottom_ + 19, Anchor::middle, "tick", text);
      free_from = x_of(x) + half;
    }
    svg_.text((left_ + right_) / 2, bottom_ + 40, Anchor::middle, "axis-name", chart_.x_label);
  }

  void band() {
    svg_.box(left_, y_of(chart_.band->second), right_ - left_, y_of(chart_.band->first) - y_of(chart_.band->second),
             "band");
  }

  void limit() {
    svg_.line(left_, y_of(*chart_.limit), right_, y_of(*chart_.limit), "limit");
    svg_.text(left_ + 4, y_of(*chart_.limit) - 6, Anchor::start, "limit-name", chart_.limit_label);
  }

  void knee() {
    const double x = x_of(*chart_.knee);
    svg_.line(x, top_ - 6, x, bottom_, "knee");
    const std::string text = fmt::format("knee at {}", short_number(*chart_.knee));
    const bool fits = x + text_width(text, kText) / 2 < right_;
    svg_.text(x, top_ - 12, fits ? Anchor::middle : Anchor::end, "note", text);
  }

  void curve(const Curve& curve, std::size_t number) {
    const std::string style = fmt::format("c{}", std::min<std::size_t>(number, kCurveStyles - 1));
    std::string d;
    for (const Mark& mark : curve.marks) {
      d += fmt::format("{}{} {}", d.empty() ? "M" : "L", report::number(x_of(mark.x)),
                       report::number(y_of(mark.y.value)));
    }
    if (curve.marks.size() > 1) svg_.path(d, "curve " + style);
    double free_from = -1e9;
    for (std::size_t i = 0; i < curve.marks.size(); ++i) {
      const Mark& mark = curve.marks[i];
      const double x = x_of(mark.x), y = y_of(mark.y.value);
      if (mark.y.low && mark.y.high) whiskers(x, *mark.y.low, *mark.y.high, style);
      if (!mark.label.empty()) svg_.circle(x, y, 8, "ring " + style);
      point(x, y, number, style, mark.tip);
      if (number != 0 || (is_narrow_ && curve.marks.size() > 4 && mark.label.empty())) continue;  // no room for all
      value(mark, x, y, free_from, i + 1 < curve.marks.size() ? &curve.marks[i + 1] : nullptr);
    }
  }

  void whiskers(double x, double low, double high, const std::string& style) {
    svg_.line(x, y_of(low), x, y_of(high), "whisker " + style);
    for (const double y : {low, high}) svg_.line(x - 4, y_of(y), x + 4, y_of(y), "whisker " + style);
  }

  // Shapes, so that curves are told apart without colour.
  void point(double x, double y, std::size_t number, const std::string& style, const std::string& tip) {
    const std::string look = "point " + style;
    const auto at = [](double value) { return report::number(value); };
    switch (number % 4) {
      case 0:
        svg_.circle(x, y, 4, look, tip);
        break;
      case 1:
        svg_.box(x - 3.2, y - 3.2, 6.4, 6.4, look, tip);
        break;
      case 2:
        svg_.path(fmt::format("M{} {}l4.2 7.2h-8.4z", at(x), at(y - 4.6)), look, tip);
        break;
      default:
        svg_.path(fmt::format("M{} {}l4.4 4.4l-4.4 4.4l-4.4 -4.4z", at(x), at(y - 4.4)), look, tip);
    }
    svg_.circle(x, y, 11, "reach", tip);  // a finger or a mouse need not hit the point itself
  }

  // The figure beside its point, where nothing stands already; what is chosen or best always.
  void value(const Mark& mark, double x, double y, double& free_from, const Mark* next) {
    std::string text = value_text(mark.y.value);
    if (!mark.label.empty()) text = mark.label + " " + text;
    const double size = mark.label.empty() ? kText : 13, half = text_width(text, size) / 2 + 4;
    // Beside a later label that must be there, this one gives way.
    if (mark.label.empty() && next != nullptr && !next->label.empty() &&
        x + half > x_of(next->x) - text_width(next->label + " " + value_text(next->y.value), 13) / 2 - 8)
      return;
    if (x - half < free_from && mark.label.empty()) return;
    // Beside the point where the curve climbs steeply, so that it does not run through the figure.
    if (mark.label.empty() && next != nullptr && y - y_of(next->y.value) > 0.4 * (x_of(next->x) - x)) {
      svg_.text(x + 9, y + 10, Anchor::start, "value", text);
      return;
    }
    const bool below = mark.y.high && y_of(*mark.y.high) < top_ + 16;
    const double place = below ? y_of(mark.y.low.value_or(mark.y.value)) + 20
                               : std::min(y, mark.y.high ? y_of(*mark.y.high) : y) - (mark.label.empty() ? 10 : 14);
    const double middle = std::clamp(x, left_ + half, right_ - half + (is_narrow_ ? 10 : 20));
    const bool collides = middle - half < free_from;
    svg_.text(middle, collides ? y + 26 : place, Anchor::middle, mark.label.empty() ? "value" : "value strong", text);
    if (!collides) free_from = middle + half;
  }

  // At the right end of each curve, pushed apart where they would touch.
  void names() {
    if (chart_.curves.size() < 2) return;
    struct Name {
      double y;
      std::size_t number;
    };
    std::vector<Name> names;
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) {
      if (!chart_.curves[i].marks.empty()) names.push_back({y_of(chart_.curves[i].marks.back().y.value), i});
    }
    std::stable_sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.y < b.y; });
    constexpr double kApart = 17;
    for (std::size_t i = 1; i < names.size(); ++i) names[i].y = std::max(names[i].y, names[i - 1].y + kApart);
    if (!names.empty() && names.back().y > bottom_) {
      names.back().y = bottom_;
      for (std::size_t i = names.size() - 1; i-- > 0;) names[i].y = std::min(names[i].y, names[i + 1].y - kApart);
    }
    for (const Name& name : names) {
      const Curve& curve = chart_.curves[name.number];
      const std::string style = fmt::format("c{}", std::min<std::size_t>(name.number, kCurveStyles - 1));
      const double x = x_of(curve.marks.back().x), y = y_of(curve.marks.back().y.value);
      svg_.line(x + 6, y, right_ + 6, name.y, "leader " + style);
      svg_.text(right_ + 10, name.y + 4, Anchor::start, name.number == 0 ? "curve-name strong" : "curve-name",
                curve.name);
    }
  }

  const LineChart& chart_;
  bool is_narrow_, log_ = false, draws_limit_ = false;
  double left_, right_, top_, bottom_, most_ = 0;
  std::vector<double> xs_, marks_;
  Svg svg_;
};

}  // namespace

std::string line_chart(const LineChart& chart, double width) {
  return Drawing(chart, width).draw();
}

}  // namespace stoker::report
