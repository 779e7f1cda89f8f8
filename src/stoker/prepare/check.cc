#include "stoker/prepare/check.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <set>
#include <unordered_map>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/dataset/packed.h"
#include "stoker/dataset/tar_format.h"
#include "stoker/os/fd.h"
#include "stoker/os/file.h"
#include "stoker/os/file_facts.h"
#include "stoker/os/page_cache.h"
#include "stoker/prepare/check_volumes.h"
#include "stoker/prepare/manifest_repair.h"
#include "stoker/prepare/pack_folder.h"
#include "stoker/prepare/repair.h"
#include "stoker/prepare/sample_stream.h"
#include "stoker/prepare/seek_record.h"

namespace stoker::prepare {
namespace {

using dataset::Packed;
using dataset::PackKind;

class Checking {
 public:
  explicit Checking(const CheckOptions& options) : options_(options), progress_(options.progress) {}

  CheckReport run() {
    report_.address = options_.address;
    report_.decoded = options_.decode;
    report_.is_pack = has(dataset::kPackJson) || (has(dataset::kPackIndex) && has(dataset::kPackNames));
    if (report_.is_pack) {
      check_pack();
    } else {
      if (options_.repair)
        throw Error(ErrorKind::usage, fmt::format("cannot repair `{}`: it is not a pack", options_.address));
      check_samples();
    }
    report_.seconds = progress_.seconds();
    return std::move(report_);
  }

 private:
  bool say(std::string_view phase, std::uint64_t done, std::uint64_t total) {
    return progress_(phase, done, total, report_.bytes);
  }

  bool has(std::string_view name) const { return os::can_reach(fmt::format("{}/{}", options_.address, name)); }

  // Throws Error where it cannot be read.
  bool is_as_described(const dataset::PackFile& file) const {
    const std::vector<std::byte> bytes = storage::read_file(fmt::format("{}/{}", options_.address, file.name));
    return bytes.size() == file.bytes && hash_bytes(bytes) == file.xxh3;
  }

  void check_pack() {
    std::vector<dataset::ShardProblem> problems;
    std::shared_ptr<const Packed> pack;
    try {
      pack = dataset::open_packed(options_.address, {}, &problems);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::corrupt && error.kind() != ErrorKind::not_found) throw;
      report_.broken.push_back(error.message());
      if (!options_.repair) {
        report_.notes.push_back(format_text(
            "{} makes it again: pack.json from the index and the shards, else all from the source", option("repair")));
        return;
      }
      problems.clear();
      pack = open_with_new_manifest(problems);
      if (pack == nullptr) return remake(error);
    }
    std::set<std::uint32_t> shards;  // to be written again
    for (const dataset::ShardProblem& problem : problems) {
      shards.insert(problem.shard);
      report_.broken.push_back(problem.cause);
    }
    report_.kind = pack->facts().kind;
    const dataset::PackManifest& manifest = pack->manifest();
    if (manifest.kind == PackKind::encoded) check_tars(*pack, shards);
    check_other_files(manifest);
    loader::SeekFile seek;
    const bool seek_is_outdated =
        loader::SeekFile::is_outdated(fmt::format("{}/{}", options_.address, dataset::kPackSeek));
    std::string seek_problem;
    if (seek_is_outdated) {
      report_.notes.push_back(
          format_text("seek.bin was written by an earlier version of Stoker and is not used; `stoker pack` or {} makes "
                      "a new one",
                      option("repair")));
    } else {
      seek_problem = open_pack_seek(options_.address, manifest, seek);
    }
    std::unordered_map<std::uint64_t, const loader::SeekRow*> seek_rows;
    for (const loader::SeekRow& row : seek.rows()) seek_rows.emplace(row.sample, &row);
    std::atomic<bool> seek_differs{false};
    forget_cached(manifest);
    read_all(*pack, [&](StreamedSample& sample) {
      const std::uint64_t checksum = hash_bytes(sample.bytes);
      if (checksum != pack->row(sample.index).xxh3) {
        sample.problem = "its bytes are not those that were packed (the checksum differs)";
        return;
      }
      if (manifest.kind == PackKind::encoded) sample.problem = problem_of(sample.bytes);
      const auto found = seek_rows.find(sample.index);
      if (found != seek_rows.end() && !is_noted(sample.bytes, checksum, seek, *found->second, options_.decode))
        seek_differs.store(true, std::memory_order_relaxed);
    });
    if (seek_problem.empty() && seek_differs.load()) seek_problem = "seek.bin has places of other files than these";
    if (!seek_problem.empty()) report_.broken.push_back(seek_problem);
    if (!options_.repair || (report_.damaged.empty() && report_.broken.empty() && !seek_is_outdated)) return;
    repair(options_, pack, shards, !seek_problem.empty() || seek_is_outdated, report_.damaged);
    report_.broken_repaired = true;
  }

