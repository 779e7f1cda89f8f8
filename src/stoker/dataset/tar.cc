// Tar shards as WebDataset writes them: members whose names are equal up to the first dot behind the last slash are one
// sample; the first of a kind that Stoker reads is its data, a .cls or .json beside it its label.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/dataset/crew.h"
#include "stoker/dataset/files.h"
#include "stoker/dataset/kinds.h"
#include "stoker/dataset/listing.h"
#include "stoker/dataset/lookup.h"
#include "stoker/dataset/tar_format.h"
#include "stoker/dataset/tar_label.h"
#include "stoker/dataset/tar_links.h"
#include "stoker/dataset/tar_shard.h"
#include "stoker/dataset/tar_window.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/cache_filler.h"
#include "stoker/storage/hand_over.h"
#include "stoker/storage/object_cache.h"
#include "stoker/storage/shared_reads.h"

namespace stoker::dataset {
namespace {

using Sample = TarSample;
using Unused = UnusedMembers;

constexpr std::size_t kExtensionsCounted = 16;

// Shards of a store that are opened and read at the same time; each waits for the network.
constexpr int kAtOnce = 32;
constexpr std::size_t kRequests = 64;           // in flight, of all of them
constexpr std::uint64_t kWindows = 256 * kMiB;  // of all shards that are read at the same time
constexpr std::uint64_t kMostWindow = 16 * kMiB;

// How shards of a store are read, and where their bytes go: see OpenOptions::memory_limit.
struct StoreShards {
  StoreShards(const storage::Backend& backend, const OpenOptions& options) : reads(backend, kRequests) {
    const std::uint64_t windows = options.memory_limit == 0 ? kWindows : std::min(kWindows, options.memory_limit / 4);
    at_once = static_cast<int>(std::clamp<std::uint64_t>(windows / kMiB, 1, kAtOnce));
    most_window = std::min(kMostWindow, windows / static_cast<std::uint64_t>(at_once));
    const std::string folder = options.use_cache ? listing_folder(options.cache_dir) : std::string();
    if (options.cache_limit > 0 && !folder.empty()) {
      disk.emplace(std::make_unique<storage::ObjectCache>(folder, options.cache_limit), backend.identity());
    } else if (options.cache_limit == 0 && options.memory_limit > 0) {
      memory = std::make_shared<storage::HandOver>(options.memory_limit / 2);
    }
  }

  storage::SharedReads reads;
  std::optional<storage::CacheFiller> disk;
  std::shared_ptr<storage::HandOver> memory;  // null: nothing is kept there
  int at_once = 1;
  std::uint64_t most_window = 0;
};

// Labels that do not lie beside their data, as `tar cf x.tar *.jpg *.cls` writes them: joined by their key once the
// shard is read. A key that has several labels or several samples without one stays as it is.
class LabelsApart {
 public:
  // `is_beside_gap`: its data may be lost in a gap, which is named already.
  void add(std::string key, FoundLabel label, bool is_beside_gap) {
    labels_[std::move(key)].push_back({std::move(label), is_beside_gap});
  }

  void join(ScannedShard& shard) {
    if (labels_.empty()) return;
    std::unordered_map<std::string_view, std::vector<std::uint64_t>> samples;  // without a label
    for (std::uint64_t i = 0; i < shard.samples.size(); ++i) {
      if (shard.labels[i].kind != FoundLabel::Kind::none) continue;
      const std::string_view name = shard.name(i);
      samples[name.substr(0, name.find('.', name.rfind('/') + 1))].push_back(i);
    }
    for (auto& [key, labels] : labels_) {
      const auto found = samples.find(key);
      if (found == samples.end() || found->second.size() > 1 || labels.size() > 1) {
        for (const Apart& label : labels) {
          if (!label.is_beside_gap) shard.labels_alone.add([&name = key] { return fmt::format("`{}`", name); });
        }
        continue;
      }
      const std::uint64_t sample = found->second[0];
      shard.labels[sample] = std::move(labels[0].label);
      std::erase(shard.beside_gaps, sample);
      shard.labels_apart.add([&] { return fmt::format("`{}`", shard.name(sample)); });
    }
  }

 private:
  struct Apart {
    FoundLabel label;
    bool is_beside_gap = false;
  };

