// Tar shards as WebDataset writes them: members whose names are equal up to the first dot behind the last slash are one
// sample; the first of a kind that Stoker reads is its data, a .cls or .json beside it its label.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/dataset/crew.h"
#include "stoker/dataset/files.h"
#include "stoker/dataset/kinds.h"
#include "stoker/dataset/listing.h"
#include "stoker/dataset/lookup.h"
#include "stoker/dataset/tar_format.h"
#include "stoker/dataset/tar_links.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kMostLabelBytes = 4096;
constexpr std::uint64_t kMostJsonBytes = 1 << 20;

// A label as it was found, before all of them decide what labels are.
struct FoundLabel {
  enum class Kind : std::uint8_t { none, integer, real, text } kind = Kind::none;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
};

struct Sample {
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t name_at = 0;
  std::uint32_t name_bytes = 0;
  std::uint32_t shard = 0;
};

constexpr std::size_t kExtensionsCounted = 16;

// Members of a shard that cannot be used: how many, and the first of them.
struct Unused {
  std::uint64_t count = 0;
  std::string first;  // its name, and what is wrong with it

  template <typename Describe>
  void add(const Describe& describe) {
    if (count++ == 0) first = describe();
  }
  void add(const Unused& other) {
    if (count == 0) first = other.first;
    count += other.count;
  }
};

struct ScannedShard {
  std::string names;
  std::vector<Sample> samples;
  std::vector<FoundLabel> labels;  // one per sample
  std::vector<TarGap> gaps;
  std::vector<std::uint64_t> beside_gaps;  // samples that may have lost their label
  bool lacks_end = false;                  // it ends behind a whole member, without the marker
  std::uint64_t without_data = 0;
  Unused links;                                   // that lead to no member
  std::map<std::string, std::uint64_t> left_out;  // further members of known kinds, counted by extension
};

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

FoundLabel label_of_text(std::string_view text) {
  text = trimmed(text);
  FoundLabel label;
  if (text.empty()) return label;
  const char* const end = text.data() + text.size();
  if (const auto [at, error] = std::from_chars(text.data(), end, label.integer); error == std::errc() && at == end) {
    label.kind = FoundLabel::Kind::integer;
  } else if (const auto [stop, wrong] = std::from_chars(text.data(), end, label.real);
             wrong == std::errc() && stop == end) {
    label.kind = FoundLabel::Kind::real;
  } else {
    label.kind = FoundLabel::Kind::text;
    label.text = text;
  }
  return label;
}

FoundLabel label_of_json(std::string_view text) {
  const Json json = Json::parse_or_null(text);
  if (!json.is_object()) return {};
  for (const char* const key : {"label", "cls", "class"}) {
    const auto found = json.find(key);
    if (found == json.end()) continue;
    FoundLabel label;
    if (found->is_whole() && found->as<std::int64_t>()) {
      label.kind = FoundLabel::Kind::integer;
      label.integer = found->get<std::int64_t>();
    } else if (found->is_number()) {
      label.kind = FoundLabel::Kind::real;
      label.real = found->get<double>();
    } else if (found->is_string()) {
      label.kind = FoundLabel::Kind::text;
      label.text = found->get<std::string>();
    }
    return label;
  }
  return {};
}

