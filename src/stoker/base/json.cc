#include "stoker/base/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"

namespace stoker {
namespace {

const Json kNull;

std::string_view kind_text(Json::Kind kind) {
  switch (kind) {
    case Json::Kind::null:
      return "null";
    case Json::Kind::boolean:
      return "true or false";
    case Json::Kind::integer:
    case Json::Kind::natural:
    case Json::Kind::real:
      return "a number";
    case Json::Kind::text:
      return "text";
    case Json::Kind::array:
      return "an array";
    case Json::Kind::object:
      return "an object";
  }
  return "null";
}

bool is_pair(const Json& item) {
  return item.is_array() && item.size() == 2 && item.front().is_string();
}

}  // namespace

Json::Json(std::string value) noexcept : kind_(Kind::text), text_(std::move(value)) {}

Json::Json(std::initializer_list<Json> items)
    : Json(std::all_of(items.begin(), items.end(), is_pair) ? object(items) : array(items)) {}

Json Json::array(std::initializer_list<Json> items) {
  Json made;
  made.kind_ = Kind::array;
  made.values_ = items;
  return made;
}

Json Json::object(std::initializer_list<Json> items) {
  Json made;
  made.kind_ = Kind::object;
  for (const Json& item : items) made[item.front().text()] = item.back();
  return made;
}

void Json::refuse(std::string_view wanted) const {
  throw Error(ErrorKind::corrupt, fmt::format("expected {}, not {}", wanted, kind_text(kind_)));
}

bool Json::is_natural() const noexcept {
  return kind_ == Kind::natural || (kind_ == Kind::integer && number_.integer >= 0);
}

std::optional<std::int64_t> Json::integer(std::int64_t least, std::uint64_t most) const noexcept {
  if (kind_ == Kind::real) {
    const double limit = std::ldexp(1.0, number_.real < 0 ? 63 : 64);
    if (std::trunc(number_.real) != number_.real || std::abs(number_.real) >= limit) return std::nullopt;
    const Json whole = number_.real < 0 ? Json(static_cast<std::int64_t>(number_.real))
                                        : Json(static_cast<std::uint64_t>(number_.real));
    return whole.integer(least, most);
  }
  if (!is_whole() || (is_natural() ? number_.natural > most : number_.integer < least)) return std::nullopt;
  return number_.integer;
}

std::optional<double> Json::real() const noexcept {
  switch (kind_) {
    case Kind::natural:
      return static_cast<double>(number_.natural);
    case Kind::integer:
      return static_cast<double>(number_.integer);
    case Kind::real:
      return number_.real;
    default:
      return std::nullopt;
  }
}

void Json::refuse_number(std::int64_t least, std::uint64_t most) const {
  if (!is_number()) refuse("a number");
  throw Error(ErrorKind::corrupt, fmt::format("expected a whole number from {} to {}, not {}", least, most, dump()));
}

const std::string& Json::text() const {
  if (!is_string()) refuse("text");
  return text_;
}

const Json& Json::at(std::size_t index) const {
  if (!is_array()) refuse("an array");
  if (index >= values_.size())
    throw Error(ErrorKind::corrupt, fmt::format("there is no item {} in an array of {}", index, values_.size()));
  return values_[index];
}

const Json& Json::at(std::string_view key) const {
  if (!is_object()) refuse("an object");
  const Json* const found = find(key);
  if (found == end()) throw Error(ErrorKind::corrupt, fmt::format("there is no field `{}`", key));
  return *found;
}

const Json* Json::find(std::string_view key) const noexcept {
  const auto found = std::find(keys_.begin(), keys_.end(), key);
  return found == keys_.end() ? end() : values_.data() + (found - keys_.begin());
}

const Json& Json::operator[](std::string_view key) const noexcept {
  const Json* const found = find(key);
  return found == end() ? kNull : *found;
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) kind_ = Kind::object;
  if (!is_object()) refuse("an object");
  if (const Json* const found = find(key); found != end()) return values_[static_cast<std::size_t>(found - begin())];
  add(std::string(key), nullptr);
  return values_.back();
}

void Json::add(std::string key, Json value) {
  keys_.push_back(std::move(key));
  values_.push_back(std::move(value));
}

void Json::push_back(Json value) {
  if (is_null()) kind_ = Kind::array;
  if (!is_array()) refuse("an array");
  values_.push_back(std::move(value));
}

void Json::update(const Json& object) {
  if (!object.is_object()) object.refuse("an object");
  for (const auto& [key, value] : object.items()) (*this)[key] = value;
}

void Json::erase(std::string_view key) {
  const Json* const found = find(key);
  if (found == end()) return;
  const auto at = found - begin();
  keys_.erase(keys_.begin() + at);
  values_.erase(values_.begin() + at);
}

bool operator==(const Json& a, const Json& b) noexcept {
  using Kind = Json::Kind;
  if (a.is_number() && b.is_number()) {
    if (a.kind_ == Kind::real || b.kind_ == Kind::real) return a.real() == b.real();
    if (a.kind_ == b.kind_) return a.number_.natural == b.number_.natural;
    return a.is_natural() && b.is_natural() && a.number_.natural == b.number_.natural;
  }
  if (a.kind_ != b.kind_) return false;
  switch (a.kind_) {
    case Kind::boolean:
      return a.number_.boolean == b.number_.boolean;
    case Kind::text:
      return a.text_ == b.text_;
    case Kind::array:
      return a.values_ == b.values_;
    case Kind::object:
      return a.size() == b.size() && std::all_of(a.keys_.begin(), a.keys_.end(), [&](const std::string& key) {
               const Json* const other = b.find(key);
               return other != b.end() && *a.find(key) == *other;
             });
    default:
      return true;
  }
}

}  // namespace stoker
