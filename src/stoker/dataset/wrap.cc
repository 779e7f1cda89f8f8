// Subsets, class subsets and repetitions: thin views over another data set.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/base/permutation.h"
#include "stoker/base/units.h"
#include "stoker/dataset/dataset.h"
#include "stoker/dataset/files.h"

namespace stoker::dataset {
namespace {

// Separate the choices, so that one seed gives unrelated samples and classes.
constexpr std::uint64_t kSubsetKey = 0x737562736574;
constexpr std::uint64_t kClassesKey = 0x636C6173736573;
constexpr std::uint64_t kClassListKey = 0x6C697374;
constexpr std::uint64_t kInflateKey = 0x696E666C617465;

// `count` of [0, size), chosen by seed, ascending.
std::vector<std::uint64_t> choose(std::uint64_t size, std::uint64_t count, std::uint64_t key) {
  const Permutation permutation(size, key);
  std::vector<std::uint64_t> chosen(count);
  for (std::uint64_t i = 0; i < count; ++i) chosen[i] = permutation(i);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// Another data set seen through a change of index; everything but the index is the base's.
class View : public Dataset {
 public:
  explicit View(DatasetPtr base) : base_(std::move(base)), facts_(base_->facts()) {}

  const Facts& facts() const noexcept override { return facts_; }
  std::uint64_t id(std::uint64_t index) const noexcept override { return base_->id(inner(index)); }
  storage::Location locate(std::uint64_t index, std::span<char> text) const noexcept override {
    return base_->locate(inner(index), text);
  }
  std::uint32_t parts(std::uint64_t index, const RowKey& key) const noexcept override {
    return base_->parts(inner(index), key);
  }
  storage::Location locate_part(std::uint64_t index, const RowKey& key, std::uint32_t part,
                                std::span<char> text) const noexcept override {
    return base_->locate_part(inner(index), key, part, text);
  }
  Label label(std::uint64_t index) const noexcept override { return base_->label(inner(index)); }
  Label label_at(std::uint64_t index, std::size_t column) const noexcept override {
    return base_->label_at(inner(index), column);
  }
  codec::Media media(std::uint64_t index) const noexcept override { return base_->media(inner(index)); }
  std::string name(std::uint64_t index) const override { return base_->name(inner(index)); }
  double column(std::size_t column, std::uint64_t index) const noexcept override {
    return base_->column(column, inner(index));
  }
  std::string column_text(std::size_t column, std::uint64_t index) const override {
    return base_->column_text(column, inner(index));
  }
  std::uint64_t base_index(std::uint64_t index) const noexcept override { return base_->base_index(inner(index)); }
  std::span<const storage::Source* const> sources() const noexcept override { return base_->sources(); }
  std::span<const storage::Backend* const> backends() const noexcept override { return base_->backends(); }
  std::shared_ptr<storage::HandOver> hand_over() const noexcept override { return base_->hand_over(); }
  std::uint64_t memory_bytes() const noexcept override { return held_bytes(facts_) + base_->memory_bytes(); }

 protected:
  virtual std::uint64_t inner(std::uint64_t index) const noexcept = 0;

  DatasetPtr base_;
  Facts facts_;
};

// Some samples of the base, in its order.
class Subset : public View {
 public:
  Subset(DatasetPtr base, std::vector<std::uint64_t> chosen) : View(std::move(base)), chosen_(std::move(chosen)) {
    facts_.total_bytes = 0;
    facts_.largest_bytes = 0;
    for (const std::uint64_t index : chosen_) {
      const std::uint64_t bytes = base_->location(index).bytes;
      facts_.total_bytes += bytes;
      facts_.largest_bytes = std::max(facts_.largest_bytes, bytes);
    }
  }

  Facts& own_facts() noexcept { return facts_; }  // while it is being made
  std::uint64_t size() const noexcept override { return chosen_.size(); }
  std::uint64_t memory_bytes() const noexcept override { return held_bytes(chosen_) + View::memory_bytes(); }

 protected:
  std::uint64_t inner(std::uint64_t index) const noexcept override { return chosen_[index]; }

 private:
  std::vector<std::uint64_t> chosen_;
};

class ClassSubset final : public Subset {
 public:
  ClassSubset(DatasetPtr base, std::vector<std::uint64_t> chosen, std::vector<std::int64_t> renumbered)
      : Subset(std::move(base), std::move(chosen)), renumbered_(std::move(renumbered)) {}

  Label label(std::uint64_t index) const noexcept override {
    Label label = Subset::label(index);
    label.integer = renumbered_[static_cast<std::size_t>(label.integer)];
    return label;
  }

 private:
  std::vector<std::int64_t> renumbered_;  // by the base's class; -1: not taken
};

class Inflated final : public View {
 public:
  Inflated(DatasetPtr base, std::uint64_t times) : View(std::move(base)), once_(base_->size()), times_(times) {
    facts_.kind += fmt::format(", inflated {}x", times);
    facts_.fingerprint = mix(mix(facts_.fingerprint, kInflateKey), times);
  }

  std::uint64_t size() const noexcept override { return once_ * times_; }
  std::uint64_t stored(std::uint64_t index) const noexcept override { return base_->stored(index % once_); }
  std::uint64_t stored_count() const noexcept override { return base_->stored_count(); }
  std::uint64_t id(std::uint64_t index) const noexcept override {
    const std::uint64_t copy = index / once_;
    const std::uint64_t id = base_->id(index % once_);
    return copy == 0 ? id : mix(id, copy) & kIdMask;
  }

 protected:
  std::uint64_t inner(std::uint64_t index) const noexcept override { return index % once_; }

 private:
  std::uint64_t once_, times_;
};

// The base with one more note.
class Noted final : public View {
 public:
  Noted(DatasetPtr base, std::string note) : View(std::move(base)) { facts_.notes.push_back(std::move(note)); }
  std::uint64_t size() const noexcept override { return base_->size(); }

 protected:
  std::uint64_t inner(std::uint64_t index) const noexcept override { return index; }
};

void require_classes(const Facts& facts, std::string_view wanted, std::string_view option_name) {
  if (facts.label_kind == LabelKind::integer && !facts.classes.empty()) return;
  throw Error(ErrorKind::usage, fmt::format("cannot take {} of `{}`: it has no classes", wanted, facts.address),
              format_text("classes are the sub-folders of a folder, or a text column of an index.csv named with {}",
                          option("label")))
      .about(option_name);
}

// The samples of some classes, which are numbers in ascending order; null: there are none.
DatasetPtr only_classes(DatasetPtr dataset, const std::vector<std::uint64_t>& taken, std::uint64_t fingerprint) {
  const Facts& facts = dataset->facts();
  std::vector<std::int64_t> renumbered(facts.classes.size(), -1);
  std::vector<std::string> classes;
  for (const std::uint64_t c : taken) {
    renumbered[c] = static_cast<std::int64_t>(classes.size());
    classes.push_back(facts.classes[c]);
  }
  std::vector<std::uint64_t> chosen;
  for (std::uint64_t i = 0; i < dataset->size(); ++i) {
    const std::int64_t label = dataset->label(i).integer;  // -1: none
    if (label >= 0 && renumbered[static_cast<std::size_t>(label)] >= 0) chosen.push_back(i);
  }
  if (chosen.empty()) return nullptr;
  auto subset = std::make_shared<ClassSubset>(std::move(dataset), std::move(chosen), std::move(renumbered));
  subset->own_facts().fingerprint = fingerprint;
  subset->own_facts().classes = std::move(classes);
  subset->own_facts().kind += fmt::format(", {} classes", taken.size());
  return subset;
}

}  // namespace

DatasetPtr take_subset(DatasetPtr dataset, std::uint64_t count, std::uint64_t seed) {
  if (count == 0) throw Error(ErrorKind::usage, "cannot take a subset of 0 samples: the least is 1");
  const std::uint64_t size = dataset->size();
  if (count >= size) {
    if (count == size) return dataset;
    return std::make_shared<Noted>(std::move(dataset),
                                   fmt::format("a subset of {} samples was asked for, there are {}: all are taken",
                                               format_count(count), format_count(size)));
  }
  const std::uint64_t fingerprint = mix(mix(mix(dataset->facts().fingerprint, kSubsetKey), count), seed);
  auto subset = std::make_shared<Subset>(std::move(dataset), choose(size, count, mix(seed, kSubsetKey)));
  subset->own_facts().fingerprint = fingerprint;
  subset->own_facts().kind += fmt::format(", subset {}", count);
  return subset;
}

DatasetPtr take_indices(DatasetPtr dataset, std::vector<std::uint64_t> indices) {
  std::uint64_t fingerprint = mix(dataset->facts().fingerprint, kSubsetKey);
  for (const std::uint64_t index : indices) {
    if (index >= dataset->size())
      throw Error(ErrorKind::usage, fmt::format("cannot take sample {} of {}", index, dataset->size()));
    fingerprint = mix(fingerprint, index);
  }
  auto subset = std::make_shared<Subset>(std::move(dataset), std::move(indices));
  subset->own_facts().fingerprint = fingerprint;
  subset->own_facts().kind += fmt::format(", {} chosen", subset->size());
  return subset;
}

DatasetPtr take_classes(DatasetPtr dataset, std::uint64_t count, std::uint64_t seed) {
  if (count == 0) throw Error(ErrorKind::usage, "cannot take 0 classes: the least is 1");
  require_classes(dataset->facts(), fmt::format("{} classes", count), "class_subset");
  const std::uint64_t class_count = dataset->facts().classes.size();
  if (count >= class_count) {
    if (count == class_count) return dataset;
    return std::make_shared<Noted>(
        std::move(dataset), fmt::format("{} classes were asked for, there are {}: all are taken", format_count(count),
                                        format_count(class_count)));
  }
  const std::string address = dataset->facts().address;
  const std::uint64_t fingerprint = mix(mix(mix(dataset->facts().fingerprint, kClassesKey), count), seed);
  DatasetPtr subset = only_classes(std::move(dataset), choose(class_count, count, mix(seed, kClassesKey)), fingerprint);
  if (subset == nullptr) {
    throw Error(ErrorKind::not_found,
                fmt::format("cannot take {} classes of `{}` with seed {}: the classes chosen hold "
                            "no samples",
                            count, address, seed),
                format_text("take more classes, or another {}", option("class_subset_seed")))
        .about("class_subset");
  }
  return subset;
}

DatasetPtr take_class_list(DatasetPtr dataset, const std::vector<std::string>& names) {
  const Facts& facts = dataset->facts();
  require_classes(facts, fmt::format("the {} classes of a list", names.size()), "class_list");
  std::vector<std::uint64_t> taken;
  std::uint64_t fingerprint = mix(facts.fingerprint, kClassListKey);
  std::unordered_map<std::string_view, std::uint64_t> numbers;
  for (std::uint64_t c = 0; c < facts.classes.size(); ++c) numbers.emplace(facts.classes[c], c);
  for (const std::string& name : names) {
    const auto found = numbers.find(name);
    if (found == numbers.end()) {
      const std::vector<std::string_view> known(facts.classes.begin(), facts.classes.end());
      const std::string near = nearest(name, known.data(), known.size());
      throw Error(
          ErrorKind::not_found, fmt::format("cannot take the class `{}`: `{}` has no such class", name, facts.address),
          near.empty() ? fmt::format("it has {} classes, such as `{}`", facts.classes.size(), facts.classes.front())
                       : fmt::format("did you mean `{}`?", near))
          .about("class_list");
    }
    taken.push_back(found->second);
  }
  std::sort(taken.begin(), taken.end());
  taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
  if (taken.size() == facts.classes.size()) return dataset;
  for (const std::uint64_t c : taken) fingerprint = mix(fingerprint, hash_text(facts.classes[c]));
  const std::string address = facts.address;
  DatasetPtr subset = only_classes(std::move(dataset), taken, fingerprint);
  if (subset == nullptr) {
    throw Error(ErrorKind::not_found,
                fmt::format("cannot take the {} classes of a list from `{}`: they hold no samples there", taken.size(),
                            address))
        .about("class_list");
  }
  return subset;
}

DatasetPtr inflate(DatasetPtr dataset, std::uint64_t times) {
  if (times == 0) throw Error(ErrorKind::usage, "cannot repeat a data set 0 times: the least is 1");
  if (times == 1) return dataset;
  if (dataset->size() == 0 || times > Permutation::kMaxSize / dataset->size()) {
    throw Error(ErrorKind::usage, fmt::format("cannot repeat {} samples {} times: the most is 2^48 together",
                                              format_count(dataset->size()), format_count(times)));
  }
  return std::make_shared<Inflated>(std::move(dataset), times);
}

}  // namespace stoker::dataset
