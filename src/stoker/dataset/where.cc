#include "stoker/dataset/where.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/base/units.h"
#include "stoker/storage/interruption.h"

namespace stoker::dataset {
namespace {

constexpr std::size_t kMostWords = 4096;  // of one expression
constexpr int kMostDepth = 128;           // of parentheses and `not`
constexpr std::uint64_t kRowsBetween = 16384;
constexpr const char* kExample = R"(such as slice_spacing<3 and rows==512 and not modality=="MR")";

std::optional<double> as_number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size() || std::isnan(value))
    return std::nullopt;
  return value;
}

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}

template <typename T>
bool holds(int how, const T& a, const T& b) {
  switch (how) {
    case 0:
      return a == b;
    case 1:
      return !(a == b);
    case 2:
      return a < b;
    case 3:
      return a <= b;
    case 4:
      return a > b;
    default:
      return a >= b;
  }
}

}  // namespace

class Where::Parser {
 public:
  Parser(Where& where, std::string_view text) : where_(where), text_(text) {}

  void parse() {
    where_.root_ = any_of();
    skip_blanks();
    if (at_ < text_.size()) refuse("`and`, `or` or the end was expected");
  }

 private:
  [[noreturn]] void refuse(std::string_view cause) const {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()));
    throw Error(ErrorKind::usage,
                format_text("cannot read {} `{}` at {}: {}", option("where"), text_,
                            rest.empty() ? std::string("its end") : fmt::format("`{}`", rest.substr(0, 20)), cause),
                kExample)
        .about("where");
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }

  bool take(std::string_view mark) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(mark)) return false;
    at_ += mark.size();
    return true;
  }

  // A word of the language, in any case, that does not go on.
  bool take_word(std::string_view word) {
    skip_blanks();
    const std::string_view rest = text_.substr(at_);
    if (rest.size() < word.size() || to_lower(std::string(rest.substr(0, word.size()))) != word) return false;
    if (rest.size() > word.size() && (is_name_start(rest[word.size()]) || is_decimal(rest[word.size()]))) return false;
    at_ += word.size();
    return true;
  }

  std::size_t add(Kind kind, std::size_t left, std::size_t right, Compare compare = Compare::equal) {
    if (where_.nodes_.size() >= kMostWords) refuse("it is too long");
    where_.nodes_.push_back({kind, compare, left, right});
    return where_.nodes_.size() - 1;
  }

  std::size_t any_of() {
    std::size_t left = all_of();
    while (take_word("or") || take("||")) left = add(Kind::any_of, left, all_of());
    return left;
  }

  std::size_t all_of() {
    std::size_t left = one();
    while (take_word("and") || take("&&")) left = add(Kind::all_of, left, one());
    return left;
  }

  std::size_t one() {
    if (++depth_ > kMostDepth) refuse("it is nested too deeply");
    std::size_t node = 0;
    skip_blanks();
    const bool is_not = take_word("not") || (!text_.substr(at_).starts_with("!=") && take("!"));
    if (is_not) {
      node = add(Kind::not_of, one(), 0);
    } else if (take("(")) {
      node = any_of();
      if (!take(")")) refuse("a closing parenthesis is missing");
    } else {
      node = comparison();
    }
    --depth_;
    return node;
  }

  std::optional<Compare> comparator() {
    constexpr std::array<std::pair<std::string_view, Compare>, 7> kMarks = {{{"==", Compare::equal},
                                                                             {"!=", Compare::different},
                                                                             {"<=", Compare::at_most},
                                                                             {">=", Compare::at_least},
                                                                             {"<", Compare::below},
                                                                             {">", Compare::above},
                                                                             {"=", Compare::equal}}};
    for (const auto& [mark, compare] : kMarks) {
      if (take(mark)) return compare;
    }
    return std::nullopt;
  }

  std::size_t comparison() {
    std::size_t left = operand();
    std::optional<Compare> compare = comparator();
    if (!compare) refuse("a comparison was expected: ==, !=, <, <=, > or >=");
    std::optional<std::size_t> node;
    while (compare) {
      const std::size_t right = operand();
      const std::size_t next = add(Kind::compare, left, right, *compare);
      node = node ? add(Kind::all_of, *node, next) : next;
      left = right;
      compare = comparator();
    }
    return *node;
  }

  std::size_t operand() {
    skip_blanks();
    Operand operand;
    if (at_ >= text_.size()) refuse("a column, a number or a text in quotes was expected");
    const char first = text_[at_];
    if (first == '"' || first == '\'' || first == '`') {
      const std::size_t end = text_.find(first, at_ + 1);
      if (end == std::string_view::npos) refuse("a quote is not closed");
      operand.kind = first == '`' ? Operand::Kind::column : Operand::Kind::text;
      operand.text = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
    } else if (is_name_start(first)) {
      std::size_t end = at_;
      while (end < text_.size() && (is_name_start(text_[end]) || is_decimal(text_[end]) || text_[end] == '.')) ++end;
      operand.text = text_.substr(at_, end - at_);
      at_ = end;
    } else {
      std::size_t end = at_;
      while (end < text_.size() &&
             (is_decimal(text_[end]) || std::string_view("+-.eE").find(text_[end]) != std::string_view::npos))
        ++end;
      const std::optional<double> number = as_number(text_.substr(at_, end - at_));
      if (!number) refuse("a column, a number or a text in quotes was expected");
      operand.kind = Operand::Kind::number;
      operand.number = *number;
      at_ = end;
    }
    if (operand.kind == Operand::Kind::column) {
      const auto known = std::find(where_.columns_.begin(), where_.columns_.end(), operand.text);
      operand.column = static_cast<std::size_t>(known - where_.columns_.begin());
      if (known == where_.columns_.end()) where_.columns_.push_back(operand.text);
    }
    where_.operands_.push_back(std::move(operand));
    return where_.operands_.size() - 1;
  }

  Where& where_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