  std::map<std::string, std::vector<Apart>> labels_;  // in the order of their keys, so that notes are the same
};

class TarDataset final : public Dataset {
 public:
  TarDataset(const std::string& address, const std::vector<std::string>& paths, const OpenOptions& options) {
    facts_.address = address;
    facts_.kind = "tar";
    open_shards(paths, options);
    std::vector<ScannedShard> scanned(sources_.size());
    facts_.seek_path = seek_path(options, !backends_.empty()  ? address
                                          : paths.size() == 1 ? real_path_of(address)
                                                              : absolute_pattern(address));
    std::optional<StoreShards> store;
    if (!backends_.empty()) store.emplace(*backends_.front(), options);
    Crew crew(sources_.size() == 1 ? 1
              : store
                  ? static_cast<int>(std::min<std::size_t>(sources_.size(), static_cast<std::size_t>(store->at_once)))
                  : options.threads,
              options.progress);
    crew.run_in_parts(sources_.size(), 1, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i) {
        const auto number = static_cast<std::uint32_t>(i);
        if (load_shard(*sources_[i], number, options, scanned[i])) {
          crew.count(scanned[i].samples.size());
        } else {
          scan(number, scanned[i], crew, options.skip_losses, store ? &*store : nullptr);
          save_shard(*sources_[i], options, scanned[i]);
        }
      }
    });
    if (store && store->memory && store->memory->held_bytes() > 0) hand_over_ = store->memory;
    store.reset();
    judge_ends(scanned, options.skip_losses);
    collect(scanned, options.skip_losses);
    repeats_ = find_repeats(size(), [this](std::uint64_t i) { return id_of_path(name_of(i)); });
    Fingerprint fingerprint;
    for (std::uint64_t i = 0; i < size(); ++i) {
      facts_.total_bytes += samples_[i].bytes;
      facts_.largest_bytes = std::max(facts_.largest_bytes, samples_[i].bytes);
      fingerprint.add(name_of(i), samples_[i].bytes, label(i));
    }
    facts_.fingerprint = fingerprint.value();
  }

  const Facts& facts() const noexcept override { return facts_; }
  std::uint64_t size() const noexcept override { return samples_.size(); }
  std::uint64_t id(std::uint64_t index) const noexcept override {
    const std::uint64_t id = id_of_path(name_of(index));
    const std::uint64_t earlier = occurrence(repeats_, index);
    return earlier == 0 ? id : mix(id, earlier) & kIdMask;
  }
  storage::Location locate(std::uint64_t index, std::span<char>) const noexcept override {
    const Sample& sample = samples_[index];
    return storage::Location::in_source(sources_[sample.shard].get(), sample.offset, sample.bytes);
  }
  Label label(std::uint64_t index) const noexcept override { return labels_.empty() ? Label{} : labels_[index]; }
  codec::Media media(std::uint64_t index) const noexcept override { return codec::media_of_name(name_of(index)); }
  std::string name(std::uint64_t index) const override { return std::string(name_of(index)); }
  double column(std::size_t, std::uint64_t) const noexcept override { return std::numeric_limits<double>::quiet_NaN(); }
  std::span<const storage::Source* const> sources() const noexcept override { return borrowed_; }
  std::span<const storage::Backend* const> backends() const noexcept override { return backends_; }
  std::shared_ptr<storage::HandOver> hand_over() const noexcept override { return hand_over_; }
  std::uint64_t memory_bytes() const noexcept override {
    return held_bytes(facts_) + held_bytes(names_) + held_bytes(samples_) + held_bytes(labels_) + held_bytes(repeats_);
  }

 private:
  std::string_view name_of(std::uint64_t index) const noexcept {
    return std::string_view(names_).substr(samples_[index].name_at, samples_[index].name_bytes);
  }

