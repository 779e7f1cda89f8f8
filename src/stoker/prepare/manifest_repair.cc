#include "stoker/prepare/manifest_repair.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/csv_text.h"
#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/base/sample_kind.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/dataset/files.h"
#include "stoker/storage/source.h"

namespace stoker::prepare {
namespace {

using dataset::LabelKind;
using dataset::PackKind;
using dataset::PackRow;

constexpr std::size_t kIndexHead = 10;  // magic, version and length of the header of an .npy

class Remake {
 public:
  Remake(const std::string& address, std::string_view damaged) : address_(address), damaged_(damaged) {}

  RemadeManifest run() {
    pack_.stoker_version = kVersion;
    find_shards();
    read_index();
    read_names();
    read_columns();
    look_into_shards();
    name_classes();
    take_what_is_left();
    for (const std::string_view name : {dataset::kPackIndex, dataset::kPackNames, dataset::kPackColumns}) {
      if (name != dataset::kPackColumns || !pack_.columns.empty()) add_file(name);
    }
    if (std::filesystem::exists(path_of(dataset::kPackSeek))) add_file(dataset::kPackSeek);
    return {std::move(pack_), std::move(notes_)};
  }

 private:
  Error broken(const std::string& what) const {
    return Error(ErrorKind::corrupt, fmt::format("cannot make pack.json of `{}` again: {}", address_, what),
                 "make the pack again from its source");
  }

  std::string path_of(std::string_view name) const { return fmt::format("{}/{}", address_, name); }

  std::string text_of(std::string_view name) const {
    if (!std::filesystem::exists(path_of(name))) throw broken(fmt::format("{} is missing", name));
    const std::vector<std::byte> bytes = storage::read_file(path_of(name), std::uint64_t{1} << 36);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  void add_file(std::string_view name) {
    const std::string text = text_of(name);
    pack_.files.push_back({std::string(name), text.size(), hash_text(text)});
  }

  // A pack numbers its shards in the order of their names.
  void find_shards() {
    std::map<std::uint64_t, std::string> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(address_, error)) {
      const std::string name = entry.path().filename().string();
      for (const PackKind kind : {PackKind::raw, PackKind::encoded}) {
        if (name != dataset::shard_name(kind, dataset::shard_number(name))) continue;
        if (!found.empty() && kind != pack_.kind) throw broken("it holds shards of both kinds");
        pack_.kind = kind;
        found[dataset::shard_number(name)] = name;
      }
    }
    if (found.empty()) throw broken("it has no shards");
    for (const auto& [number, name] : found) {
      shards_.push_back(storage::open_source(path_of(name)));
      pack_.shards.push_back({name, shards_.back()->size_bytes(), 0});
    }
  }

  void read_index() {
    index_ = text_of(dataset::kPackIndex);
    const auto bytes = std::as_bytes(std::span(index_.data(), index_.size()));
    const auto byte = [&](std::size_t at) { return at < index_.size() ? static_cast<unsigned char>(index_[at]) : 0u; };
    const std::size_t head = kIndexHead + (byte(8) | byte(9) << 8);
    pack_.count = index_.size() > head ? (index_.size() - head) / sizeof(PackRow) : 0;
    if (pack_.count == 0) throw broken("index.npy has no rows");
    const bool is_real = index_.find("('label', '<f8')") < head;
    pack_.label_kind = is_real ? LabelKind::real : LabelKind::integer;
    rows_ = dataset::index_rows(bytes, pack_.count, pack_.label_kind, address_);
    bool has_labels = is_real;
    for (std::uint64_t i = 0; i < pack_.count && !has_labels; ++i)
      has_labels = static_cast<std::int64_t>(row(i).label) != -1;
    if (!has_labels) pack_.label_kind = LabelKind::none;
  }

  PackRow row(std::uint64_t index) const noexcept {
    PackRow row;
    std::memcpy(&row, rows_.data() + index * sizeof row, sizeof row);
    return row;
  }

