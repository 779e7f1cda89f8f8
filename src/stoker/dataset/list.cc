// A list of files, or of objects of a store, given one by one.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/dataset/files.h"
#include "stoker/dataset/kinds.h"
#include "stoker/dataset/listing.h"
#include "stoker/dataset/look_up_objects.h"
#include "stoker/dataset/lookup.h"
#include "stoker/dataset/scan.h"
#include "stoker/os/fd.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {
namespace {

class ListDataset final : public Dataset {
 public:
  ListDataset(std::vector<std::pair<std::string, Label>> samples, LabelKind label_kind, const OpenOptions& options,
              std::vector<std::string> classes, bool ids_are_places)
      : folder_(os::open_file(".", O_RDONLY | O_DIRECTORY)), ids_are_places_(ids_are_places) {
    if (samples.empty()) throw Error(ErrorKind::not_found, "cannot make a data set of an empty list");
    facts_.address = fmt::format("list of {} files", format_count(samples.size()));
    facts_.kind = "list";
    facts_.label_kind = label_kind;
    facts_.classes = std::move(classes);
    ends_.reserve(samples.size());
    if (label_kind != LabelKind::none) labels_.reserve(samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::string& path = samples[i].first;
      if (path.empty() || path.size() > kMaxPath || path.find('\0') != std::string::npos) {
        throw Error(ErrorKind::usage, fmt::format("cannot take sample {} of the list: its path is {}", i,
                                                  path.empty()             ? "empty"
                                                  : path.size() > kMaxPath ? "longer than 4095 bytes"
                                                                           : "broken by a NUL byte"));
      }
      names_ += path;
      ends_.push_back(names_.size());
      const std::int64_t number = samples[i].second.integer;
      if (!facts_.classes.empty() && (number < 0 || number >= static_cast<std::int64_t>(facts_.classes.size()))) {
        throw Error(ErrorKind::usage,
                    fmt::format("cannot take sample {} of the list: its label {} is none of {} classes", i, number,
                                facts_.classes.size()));
      }
      if (label_kind == LabelKind::integer) labels_.push_back({samples[i].second.integer, 0});
      if (label_kind == LabelKind::real) labels_.push_back({-1, samples[i].second.real});
    }
    samples = {};
    enter_store();
    if (backend_ == nullptr) enter_common_folder();

    const NotFound not_found = backend_ == nullptr ? look_up_files(options) : look_up_in_store(options);
    if (not_found.count > 0) {
      char buffer[kMaxPath + 1];
      path(not_found.first, buffer);
      const std::string why = backend_ == nullptr ? why_no_file(folder_.get(), buffer, name(not_found.first))
                                                  : fmt::format("no such object: `{}`", name(not_found.first));
      if (not_found.is_refused) {
        throw Error(ErrorKind::not_found,
                    fmt::format("cannot find sample {} of the list: {}", not_found.first, not_found.cause(why)),
                    not_found.count < size() && !options.skip_losses
                        ? format_text("{} goes on without it", option("on_error", "skip"))
                        : Text());
      }
      facts_.notes.push_back(not_found.note(why));
    }

    if (!ids_are_places_) repeats_ = find_repeats(size(), [this](std::uint64_t i) { return id_of_path(name_of(i)); });
    Fingerprint fingerprint;
    for (std::uint64_t i = 0; i < size(); ++i) {
      facts_.total_bytes += sizes_[i];
      facts_.largest_bytes = std::max(facts_.largest_bytes, sizes_[i]);
      fingerprint.add(name_of(i), sizes_[i], label(i));
    }
    facts_.fingerprint = fingerprint.value();
    facts_.seek_path = seek_path(options, fmt::format("list {:016x}", facts_.fingerprint));
  }

  const Facts& facts() const noexcept override { return facts_; }
  std::uint64_t size() const noexcept override { return ends_.size(); }
  std::uint64_t id(std::uint64_t index) const noexcept override {
    if (ids_are_places_) return index;
    const std::uint64_t id = id_of_path(name_of(index));
    const std::uint64_t earlier = occurrence(repeats_, index);
    return earlier == 0 ? id : mix(id, earlier) & kIdMask;
  }
  storage::Location locate(std::uint64_t index, std::span<char> text) const noexcept override {
    const std::size_t length = path(index, text);
    if (backend_ == nullptr) return in_folder(folder_.get(), text, length, sizes_[index]);
    const char* const version = versions_.c_str() + version_at_[index];
    return storage::Location::whole_object(*backend_, length == 0 ? nullptr : text.data(),
                                           *version == '\0' ? nullptr : version, sizes_[index]);
  }
  std::span<const storage::Backend* const> backends() const noexcept override {
    return {&backend_, backend_ != nullptr ? 1u : 0u};
  }
  Label label(std::uint64_t index) const noexcept override { return labels_.empty() ? Label{} : labels_[index]; }
  codec::Media media(std::uint64_t index) const noexcept override { return codec::media_of_name(name_of(index)); }
  std::string name(std::uint64_t index) const override { return std::string(name_of(index)); }
  double column(std::size_t, std::uint64_t) const noexcept override { return std::numeric_limits<double>::quiet_NaN(); }
  std::uint64_t memory_bytes() const noexcept override {
    return held_bytes(facts_) + held_bytes(names_) + held_bytes(ends_) + held_bytes(sizes_) + held_bytes(labels_) +
           held_bytes(repeats_) + held_bytes(versions_) + held_bytes(version_at_);
  }