  void open_shards(const std::vector<std::string>& paths, const OpenOptions& options) {
    const auto open_all = [&](storage::Storage how) {
      sources_.clear();
      facts_.losses.clear();
      std::vector<std::unique_ptr<storage::Source>> opened(paths.size());
      std::vector<std::optional<Error>> failed(paths.size());
      const auto open_one = [&](std::uint64_t i) {
        try {
          opened[i] = storage::open_source(paths[i], how);
        } catch (const Error& error) {
          failed[i] = error;
        }
        return opened[i] != nullptr;
      };
      if (storage::store_of(paths.front()) != nullptr) {
        Crew crew(static_cast<int>(std::min<std::size_t>(kAtOnce, paths.size())), options.progress);
        crew.run_in_parts(paths.size(), 1, [&](std::uint64_t begin, std::uint64_t end) {
          for (std::uint64_t i = begin; i < end; ++i) open_one(i);
        });
      } else {
        for (std::uint64_t i = 0; i < paths.size() && (open_one(i) || options.skip_losses); ++i) {
        }
      }
      for (std::size_t i = 0; i < paths.size(); ++i) {
        if (opened[i]) {
          sources_.push_back(std::move(opened[i]));
        } else if (failed[i]) {
          // A shard that does not exist is a mistake in the pattern, not a loss.
          if (!options.skip_losses || failed[i]->kind() == ErrorKind::not_found) throw *failed[i];
          facts_.losses.push_back({paths[i], failed[i]->cause()});
        }
      }
    };
    open_all(options.storage);
    std::uint64_t total = 0;
    for (const auto& source : sources_) total += source->size_bytes();
    if (const storage::Storage settled = storage::settle(options.storage, total);
        settled == storage::Storage::direct && settled != options.storage)
      open_all(settled);
    bool are_files = true;
    for (const auto& source : sources_) {
      borrowed_.push_back(source.get());
      are_files = are_files && source->backend() == nullptr;
      if (std::find(backends_.begin(), backends_.end(), source->backend()) == backends_.end()) {
        backends_.push_back(source->backend());
      }
    }
    if (are_files) backends_.clear();
  }

  static std::string absolute_pattern(const std::string& pattern) {
    const std::size_t slash = pattern.rfind('/');
    return fmt::format("{}/{}", real_path_of(slash == std::string::npos ? "." : pattern.substr(0, slash + 1)),
                       pattern.substr(slash + 1));
  }