Where::Where(std::string_view text) {
  Parser(*this, text).parse();
}

bool Where::matches(const std::function<std::string(std::size_t column)>& cell) const {
  return matches(root_, cell);
}

bool Where::matches(std::size_t number, const std::function<std::string(std::size_t column)>& cell) const {
  const Node& node = nodes_[number];
  switch (node.kind) {
    case Kind::all_of:
      return matches(node.left, cell) && matches(node.right, cell);
    case Kind::any_of:
      return matches(node.left, cell) || matches(node.right, cell);
    case Kind::not_of:
      return !matches(node.left, cell);
    case Kind::compare:
      break;
  }
  const Operand &left = operands_[node.left], &right = operands_[node.right];
  const int how = static_cast<int>(node.compare);
  const std::string a = left.kind == Operand::Kind::column ? cell(left.column) : left.text;
  const std::string b = right.kind == Operand::Kind::column ? cell(right.column) : right.text;
  const bool has_number = left.kind == Operand::Kind::number || right.kind == Operand::Kind::number;
  const bool has_text = left.kind == Operand::Kind::text || right.kind == Operand::Kind::text;
  const auto number_of = [](const Operand& operand, const std::string& text) {
    return operand.kind == Operand::Kind::number ? std::optional<double>(operand.number) : as_number(text);
  };
  const std::optional<double> x = number_of(left, a), y = number_of(right, b);
  // Two columns compare as numbers where both cells are.
  if (has_number || (!has_text && x && y)) {
    return x && y ? holds(how, *x, *y) : node.compare == Compare::different;
  }
  return holds(how, a, b);
}

DatasetPtr take_where(DatasetPtr dataset, const std::string& expression) {
  const Where where(expression);
  const Facts& facts = dataset->facts();
  enum class From : std::uint8_t { column, path, label };
  std::vector<std::pair<From, std::size_t>> sources;
  for (const std::string& name : where.columns()) {
    const auto find = [&](auto is_same) -> std::optional<std::pair<From, std::size_t>> {
      for (std::size_t c = 0; c < facts.columns.size(); ++c) {
        if (is_same(facts.columns[c])) return std::pair(From::column, c);
      }
      for (std::size_t c = 0; c < facts.label_columns.size(); ++c) {
        if (is_same(facts.label_columns[c])) return std::pair(From::label, c);
      }
      if (!facts.path_column.empty() && is_same(facts.path_column)) return std::pair(From::path, std::size_t{0});
      if (!facts.label_column.empty() && is_same(facts.label_column)) return std::pair(From::label, std::size_t{0});
      return std::nullopt;
    };
    auto found = find([&](const std::string& other) { return other == name; });
    if (!found) found = find([&](const std::string& other) { return to_lower(other) == to_lower(name); });
    if (!found) {
      std::vector<std::string> names = facts.columns;
      names.insert(names.end(), facts.label_columns.begin(), facts.label_columns.end());
      for (const std::string& other : {facts.path_column, facts.label_column}) {
        if (!other.empty()) names.push_back(other);
      }
      std::string list;
      for (const std::string& other : names) list += fmt::format("{}`{}`", list.empty() ? "" : ", ", other);
      const std::vector<std::string_view> views(names.begin(), names.end());
      const std::string near = nearest(name, views.data(), views.size());
      throw Error(ErrorKind::usage,
                  names.empty()
                      ? format_text("{} names the column `{}`, and `{}` has no columns: only an index.csv, or "
                                    "a pack made from one, has them",
                                    option("where"), name, facts.address)
                      : format_text("{} names the column `{}`, and the columns of `{}` are {}", option("where"), name,
                                    facts.address, list),
                  near.empty() ? std::string("write texts in quotes") : fmt::format("did you mean `{}`?", near))
          .about("where");
    }
    sources.push_back(*found);
  }
  std::vector<std::uint64_t> chosen;
  for (std::uint64_t i = 0; i < dataset->size(); ++i) {
    if (i % kRowsBetween == 0) storage::check_interruption();
    const bool matches = where.matches([&](std::size_t column) -> std::string {
      const auto& [from, number] = sources[column];
      if (from == From::column) return dataset->column_text(number, i);
      if (from == From::path) return dataset->name(i);
      const Label label = dataset->label_at(i, number);
      if (facts.label_kind == LabelKind::real) return fmt::format("{}", label.real);
      const auto c = static_cast<std::size_t>(label.integer);
      return label.integer >= 0 && c < facts.classes.size() ? facts.classes[c] : fmt::format("{}", label.integer);
    });
    if (matches) chosen.push_back(i);
  }
  if (chosen.empty()) {
    throw Error(ErrorKind::not_found, format_text("{} `{}` matches none of the {} samples of `{}`", option("where"),
                                                  expression, format_count(dataset->size()), facts.address))
        .about("where");
  }
  if (chosen.size() == dataset->size()) return dataset;
  return take_indices(std::move(dataset), std::move(chosen));
}

}  // namespace stoker::dataset
