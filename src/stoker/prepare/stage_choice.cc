#include "stoker/prepare/stage_choice.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/base/permutation.h"
#include "stoker/base/units.h"
#include "stoker/dataset/where.h"

namespace stoker::prepare {
namespace {

constexpr std::string_view kIndexName = "index.csv";
constexpr std::size_t kNamedFolders = 10;          // of a source, in a hint
constexpr std::uint64_t kSplitKey = 0x73706C6974;  // separates the draw of splits from that of subsets

using dataset::DatasetPtr;

class Chooser {
 public:
  Chooser(const StageOptions& options, const dataset::Progress& progress) : options_(options) {
    opening_.cache_dir = options.cache_dir;
    opening_.label = options.label;
    opening_.skip_losses = options.on_error == loader::OnError::skip;
    opening_.progress = progress;
  }

  StageChoice choose() {
    if (options_.splits.empty()) {
      DatasetPtr data = narrow_classes(dataset::open(options_.source, opening_));
      if (options_.narrowing.subset != 0)
        data = dataset::take_subset(std::move(data), options_.narrowing.subset, options_.narrowing.subset_seed);
      choice_.parts.push_back({"", std::move(data)});
    } else if (options_.narrowing.subset != 0) {
      throw Error(ErrorKind::usage,
                  format_text("{} and {} both say how many samples", option("subset"), option("split")),
                  format_text("leave {} out: each split has a number of its own", option("subset")));
    } else if (DatasetPtr first = try_open(folder_of(options_.splits.front()))) {
      take_folders(std::move(first));
    } else {
      draw(narrow_classes(dataset::open(options_.source, opening_)));
    }
    for (StagePart& part : choice_.parts) {
      if (part.classes.empty()) part.classes = part.data->facts().classes;
      for (const std::string& note : part.data->facts().notes)
        choice_.notes.push_back(part.folder.empty() ? note : fmt::format("{}: {}", part.folder, note));
    }
    return std::move(choice_);
  }

 private:
  std::string folder_of(const StageSplit& split) const {
    return fmt::format("{}{}{}", options_.source, options_.source.ends_with('/') ? "" : "/", split.name);
  }

  // Null: there is no such folder.
  DatasetPtr try_open(const std::string& address) const {
    try {
      return dataset::open(address, opening_);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::not_found) throw;
      return nullptr;
    }
  }

  DatasetPtr narrow_classes(DatasetPtr data) {
    choice_.classes_of_source = data->facts().classes.size();
    const dataset::Narrowing& narrowing = options_.narrowing;
    if (!narrowing.where.empty()) data = dataset::take_where(std::move(data), narrowing.where);
    if (!narrowing.class_list.empty()) data = dataset::take_class_list(std::move(data), narrowing.class_list);
    if (narrowing.class_subset != 0)
      data = dataset::take_classes(std::move(data), narrowing.class_subset, narrowing.class_subset_seed);
    return data;
  }

  void take_folders(DatasetPtr first) {
    const bool narrows = !options_.narrowing.class_list.empty() || options_.narrowing.class_subset != 0;
    std::vector<std::string> classes;
    for (const StageSplit& split : options_.splits) {
      DatasetPtr data;
      if (first) {
        data = narrow_classes(std::exchange(first, nullptr));
        classes = data->facts().classes;
      } else {
        data = try_open(folder_of(split));
        if (!data) refuse_missing(split);
        if (narrows) data = take_same_classes(std::move(data), classes, split.name);
      }
      if (split.count != 0) data = dataset::take_subset(std::move(data), split.count, options_.narrowing.subset_seed);
      choice_.parts.push_back({split.name, std::move(data), narrows ? classes : std::vector<std::string>{}});
    }
  }

  [[noreturn]] void refuse_missing(const StageSplit& split) {
    const DatasetPtr whole = try_open(options_.source);
    const std::vector<std::string> folders = whole ? whole->facts().classes : std::vector<std::string>{};
    throw Error(ErrorKind::not_found,
                fmt::format("cannot copy the split `{}`: `{}` has no folder `{}` with samples", split.name,
                            options_.source, split.name),
                folders.empty()
                    ? std::string()
                    : fmt::format("it has {}",
                                  fmt::join(std::span(folders).first(std::min(kNamedFolders, folders.size())), ", ")));
  }