  // `store`: where the shard lies in one; else null.
  void scan(std::uint32_t number, ScannedShard& shard, Crew& crew, bool skip_losses, StoreShards* store) const {
    const storage::Source& source = *sources_[number];
    if (source.size_bytes() == 0) {
      if (!skip_losses)
        throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: the file is empty", source.name()));
      shard.gaps.push_back({0, 0, "the file is empty"});
      return;
    }
    TarWindow window(source, store == nullptr
                                 ? TarWindow::Store()
                                 : TarWindow::Store{&store->reads, store->memory.get(), store->most_window});
    TarReader reader(window, skip_losses ? &shard.gaps : nullptr);
    TarLinks links(window);
    TarMember member;
    std::string key, last;
    bool open = false, has_data = false, is_beside_gap = false;
    Sample sample;
    FoundLabel label;
    LabelsApart apart;
    bool ends_open = false;  // without the marker, behind a whole member
    std::uint64_t counted = 0;
    const auto close = [&] {
      if (open && has_data) {
        if (is_beside_gap && label.kind == FoundLabel::Kind::none) shard.beside_gaps.push_back(shard.samples.size());
        shard.samples.push_back(sample);
        shard.labels.push_back(std::exchange(label, {}));
        if (shard.samples.size() - counted >= 256)
          crew.count(shard.samples.size() - std::exchange(counted, shard.samples.size()));
      } else if (open && label.kind != FoundLabel::Kind::none) {
        apart.add(std::move(key), std::exchange(label, {}), is_beside_gap && !ends_open);
      } else if (open && !is_beside_gap) {
        ++shard.without_data;
      }
      open = has_data = false;
      label = {};
    };
    for (std::size_t gaps = 0; reader.next(member); gaps = shard.gaps.size()) {
      if (store != nullptr) crew.count(0);  // the next member may take long
      const bool is_behind_gap = shard.gaps.size() > gaps;
      is_beside_gap = is_beside_gap || is_behind_gap;
      last = member.name;
      if (member.kind == TarKind::other) continue;
      const std::size_t slash = member.name.rfind('/') + 1;  // npos + 1 is 0
      const std::size_t dot = member.name.find('.', slash);
      // WebDataset leaves out __meta__ members; a name without a dot, or of dots alone, is no part of a sample.
      if (dot == std::string::npos || dot == slash || member.name.compare(slash, 2, "__") == 0) continue;
      const std::string_view extension = std::string_view(member.name).substr(dot + 1);
      const bool is_used = extension == "cls" || extension == "json" || codec::media_of_name(member.name).is_known();
      if (member.kind != TarKind::file && !is_used) continue;
      const bool is_link = member.kind == TarKind::hard_link || member.kind == TarKind::symbolic_link;
      if (is_link && !links.resolve(member)) {
        shard.links.add([&] { return fmt::format("`{}` leads to `{}`", member.name, member.link); });
        continue;
      }
      const std::string_view own_key(member.name.data(), dot);
      if (!open || own_key != key) {
        close();
        key = own_key;
        open = true;
        is_beside_gap = is_behind_gap;
      }
      if (member.kind == TarKind::sparse) {
        lose(source, shard, skip_losses,
             {0, 0,
              fmt::format("`{}` is a sparse file, whose content is not in one piece; make the tar without --sparse",
                          member.name)});
        is_beside_gap = true;
        continue;
      }
      if (extension == "cls" || extension == "json") {
        if (extension == "json" && label.kind != FoundLabel::Kind::none) continue;
        const char* problem = nullptr;
        label = read_label(reader, member, extension == "json", problem);
        if (problem != nullptr) shard.bad_labels.add([&] { return fmt::format("`{}` {}", member.name, problem); });
      } else if (!is_used) {
        continue;
      } else if (has_data) {
        if (shard.left_out.size() < kExtensionsCounted || shard.left_out.contains(std::string(extension)))
          ++shard.left_out[std::string(extension)];
      } else {
        sample = {member.offset, member.bytes, shard.names.size(), static_cast<std::uint32_t>(member.name.size()),
                  number};
        shard.names += member.name;
        has_data = true;
        if (store != nullptr && store->disk && member.bytes <= window.most_bytes() &&
            store->disk->has_room(member.bytes)) {
          store->disk->add(storage::Location::in_source(&source, member.offset, member.bytes),
                           window.bytes(member.offset, member.bytes));
        }
      }
    }
    const bool ends_in_gap =
        !shard.gaps.empty() && shard.gaps.back().offset + shard.gaps.back().bytes == source.size_bytes();
    if (ends_in_gap || reader.end() != TarEnd::marker) is_beside_gap = true;
    if (!ends_in_gap && reader.end() == TarEnd::in_padding) {
      lose(source, shard, skip_losses,
           {0, 0,
            fmt::format("it ends at byte {}, inside the padding of `{}`: what followed was cut off",
                        source.size_bytes(), last)});
    }
    shard.lacks_end = ends_open = !ends_in_gap && reader.end() == TarEnd::none;
    const bool ends_in_label = open && !has_data && label.kind != FoundLabel::Kind::none;
    close();
    apart.join(shard);
    if (ends_open && (ends_in_label || shard.labels_apart.count > 0)) {
      const auto unlabelled = static_cast<std::uint64_t>(
          std::count_if(shard.labels.begin(), shard.labels.end(),
                        [](const FoundLabel& found) { return found.kind == FoundLabel::Kind::none; }));
      const std::uint64_t labels_cut = shard.labels_apart.count > 0 ? unlabelled : 0;
      if (const std::uint64_t cut = shard.labels_alone.count + labels_cut; cut > 0) {
        lose(source, shard, skip_losses,
             {0, 0,
              fmt::format("it ends behind `{}`: members of {} were cut off", last,
                          cut == 1 ? "1 sample" : format_count(cut) + " samples")});
      }
    }
    std::uint64_t sample_bytes = 0;
    for (const Sample& each : shard.samples) sample_bytes += each.bytes;
    window.keep(sample_bytes);
    crew.count(shard.samples.size() - counted);
  }