  // Where index.npy and names.txt are whole, pack.json can be made again from them. Null where pack.json can be read,
  // and says that one of its files is not whole or is missing.
  std::shared_ptr<const Packed> open_with_new_manifest(std::vector<dataset::ShardProblem>& problems) {
    const std::string path = fmt::format("{}/{}", options_.address, dataset::kPackJson);
    std::string damaged;
    if (has(dataset::kPackJson)) {
      const std::vector<std::byte> bytes = storage::read_file(path);
      damaged.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    try {
      const dataset::PackManifest manifest = dataset::parse_manifest(damaged, options_.address);
      for (const dataset::PackFile& file : manifest.files) {
        if (file.name == dataset::kPackSeek) continue;  // see open_pack_seek
        if (!has(file.name) || !is_as_described(file)) return nullptr;
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::corrupt) throw;
    }
    RemadeManifest remade = remake_manifest(options_.address, damaged);
    if (!options_.source.empty()) remade.pack.source = std::filesystem::absolute(options_.source).string();
    const PackFolder lock(options_.address);
    if (!damaged.empty()) {
      os::write_file(path + ".damaged", damaged);
      report_.notes.push_back("the damaged pack.json is kept as pack.json.damaged");
    }
    os::write_file(path, dataset::to_json(remade.pack));
    report_.notes.push_back("pack.json was made again from the index and the shards");
    report_.notes.insert(report_.notes.end(), remade.notes.begin(), remade.notes.end());
    return dataset::open_packed(options_.address, {}, &problems);
  }

  // The index, the names or the columns are gone: there is nothing to tell good samples from bad ones.
  void remake(const Error& error) {
    PackOptions again;
    try {
      const std::vector<std::byte> json =
          storage::read_file(fmt::format("{}/{}", options_.address, dataset::kPackJson));
      const dataset::PackManifest manifest =
          dataset::parse_manifest({reinterpret_cast<const char*>(json.data()), json.size()}, options_.address);
      again = options_of(manifest);
      if (!manifest.skipped.empty()) again.on_error = loader::OnError::skip;  // as the pack was made
    } catch (const Error&) {
      throw Error(error.kind(), format_text("{}; it cannot be repaired", error.text()), "make the pack again");
    }
    if (!options_.source.empty()) again.source = options_.source;
    again.destination = options_.address;
    again.force = true;
    again.progress = options_.progress;
    report_.count = make_pack(again).count;
    report_.broken_repaired = true;
    report_.notes.push_back("the index could not be trusted: the whole pack was rebuilt from its source");
  }

  // Every payload of the index is a member of its tar, and the tars are whole.
  void check_tars(const Packed& pack, std::set<std::uint32_t>& shards) {
    std::vector<std::set<std::pair<std::uint64_t, std::uint64_t>>> members(pack.manifest().shards.size());
    for (std::uint32_t s = 0; s < members.size(); ++s) {
      if (!say("reading heads", s, members.size())) throw Error(ErrorKind::unavailable, "interrupted");
      if (shards.contains(s)) continue;
      try {
        dataset::TarReader reader(pack.shard(s));
        dataset::TarMember member;
        while (reader.next(member)) members[s].emplace(member.offset, member.bytes);
      } catch (const Error& error) {
        report_.broken.push_back(error.message());
        shards.insert(s);
      }
    }
    for (std::uint64_t i = 0; i < pack.size(); ++i) {
      const dataset::PackRow row = pack.row(i);
      if (shards.contains(row.shard) || members[row.shard].contains({row.offset, row.bytes})) continue;
      report_.broken.push_back(fmt::format("{}: `{}` is at byte {} in the index, and no member begins there",
                                           pack.manifest().shards[row.shard].name, pack.name(i), row.offset));
      shards.insert(row.shard);
    }
  }

  void check_other_files(const dataset::PackManifest& manifest) {
    std::set<std::string> named = {std::string(dataset::kPackJson)};
    for (const dataset::PackShard& shard : manifest.shards) named.insert(shard.name);
    for (const dataset::PackFile& file : manifest.files) {
      named.insert(file.name);
      if (file.name == dataset::kPackSeek) continue;  // see open_pack_seek
      try {
        if (!is_as_described(file))
          report_.broken.push_back(fmt::format("{} is not the file that pack.json describes", file.name));
      } catch (const Error& error) {
        report_.broken.push_back(error.message());
      }
    }
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(options_.address, error)) {
      const std::string name = entry.path().filename().string();
      if (!named.contains(name)) report_.notes.push_back(fmt::format("`{}` is no part of the pack", name));
    }
  }