  // A class that is missing here is worth a note; the others are taken.
  DatasetPtr take_same_classes(DatasetPtr data, const std::vector<std::string>& classes, const std::string& split) {
    const std::set<std::string> known(data->facts().classes.begin(), data->facts().classes.end());
    std::vector<std::string> here, missing;
    for (const std::string& name : classes) (known.contains(name) ? here : missing).push_back(name);
    if (!missing.empty()) {
      choice_.notes.push_back(fmt::format("{}: it lacks {} of the {} classes, such as `{}`; they are empty folders",
                                          split, format_count(missing.size()), format_count(classes.size()),
                                          missing.front()));
    }
    if (here.empty()) {
      throw Error(ErrorKind::not_found, fmt::format("cannot take the classes of `{}` from `{}`: it has none of them",
                                                    options_.splits.front().name, data->facts().address));
    }
    return dataset::take_class_list(std::move(data), here);
  }

  // The source has no folders of these names: its samples are shared out.
  void draw(const DatasetPtr& data) {
    std::uint64_t wanted = 0, without_count = 0;
    for (const StageSplit& split : options_.splits) {
      wanted += split.count;
      without_count += split.count == 0;
    }
    const std::uint64_t size = data->size();
    if (without_count > 1 || wanted + without_count > size) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot split `{}`: it has no folder `{}`, so its {} samples would be shared out, and {}",
                              options_.source, options_.splits.front().name, format_count(size),
                              without_count > 1 ? "two splits take all" : "the splits take more than that"),
                  "give the folder that holds the splits, or a number of samples for each");
    }
    choice_.notes.push_back(fmt::format("`{}` has no folder `{}`: its samples are shared out among the splits",
                                        options_.source, options_.splits.front().name));
    const Permutation permutation(size, mix(options_.narrowing.subset_seed, kSplitKey));
    std::uint64_t at = 0;
    for (const StageSplit& split : options_.splits) {
      std::vector<std::uint64_t> indices(split.count != 0 ? split.count : size - wanted);
      for (std::uint64_t& index : indices) index = permutation(at++);
      std::sort(indices.begin(), indices.end());
      choice_.parts.push_back({split.name, dataset::take_indices(data, std::move(indices))});
    }
  }

  const StageOptions& options_;
  dataset::OpenOptions opening_;
  StageChoice choice_;
};

}  // namespace

std::vector<StageSplit> parse_splits(std::string_view text) {
  std::vector<StageSplit> splits;
  const auto refuse = [&] {
    throw Error(ErrorKind::usage, fmt::format("cannot read the splits `{}`", text),
                "write them like train=50000,val=1000; a name alone takes all of it");
  };
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    const std::size_t equals = word.find('=');
    StageSplit split{std::string(word.substr(0, equals)), 0};
    if (equals != std::string_view::npos) {
      const std::string_view number = word.substr(equals + 1);
      const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), split.count);
      if (error != std::errc() || end != number.data() + number.size() || split.count == 0) refuse();
    }
    const bool is_name =
        !split.name.empty() && !split.name.starts_with('.') && split.name.find('/') == std::string::npos;
    const bool is_new =
        std::none_of(splits.begin(), splits.end(), [&](const StageSplit& other) { return other.name == split.name; });
    if (!is_name || !is_new) refuse();
    splits.push_back(std::move(split));
    if (comma == std::string_view::npos) return splits;
    rest.remove_prefix(comma + 1);
  }
}

Json settings_of(const StageOptions& options) {
  Json settings = options.narrowing.to_json();
  if (!options.label.empty()) settings["label"] = options.label;
  if (options.splits.empty()) return settings;
  settings["splits"] = Json::object();
  for (const StageSplit& split : options.splits) settings["splits"][split.name] = split.count;
  settings["subset_seed"] = options.narrowing.subset_seed;
  return settings;
}

std::string StagePart::below(const std::string& name) const {
  return folder.empty() ? name : fmt::format("{}/{}", folder, name);
}

std::string StagePart::path(std::uint64_t index) const {
  return below(data->name(index));
}

bool StagePart::is_index() const {
  return data->facts().kind.starts_with(kIndexName);
}

std::string StagePart::index_path() const {
  return below(std::string(kIndexName));
}

std::vector<std::string> StagePart::class_folders() const {
  std::vector<std::string> folders;
  if (is_index()) return folders;
  for (const std::string& name : classes) folders.push_back(below(name));
  return folders;
}

StageChoice choose_samples(const StageOptions& options, const dataset::Progress& progress) {
  return Chooser(options, progress).choose();
}

}  // namespace stoker::prepare
