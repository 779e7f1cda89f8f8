// A JSON value: what configs, reports and `--json` answers are made of. Objects keep the order in which keys were
// added. Values are copied like std::string; one value must not be changed by two threads at once.
//
// Text that is not UTF-8 (file names) survives: dump() writes each such byte as \udc80 to \udcff, and parse() reads it
// back. Python's json module does the same for names from os.fsdecode().
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace stoker {

class Json {
 public:
  enum class Kind : std::uint8_t { null, boolean, integer, natural, real, text, array, object };

  Json() noexcept = default;
  Json(std::nullptr_t) noexcept {}
  Json(bool value) noexcept : kind_(Kind::boolean) { number_.boolean = value; }
  template <std::signed_integral T>
  Json(T value) noexcept : kind_(Kind::integer) {
    number_.integer = value;
  }
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Json(T value)
  noexcept : kind_(Kind::natural) { number_.natural = value; }
  template <std::floating_point T>
  Json(T value) noexcept : kind_(Kind::real) {
    number_.real = static_cast<double>(value);
  }
  Json(std::string value) noexcept;
  Json(std::string_view value) : Json(std::string(value)) {}
  Json(const char* value) : Json(std::string(value)) {}
  template <typename T>
  Json(const std::vector<T>& values) : kind_(Kind::array), values_(values.begin(), values.end()) {}
  template <typename T>
  Json(const std::map<std::string, T>& values) : kind_(Kind::object) {
    for (const auto& [key, value] : values) add(key, value);
  }
  template <typename T>
  Json(const std::optional<T>& value) {
    if (value) *this = Json(*value);
  }
  // {{"a", 1}, {"b", 2}}: an object if every item is a pair whose first is text, else an array.
  Json(std::initializer_list<Json> items);

  static Json array(std::initializer_list<Json> items = {});
  static Json object(std::initializer_list<Json> items = {});

  // Throws Error (corrupt): cannot read `<subject>`, line 3, column 7: expected a value.
  static Json parse(std::string_view text, std::string_view subject);
  // Null, or none, where `text` is not JSON.
  static Json parse_or_null(std::string_view text) { return try_parse(text).value_or(Json()); }
  static std::optional<Json> try_parse(std::string_view text);

  // In one line if `indent` is negative, else one item per line. NaN and infinities become null. Never throws.
  std::string dump(int indent = -1) const;

  Kind kind() const noexcept { return kind_; }
  bool is_null() const noexcept { return kind_ == Kind::null; }
  bool is_boolean() const noexcept { return kind_ == Kind::boolean; }
  bool is_whole() const noexcept { return kind_ == Kind::integer || kind_ == Kind::natural; }
  bool is_number() const noexcept { return is_whole() || kind_ == Kind::real; }
  bool is_natural() const noexcept;  // a whole number that is not negative
  bool is_string() const noexcept { return kind_ == Kind::text; }
  bool is_array() const noexcept { return kind_ == Kind::array; }
  bool is_object() const noexcept { return kind_ == Kind::object; }

  // The value as a T. Throws Error (corrupt) where it is of another kind, or a number that T cannot hold.
  template <typename T>
  T get() const;
  // The same of a number, without throwing: none where get() throws.
  template <typename T>
  requires std::is_arithmetic_v<T> std::optional<T> as()
  const noexcept;
  const std::string& text() const;  // as get<std::string>(), without a copy

  // Items of an array, or values of an object. Of anything else there are none.
  std::size_t size() const noexcept { return values_.size(); }
  bool empty() const noexcept { return values_.empty(); }
  const Json* begin() const noexcept { return values_.data(); }
  const Json* end() const noexcept { return values_.data() + values_.size(); }
  Json* begin() noexcept { return values_.data(); }
  Json* end() noexcept { return values_.data() + values_.size(); }
  const Json& front() const { return at(std::size_t{0}); }
  const Json& back() const { return at(values_.size() - 1); }
  const std::vector<std::string>& keys() const noexcept { return keys_; }  // of an object, in order

  // Throws Error (corrupt) where there is no such item.
  const Json& at(std::size_t index) const;
  const Json& at(std::string_view key) const;
  bool contains(std::string_view key) const noexcept { return find(key) != end(); }
  const Json* find(std::string_view key) const noexcept;  // end(): there is none, or this is not an object

  // The value at `key`, or `fallback` where there is none. Throws Error (corrupt) where it is of another kind.
  template <typename T>
  T value(std::string_view key, const T& fallback) const {
    const Json* const found = find(key);
    return found == end() ? fallback : found->get<T>();
  }
  std::string value(std::string_view key, const char* fallback) const { return value(key, std::string(fallback)); }

  // Reading a missing key gives null; writing one adds it. A null becomes an object or an array.
  const Json& operator[](std::string_view key) const noexcept;
  Json& operator[](std::string_view key);
  const Json& operator[](const char* key) const noexcept { return (*this)[std::string_view(key)]; }
  Json& operator[](const char* key) { return (*this)[std::string_view(key)]; }
  template <std::integral T>
  const Json& operator[](T index) const {
    return at(static_cast<std::size_t>(index));
  }
  template <std::integral T>
  Json& operator[](T index) {
    return const_cast<Json&>(at(static_cast<std::size_t>(index)));
  }
  void push_back(Json value);
  void update(const Json& object);  // adds its fields; those that are there already get the new value
  void erase(std::string_view key);

  // {key, value} of each field, for loops: `for (const auto& [key, value] : json.items())`.
  struct Field {
    const std::string& key;
    const Json& value;
  };
  class Fields;
  Fields items() const noexcept;

  // Numbers are equal by value, whatever their kind; objects whatever the order of their keys.
  friend bool operator==(const Json& a, const Json& b) noexcept;

 private:
  friend class JsonReader;

  // The number as bits; none: this is not a whole number in that range.
  std::optional<std::int64_t> integer(std::int64_t least, std::uint64_t most) const noexcept;
  std::optional<double> real() const noexcept;
  [[noreturn]] void refuse_number(std::int64_t least, std::uint64_t most) const;
  void add(std::string key, Json value);  // the key must be new
  [[noreturn]] void refuse(std::string_view wanted) const;

  Kind kind_ = Kind::null;
  union {
    bool boolean;
    std::int64_t integer;
    std::uint64_t natural;
    double real;
  } number_ = {.natural = 0};
  std::string text_;
  std::vector<Json> values_;
  std::vector<std::string> keys_;  // of an object: as many as values_
};

class Json::Fields {
 public:
  class Iterator {
   public:
    Iterator(const Json& object, std::size_t at) noexcept : object_(&object), at_(at) {}
    Field operator*() const noexcept { return {object_->keys_[at_], object_->values_[at_]}; }
    Iterator& operator++() noexcept { return ++at_, *this; }
    bool operator==(const Iterator& other) const noexcept { return at_ == other.at_; }

   private:
    const Json* object_;
    std::size_t at_;
  };
  explicit Fields(const Json& object) noexcept : object_(&object) {}
  Iterator begin() const noexcept { return {*object_, 0}; }
  Iterator end() const noexcept { return {*object_, object_->keys_.size()}; }

 private:
  const Json* object_;
};

inline Json::Fields Json::items() const noexcept {
  return Fields(*this);
}

namespace json_detail {
template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
}  // namespace json_detail

template <typename T>
requires std::is_arithmetic_v<T> std::optional<T> Json::as()
const noexcept {
  if constexpr (std::same_as<T, bool>) {
    return is_boolean() ? std::optional(number_.boolean) : std::nullopt;
  } else if constexpr (std::integral<T>) {
    const auto found = integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    return found ? std::optional(static_cast<T>(*found)) : std::nullopt;
  } else {
    const auto found = real();
    return found ? std::optional(static_cast<T>(*found)) : std::nullopt;
  }
}

template <typename T>
T Json::get() const {
  if constexpr (std::same_as<T, Json>) {
    return *this;
  } else if constexpr (std::same_as<T, std::string>) {
    return text();
  } else if constexpr (std::is_arithmetic_v<T>) {
    if (const std::optional<T> number = as<T>()) return *number;
    if constexpr (std::integral<T> && !std::same_as<T, bool>)
      refuse_number(std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    refuse(std::same_as<T, bool> ? "true or false" : "a number");
  } else {
    static_assert(json_detail::IsVector<T>::value, "Json::get() has no such type");
    if (!is_array()) refuse("an array");
    T all;
    all.reserve(values_.size());
    for (const Json& value : values_) all.push_back(value.get<typename T::value_type>());
    return all;
  }
}

}  // namespace stoker