  // 0 bytes: how much is lost is not known.
  static void lose(const storage::Source& source, ScannedShard& shard, bool skip_losses, TarGap gap) {
    if (!skip_losses) throw refusal({std::string(source.name()), std::move(gap.cause), gap.offset, gap.bytes});
    shard.gaps.push_back(std::move(gap));
  }
  static Error refusal(const Loss& loss) {
    return Error(ErrorKind::corrupt, loss.message(),
                 format_text("{} goes on with the members that can be found", option("on_error", "skip")))
        .about("on_error");
  }

  // A shard whose writer closed the others, but not this one, was cut off. Where no shard is closed, the writer may
  // leave the marker out.
  void judge_ends(std::vector<ScannedShard>& scanned, bool skip_losses) {
    const auto open = static_cast<std::uint64_t>(
        std::count_if(scanned.begin(), scanned.end(), [](const ScannedShard& shard) { return shard.lacks_end; }));
    if (open == 0) return;
    const auto first = static_cast<std::size_t>(
        std::find_if(scanned.begin(), scanned.end(), [](const ScannedShard& shard) { return shard.lacks_end; }) -
        scanned.begin());
    if (open == scanned.size()) {
      facts_.notes.push_back(fmt::format(
          "{} without the end-of-archive marker, `{}` for one: if its writer was interrupted, or its copy cut off, "
          "samples are missing; the marker is two blocks of 512 zero bytes",
          open == 1 ? "1 tar shard ends" : format_count(open) + " tar shards end", sources_[first]->name()));
      return;
    }
    for (std::size_t s = first; s < scanned.size(); ++s) {
      if (scanned[s].lacks_end)
        lose(*sources_[s], scanned[s], skip_losses,
             {0, 0,
              fmt::format("it ends at byte {} without the end-of-archive marker that other shards have: what followed "
                          "was cut off",
                          sources_[s]->size_bytes())});
    }
  }

  void note_members_left_out(const std::vector<ScannedShard>& scanned) {
    std::map<std::string, std::uint64_t> all;
    for (const ScannedShard& shard : scanned)
      for (const auto& [extension, count] : shard.left_out) all[extension] += count;
    std::string words;
    for (const auto& [extension, count] : all)
      words += fmt::format("{}`.{}` ({})", words.empty() ? "" : ", ", extension, format_count(count));
    if (words.empty()) return;
    facts_.notes.push_back(
        fmt::format("only the first image, audio or array of a sample is loaded; members left out: {}", words));
  }

  void note_unused(const std::vector<ScannedShard>& scanned) {
    const auto note = [&](Unused ScannedShard::*unused, std::string_view one, std::string_view many,
                          std::string_view rest) {
      Unused all;
      for (const ScannedShard& shard : scanned) all.add(shard.*unused);
      if (all.count == 0) return;
      facts_.notes.push_back(
          fmt::format("{} {}, {} for one{}", format_count(all.count), all.count == 1 ? one : many, all.first, rest));
    };
    note(&ScannedShard::links, "link of the tar leads to no file in it", "links of the tar lead to no file in it",
         ": they are left out");
    note(&ScannedShard::bad_labels, "label cannot be read", "labels cannot be read", "");
    note(&ScannedShard::labels_apart, "label lies apart from its data", "labels lie apart from their data",
         ": they are joined by name; WebDataset wants the members of a sample side by side");
    note(&ScannedShard::labels_alone, "label has no data", "labels have no data", ": they are left out");
  }