  // What the disk has is to be checked, not what is in memory.
  void forget_cached(const dataset::PackManifest& manifest) const {
    for (const dataset::PackShard& shard : manifest.shards) {
      int error_number = 0;
      const os::Fd fd = os::try_open(AT_FDCWD, fmt::format("{}/{}", options_.address, shard.name).c_str(),
                                     O_RDONLY | O_NONBLOCK, error_number);
      if (fd) os::drop_pages(fd.get());
    }
  }

  void check_samples() {
    dataset::OpenOptions opening;
    opening.label = options_.label;
    opening.skip_losses = true;
    opening.progress = [&](std::uint64_t seen) { return say("scanning", seen, 0); };
    const dataset::DatasetPtr data = dataset::open(options_.address, opening);
    report_.kind = data->facts().kind;
    report_.notes.assign(data->facts().notes.begin(), data->facts().notes.end());
    for (const dataset::Loss& loss : data->facts().losses) report_.broken.push_back(loss.message());
    const bool rows = data->facts().array.has_value();
    read_all(*data, [&](StreamedSample& sample) {
      if (!rows) sample.problem = problem_of(sample.bytes);
    });
  }

  std::string problem_of(codec::Bytes bytes) const {
    return options_.decode ? decode_problem(bytes) : head_problem(bytes);
  }

  void read_all(const dataset::Dataset& data, std::function<void(StreamedSample&)> work) {
    report_.count = data.size();
    std::vector<std::uint64_t> all(data.size());
    std::iota(all.begin(), all.end(), 0);
    StreamOptions streaming;
    streaming.work = std::move(work);
    SampleStream stream(data, std::move(all), streaming);
    std::uint64_t done = 0;
    const auto keep_going = [&] { return say("checking", done, data.size()); };
    while (std::unique_ptr<SampleStream::Chunk> chunk = stream.next(keep_going)) {
      for (const StreamedSample& sample : chunk->samples) {
        report_.bytes += sample.bytes.size();
        const std::string& cause = sample.fault.empty() ? sample.problem : sample.fault;
        if (!cause.empty()) report_.damaged.push_back({sample.index, data.name(sample.index), cause, false, {}});
      }
      done += chunk->samples.size();
      stream.give_back(std::move(chunk));
      if (!keep_going()) break;
    }
    if (done < data.size()) throw Error(ErrorKind::unavailable, "interrupted");
  }

  const CheckOptions& options_;
  ProgressTeller progress_;
  CheckReport report_;
};

}  // namespace

bool CheckReport::is_sound() const noexcept {
  return (broken.empty() || broken_repaired) &&
         std::all_of(damaged.begin(), damaged.end(), [](const Damage& one) { return one.repaired; });
}

CheckReport check(const CheckOptions& options) {
  if (std::optional<CheckReport> volumes = check_volumes(options)) return *std::move(volumes);
  return Checking(options).run();
}

}  // namespace stoker::prepare