  void read_names() {
    const std::string text = text_of(dataset::kPackNames);
    dataset::Fingerprint fingerprint;
    std::map<std::string_view, std::uint64_t> media;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      if (end == std::string::npos) throw broken("names.txt ends inside a line");
      names_.push_back(dataset::read_name(std::string_view(text).substr(at, end - at)));
      at = end + 1;
    }
    if (names_.size() != pack_.count)
      throw broken(fmt::format("names.txt has {} lines for the {} rows of index.npy", names_.size(), pack_.count));
    for (std::uint64_t i = 0; i < pack_.count; ++i) {
      const PackRow at = row(i);
      fingerprint.add(names_[i], at.bytes, dataset::label_of(at, pack_.label_kind));
      ++media[codec::name(codec::media_of_name(names_[i]))];
    }
    pack_.fingerprint = fingerprint.value();
    std::vector<std::string_view> words;
    words.reserve(media.size());
    for (const auto& entry : media) words.push_back(entry.first);
    if (pack_.kind == PackKind::encoded) pack_.content = fmt::format("{}", fmt::join(words, ", "));
  }

  void read_columns() {
    if (!std::filesystem::exists(path_of(dataset::kPackColumns))) return;
    const std::string text = text_of(dataset::kPackColumns);
    std::vector<CsvField> fields;
    if (text.empty() || read_row(text, 0, fields).problem != CsvProblem::none)
      throw broken("columns.csv has no header line");
    for (const CsvField& field : fields) pack_.columns.push_back(field.text());
  }

  // Where the shards and the index belong together, the payloads have the checksums that the index says. The first and
  // the last one of each shard are looked at here; `stoker check` reads them all.
  void look_into_shards() {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ends(shards_.size(), {pack_.count, 0});
    for (std::uint64_t i = 0; i < pack_.count; ++i) {
      const PackRow at = row(i);
      if (at.shard >= shards_.size())
        throw broken(fmt::format("index.npy names shard {}, and there are {}", at.shard, shards_.size()));
      const std::uint64_t whole = pack_.shards[at.shard].bytes;
      if (at.offset > whole || at.bytes > whole - at.offset)
        throw broken(fmt::format("`{}` lies beyond the end of {}", names_[i], pack_.shards[at.shard].name));
      ++pack_.shards[at.shard].count;
      auto& [first, last] = ends[at.shard];
      first = std::min(first, i), last = i;
    }
    for (std::size_t s = 0; s < shards_.size(); ++s) {
      if (pack_.shards[s].count == 0) throw broken(fmt::format("index.npy has no sample of {}", pack_.shards[s].name));
      if (!is_whole(ends[s].first) && !is_whole(ends[s].second))
        throw broken(fmt::format("{} does not hold what index.npy says", pack_.shards[s].name));
    }
    if (pack_.kind == PackKind::raw) read_shape();
  }

  bool is_whole(std::uint64_t index) const {
    const PackRow at = row(index);
    std::vector<std::byte> bytes(at.bytes);
    const storage::Read read{at.offset, bytes};
    shards_[at.shard]->read({&read, 1});
    return hash_bytes(bytes) == at.xxh3;
  }

  void read_shape() {
    std::vector<std::byte> head(std::min(dataset::kPackDataOffset, shards_[0]->size_bytes()));
    const storage::Read read{0, head};
    shards_[0]->read({&read, 1});
    codec::ArrayInfo info;
    const Result result = codec::probe_npy(head, shards_[0]->size_bytes(), info);
    if (!result.ok()) throw broken(fmt::format("{}: {}", pack_.shards[0].name, result.cause));
    pack_.dtype = info.dtype;
    pack_.shape.assign(info.dims().begin() + 1, info.dims().end());
    for (std::size_t s = 0; s < shards_.size(); ++s) {
      const std::uint64_t row_bytes = row(0).bytes;
      pack_.shards[s].count = row_bytes == 0 ? 0 : (pack_.shards[s].bytes - dataset::kPackDataOffset) / row_bytes;
    }
    const PackRow first = row(0);
    pack_.content = name(first.frames > 0   ? SampleKind::audio
                         : first.height > 0 ? SampleKind::image
                                            : SampleKind::array);
  }