 private:
  std::size_t path(std::uint64_t index, std::span<char> out) const noexcept {
    return out.empty() ? 0 : join(out, name_of(index).substr(in_folder_));
  }

  // Where the first sample is an object of a store, all have to be.
  void enter_store() {
    backend_ = storage::store_of(name_of(0));
    for (std::uint64_t i = 1; i < size(); ++i) {
      if (storage::store_of(name_of(i)) == backend_) continue;
      throw Error(
          ErrorKind::usage,
          fmt::format("cannot take sample {} of the list: `{}` lies in another store than `{}`", i, name(i), name(0)),
          "a list has local files, or objects of one kind of store");
    }
    if (backend_ == nullptr) return;
    in_folder_ = backend_->scheme().size() + std::string_view("://").size();
    facts_.address = fmt::format("list of {} objects", format_count(size()));
    facts_.notes = backend_->notes();
  }

  NotFound look_up_files(const OpenOptions& options) {
    sizes_.resize(size());
    return look_up(
        sizes_,
        [this](std::uint64_t i) {
          char buffer[kMaxPath + 1];
          path(i, buffer);
          return size_of_file(folder_.get(), buffer);
        },
        options);
  }

  NotFound look_up_in_store(const OpenOptions& options) {
    std::vector<std::string_view> names;
    names.reserve(size());
    for (std::uint64_t i = 0; i < size(); ++i) names.push_back(name_of(i).substr(in_folder_));
    const auto objects = look_up_objects(*backend_, names, options);
    version_at_.reserve(size());
    for (const std::string_view name : names) {
      version_at_.push_back(versions_.size());
      versions_.append(objects.at(name).version).push_back('\0');
    }
    sizes_.resize(size());
    return look_up(
        sizes_, [&](std::uint64_t i) { return objects.at(names[i]).bytes; }, options);
  }

  // The kernel then looks up one name per file instead of the whole path, as it does for a folder.
  void enter_common_folder() {
    std::string_view common = name_of(0);
    for (std::uint64_t i = 0; i < size() && !common.empty(); ++i) {
      const std::string_view other = name_of(i);
      const auto apart = std::mismatch(common.begin(), common.end(), other.begin(), other.end()).first;
      common = common.substr(0, static_cast<std::size_t>(apart - common.begin()));
      common = common.substr(0, common.rfind('/') + 1);  // npos + 1 is 0
    }
    if (common.empty()) return;
    int error_number = 0;
    os::Fd folder = os::try_open(folder_.get(), std::string(common).c_str(), O_PATH | O_DIRECTORY, error_number);
    if (!folder) return;  // look_up() says which file is missing
    folder_ = std::move(folder);
    in_folder_ = common.size();
  }

  std::string_view name_of(std::uint64_t index) const noexcept {
    const std::uint64_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(names_).substr(begin, ends_[index] - begin);
  }

  // The folder that all samples lie in, as it was when the list was opened: a later chdir changes nothing.
  os::Fd folder_;
  bool ids_are_places_;
  std::size_t in_folder_ = 0;                  // bytes of every name that folder_, or the scheme, stands for
  const storage::Backend* backend_ = nullptr;  // not null: all samples are objects of it
  std::string versions_;                       // of objects, each with a NUL
  std::vector<std::uint64_t> version_at_;      // in versions_
  Facts facts_;
  std::string names_;
  std::vector<std::uint64_t> ends_;  // in names_
  std::vector<std::uint64_t> sizes_;
  std::vector<Label> labels_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> repeats_;
};

}  // namespace

DatasetPtr from_list(std::vector<std::pair<std::string, Label>> samples, LabelKind label_kind,
                     const OpenOptions& options, std::vector<std::string> classes, bool ids_are_places) {
  return open_interruptibly(options, [&](const OpenOptions& asking) {
    return narrow_and_widen(
        std::make_shared<ListDataset>(std::move(samples), label_kind, asking, std::move(classes), ids_are_places),
        asking);
  });
}

}  // namespace stoker::dataset