class TarDataset final : public Dataset {
 public:
  TarDataset(const std::string& address, const std::vector<std::string>& paths, const OpenOptions& options) {
    facts_.address = address;
    facts_.kind = "tar";
    open_shards(paths, options);
    std::vector<ScannedShard> scanned(sources_.size());
    facts_.seek_path = seek_path(options, paths.size() == 1 ? real_path_of(address) : absolute_pattern(address));
    Crew crew(sources_.size() == 1 ? 1 : options.threads, options.progress);
    crew.run_in_parts(sources_.size(), 1, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i)
        scan(static_cast<std::uint32_t>(i), scanned[i], crew, options.skip_losses);
    });
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
      for (const std::string& path : paths) {
        try {
          sources_.push_back(storage::open_source(path, how));
        } catch (const Error& error) {
          // A shard that does not exist is a mistake in the pattern, not a loss.
          if (!options.skip_losses || error.kind() == ErrorKind::not_found) throw;
          const std::size_t cause = error.message().find(fmt::format("`{}`: ", path));
          facts_.losses.push_back(
              {path, error.message().substr(cause == std::string::npos ? 0 : cause + path.size() + 4)});
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

  void scan(std::uint32_t number, ScannedShard& shard, Crew& crew, bool skip_losses) const {
    const storage::Source& source = *sources_[number];
    if (source.size_bytes() == 0) {
      if (!skip_losses)
        throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: the file is empty", source.name()));
      shard.gaps.push_back({0, 0, "the file is empty"});
      return;
    }
    TarReader reader(source, skip_losses ? &shard.gaps : nullptr);
    TarLinks links(source);
    TarMember member;
    std::string key, last;
    bool open = false, has_data = false, is_beside_gap = false;
    Sample sample;
    FoundLabel label;
    std::uint64_t counted = 0;
    const auto close = [&] {
      if (open && has_data) {
        if (is_beside_gap && label.kind == FoundLabel::Kind::none) shard.beside_gaps.push_back(shard.samples.size());
        shard.samples.push_back(sample);
        shard.labels.push_back(std::exchange(label, {}));
        if (shard.samples.size() - counted >= 256)
          crew.count(shard.samples.size() - std::exchange(counted, shard.samples.size()));
      } else if (open && !is_beside_gap) {
        ++shard.without_data;
      }
      open = has_data = false;
      label = {};
    };
    for (std::size_t gaps = 0; reader.next(member); gaps = shard.gaps.size()) {
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
      if (extension == "cls") {
        label = label_of_text(reader.content(member, kMostLabelBytes));
      } else if (extension == "json") {
        if (label.kind == FoundLabel::Kind::none) label = label_of_json(reader.content(member, kMostJsonBytes));
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
    } else if (!ends_in_gap && reader.end() == TarEnd::none) {
      shard.lacks_end = true;
      if (open && !has_data && label.kind != FoundLabel::Kind::none)
        lose(source, shard, skip_losses,
             {0, 0, fmt::format("it ends behind `{}`: the data of that sample was cut off", last)});
    }
    close();
    crew.count(shard.samples.size() - counted);
  }

  // 0 bytes: how much is lost is not known.
  static void lose(const storage::Source& source, ScannedShard& shard, bool skip_losses, TarGap gap) {
    if (!skip_losses) throw refusal({std::string(source.name()), std::move(gap.cause), gap.offset, gap.bytes});
    shard.gaps.push_back(std::move(gap));
  }
  static Error refusal(const Loss& loss) {
    return Error(ErrorKind::corrupt, loss.message(), "on_error=\"skip\" goes on with the members that can be found");
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
      throw Error(ErrorKind::not_found,
                  fmt::format("cannot find samples in `{}`: no member ends in .jpg, .jpeg, .png, .wav, .npy or .npz",
                              facts_.address));
    }
    if (without_data > 0) {
      facts_.notes.push_back(fmt::format("left out {} of unknown kind",
                                         without_data == 1 ? "1 sample" : format_count(without_data) + " samples"));
    }
    note_members_left_out(scanned);
    Unused links;
    for (const ScannedShard& shard : scanned) links.add(shard.links);
    if (links.count > 0) {
      facts_.notes.push_back(fmt::format(
          "left out {} to no file of the tar: {}",
          links.count == 1 ? "1 link that leads" : format_count(links.count) + " links that lead", links.first));
    }
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
                                   fmt::format("`{}` lost its label to damage beside it",
                                               shard.names.substr(sample.name_at, sample.name_bytes)),
                                   sample.offset, sample.bytes});
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
        if (label.kind == Kind::integer) label.text = fmt::format("{}", label.integer);
        if (label.kind == Kind::real) label.text = fmt::format("{}", label.real);
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