  // Labels are the places of the sorted class folders, where the samples came from such folders.
  void name_classes() {
    if (pack_.label_kind != LabelKind::integer) return;
    std::map<std::uint64_t, std::string> folders;
    for (std::uint64_t i = 0; i < pack_.count; ++i) {
      const std::uint64_t label = row(i).label;
      most_label_ = std::max(most_label_, label == ~std::uint64_t{0} ? 0 : label);
      const std::size_t slash = names_[i].find('/');
      if (slash == std::string::npos) return;
      const auto [at, is_new] = folders.try_emplace(label, names_[i].substr(0, slash));
      if (at->second != std::string_view(names_[i]).substr(0, slash)) return;
    }
    std::vector<std::string> classes;
    for (const auto& [label, folder] : folders) {
      if (label != classes.size() || (!classes.empty() && folder <= classes.back())) return;
      classes.push_back(folder);
    }
    pack_.classes = std::move(classes);
  }

  // The value of a field at the top of the damaged text, if it is whole.
  std::optional<Json> left(std::string_view key) const {
    const std::string mark = fmt::format("\n \"{}\": ", key);
    const std::size_t at = damaged_.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view rest = damaged_.substr(at + mark.size());
    const std::size_t end = std::min(rest.find(",\n \""), rest.find("\n}"));
    return end == std::string_view::npos ? std::nullopt : Json::try_parse(rest.substr(0, end));
  }

  void take_what_is_left() {
    if (pack_.label_kind == LabelKind::integer && pack_.classes.empty()) {
      const std::optional<Json> classes = left("classes");
      bool fits = classes && classes->is_array() && classes->size() > most_label_;
      for (std::size_t i = 0; fits && i < classes->size(); ++i) fits = classes->at(i).is_string();
      if (fits) pack_.classes = classes->get<std::vector<std::string>>();
      if (pack_.classes.empty())
        notes_.emplace_back("the names of the classes are lost, if there were any: labels are numbers");
    }
    if (const auto source = left("source"); source && source->is_string()) pack_.source = source->get<std::string>();
    if (const auto settings = left("settings"); settings && settings->is_object()) pack_.settings = settings->dump();
    if (pack_.source.empty() || pack_.settings.empty())
      notes_.emplace_back("what the pack was made from, or how, is lost: `stoker pack --force` brings it up to date");
    if (const auto content = left("content"); content && content->is_string() && pack_.kind == PackKind::raw)
      pack_.content = content->get<std::string>();
    if (const auto rate = left("rate_hz"); rate && rate->is_natural() && rate->get<std::uint64_t>() <= UINT32_MAX) {
      pack_.rate_hz = rate->get<std::uint32_t>();
    } else if (pack_.kind == PackKind::raw && (pack_.content == name(SampleKind::audio) || pack_.content == "sound")) {
      notes_.emplace_back("the sample rate of the audio is lost");  // "sound": as earlier versions wrote it
    }
    const std::optional<Json> skipped = left("skipped");
    if (!skipped || !skipped->is_array()) return;
    for (const Json& one : *skipped) {
      if (one.is_object() && one["name"].is_string() && one["cause"].is_string())
        pack_.skipped.push_back({one["name"].get<std::string>(), one["cause"].get<std::string>()});
    }
  }

  const std::string& address_;
  const std::string_view damaged_;
  dataset::PackManifest pack_;
  std::vector<std::string> notes_;
  std::vector<std::unique_ptr<storage::Source>> shards_;
  std::string index_;
  std::span<const std::byte> rows_;
  std::vector<std::string> names_;
  std::uint64_t most_label_ = 0;
};

}  // namespace

RemadeManifest remake_manifest(const std::string& address, std::string_view damaged) {
  return Remake(address, damaged).run();
}

}  // namespace stoker::prepare