  void collect(std::vector<ScannedShard>& scanned, bool skip_losses) {
    std::uint64_t count = 0, without_data = 0;
    bool has_labels = false;
    for (const ScannedShard& shard : scanned) {
      count += shard.samples.size(), without_data += shard.without_data;
      has_labels = has_labels || std::any_of(shard.labels.begin(), shard.labels.end(), [](const FoundLabel& label) {
                     return label.kind != FoundLabel::Kind::none;
                   });
    }
    for (std::size_t s = 0; s < scanned.size(); ++s) {
      for (TarGap& gap : scanned[s].gaps)
        facts_.losses.push_back({std::string(sources_[s]->name()), std::move(gap.cause), gap.offset, gap.bytes});
    }
    if (count == 0 && !facts_.losses.empty()) throw Error(ErrorKind::corrupt, facts_.losses[0].message());
    if (count == 0) {
      throw Error(ErrorKind::not_found, fmt::format("cannot find samples in `{}`: no member ends in {}", facts_.address,
                                                    codec::extensions("or")));
    }
    if (without_data > 0) {
      facts_.notes.push_back(fmt::format("left out {} of unknown kind",
                                         without_data == 1 ? "1 sample" : format_count(without_data) + " samples"));
    }
    note_members_left_out(scanned);
    note_unused(scanned);
    samples_.reserve(count);
    std::vector<FoundLabel> labels;
    labels.reserve(count);
    for (ScannedShard& shard : scanned) {
      std::size_t unlabelled = 0;  // in beside_gaps
      for (std::size_t i = 0; i < shard.samples.size(); ++i) {
        Sample& sample = shard.samples[i];
        const bool is_beside_gap = unlabelled < shard.beside_gaps.size() && shard.beside_gaps[unlabelled] == i;
        unlabelled += is_beside_gap;
        if (is_beside_gap && has_labels) {
          facts_.losses.push_back({std::string(sources_[sample.shard]->name()),
                                   fmt::format("`{}` lost its label to damage beside it", shard.name(i)), sample.offset,
                                   sample.bytes});
          if (!skip_losses) throw refusal(facts_.losses.back());
          continue;
        }
        sample.name_at += names_.size();
        samples_.push_back(sample);
        labels.push_back(std::move(shard.labels[i]));
      }
      names_ += shard.names;
      shard = {};
    }
    decide_labels(labels);
  }

  void decide_labels(std::vector<FoundLabel>& found) {
    using Kind = FoundLabel::Kind;
    const auto count = [&](Kind kind) {
      return static_cast<std::uint64_t>(
          std::count_if(found.begin(), found.end(), [&](const FoundLabel& label) { return label.kind == kind; }));
    };
    const std::uint64_t none = count(Kind::none), texts = count(Kind::text), reals = count(Kind::real);
    if (none == found.size()) return;
    if (none > 0) {
      const auto first = static_cast<std::uint64_t>(
          std::find_if(found.begin(), found.end(), [](const FoundLabel& label) { return label.kind == Kind::none; }) -
          found.begin());
      facts_.notes.push_back(fmt::format("{} of {} samples have no label, `{}` for one: theirs is -1",
                                         format_count(none), format_count(found.size()), name(first)));
    }
    labels_.resize(found.size());
    if (texts > 0) {
      for (FoundLabel& label : found) {
        if (label.text.empty() && label.kind == Kind::integer) label.text = fmt::format("{}", label.integer);
        if (label.text.empty() && label.kind == Kind::real) label.text = fmt::format("{}", label.real);
        if (label.kind != Kind::none) facts_.classes.push_back(label.text);
      }
      std::sort(facts_.classes.begin(), facts_.classes.end());
      facts_.classes.erase(std::unique(facts_.classes.begin(), facts_.classes.end()), facts_.classes.end());
      facts_.label_kind = LabelKind::integer;
    } else {
      facts_.label_kind = reals > 0 ? LabelKind::real : LabelKind::integer;
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      const FoundLabel& label = found[i];
      if (label.kind == Kind::none) {
        labels_[i] = {-1, facts_.label_kind == LabelKind::real ? std::numeric_limits<float>::quiet_NaN() : 0};
      } else if (texts > 0) {
        labels_[i].integer =
            std::lower_bound(facts_.classes.begin(), facts_.classes.end(), label.text) - facts_.classes.begin();
      } else if (facts_.label_kind == LabelKind::real) {
        labels_[i].real =
            static_cast<float>(label.kind == Kind::integer ? static_cast<double>(label.integer) : label.real);
      } else {
        labels_[i].integer = label.integer;
      }
    }
  }

  Facts facts_;
  std::vector<std::unique_ptr<storage::Source>> sources_;
  std::vector<const storage::Source*> borrowed_;
  std::vector<const storage::Backend*> backends_;
  std::shared_ptr<storage::HandOver> hand_over_;
  std::string names_;
  std::vector<Sample> samples_;
  std::vector<Label> labels_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> repeats_;
};

}  // namespace

DatasetPtr open_tar(const std::string& address, const OpenOptions& options) {
  return std::make_shared<TarDataset>(address, expand_braces(address), options);
}

}  // namespace stoker::dataset
