// Small data sets of every kind for the test of the loader's life, some with bad samples, one with storage that is
// late.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/hash.h"
#include "stoker/dataset/pack_format.h"
#include "stoker/dataset/tar_format.h"
#include "stoker/loader/held_data_test.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::loader {

enum class LifeKind : std::uint8_t { array, folder, tar, raw_pack, encoded_pack, held, store, kCount };

inline const char* name(LifeKind kind) {
  constexpr const char* kNames[] = {"array", "folder", "tar", "raw pack", "encoded pack", "held", "store"};
  return kNames[static_cast<std::size_t>(kind)];
}

// One data set; it is opened once per storage. The first sample is always good: the loader learns from it.
class LifeData {
 public:
  // `equal_lengths`: sounds of 40 frames, else of 20 to 59. Files of no samples are refused: size 0 is a selection of
  // none.
  LifeData(LifeKind kind, std::uint64_t size, const std::set<std::uint64_t>& bad, bool equal_lengths,
           std::uint64_t seed)
      : kind_(kind), seed_(seed), takes_none_(size == 0) {
    size = std::max<std::uint64_t>(size, 1);
    for (std::uint64_t i = 0; i < size; ++i) {
      const auto frames = static_cast<std::uint32_t>(equal_lengths ? 40 : 20 + i * 17 % 40);
      samples_.push_back(bad.contains(i) ? "damaged" : wav(frames, static_cast<std::int16_t>(i)));
    }
    switch (kind) {
      case LifeKind::array:
        folder_.write("x.npy", npy(size, 24));
        break;
      case LifeKind::folder:
        write_folder(bad);
        break;
      case LifeKind::tar:
        folder_.write("x.tar", archive().bytes);
        break;
      case LifeKind::raw_pack:
      case LifeKind::encoded_pack:
        write_pack(kind == LifeKind::raw_pack ? dataset::PackKind::raw : dataset::PackKind::encoded);
        break;
      case LifeKind::store:
        fill_store(bad);
        break;
      case LifeKind::held:
      case LifeKind::kCount:
        break;
    }
  }

  dataset::DatasetPtr open(storage::Storage storage) const {
    dataset::DatasetPtr all = open_all(storage);
    return takes_none_ ? dataset::take_indices(std::move(all), {}) : all;
  }
  // For LifeKind::held: late now and then, and as the gates say.
  std::shared_ptr<HeldData> open_held() const { return std::make_shared<HeldData>(samples_, seed_); }

 private:
  dataset::DatasetPtr open_all(storage::Storage storage) const {
    if (kind_ == LifeKind::held) return open_held();
    if (kind_ == LifeKind::folder) return tree_;
    if (kind_ == LifeKind::store) return open_uncached(store_->address("bucket"));
    dataset::OpenOptions options;
    options.storage = storage;
    const char* const file = kind_ == LifeKind::array ? "x.npy" : kind_ == LifeKind::tar ? "x.tar" : "x.pack";
    return open_uncached(folder_.path(file), options);
  }

  struct Archive {
    std::string bytes;
    std::vector<std::uint64_t> offsets;
  };

  // Some of the bad samples are files that went away, or changed, since the folder was listed.
  void write_folder(const std::set<std::uint64_t>& bad) {
    std::vector<std::string> to_remove, to_cut;
    for (std::uint64_t i = 0; i < samples_.size(); ++i) {
      const std::string file = fmt::format("tree/{}/{:03}.wav", i % 3 == 0 ? "a" : "b", i);
      if (!bad.contains(i) || i % 3 == 0) {
        folder_.write(file, samples_[i]);
        continue;
      }
      folder_.write(file, wav(40, 0));
      (i % 3 == 1 ? to_remove : to_cut).push_back(folder_.path(file));
    }
    tree_ = open_uncached(folder_.path("tree"));
    for (const std::string& file : to_remove) std::filesystem::remove(file);
    for (const std::string& file : to_cut) std::filesystem::resize_file(file, 50);
  }

  // Some of the bad samples are requests that fail, or bodies that end too early.
  void fill_store(const std::set<std::uint64_t>& bad) {
    store_ = std::make_unique<storage::MemoryStore>();
    store_->set_latency(std::chrono::microseconds(100));
    for (std::uint64_t i = 0; i < samples_.size(); ++i) {
      const std::string name = fmt::format("bucket/{}/{:03}.wav", i % 3 == 0 ? "a" : "b", i);
      store_->put(name, bad.contains(i) && i % 3 != 0 ? wav(40, 0) : samples_[i]);
      if (!bad.contains(i)) continue;
      if (i % 3 == 1) store_->fail(name, {ErrorKind::unavailable, "503 Slow Down", "", true, false});
      if (i % 3 == 2) store_->cut_short(name, 50);
    }
  }

  Archive archive() const {
    Archive archive;
    for (std::uint64_t i = 0; i < samples_.size(); ++i) {
      archive.bytes += dataset::tar_header(fmt::format("{:03}.wav", i), samples_[i].size(), 0);
      archive.offsets.push_back(archive.bytes.size());
      archive.bytes += samples_[i];
      archive.bytes.resize(dataset::tar_padded(archive.bytes.size()), '\0');
    }
    archive.bytes.append(2 * dataset::kTarBlock, '\0');
    return archive;
  }

  void write_pack(dataset::PackKind kind) {
    constexpr std::uint64_t kRowBytes = 24;
    const std::uint64_t count = samples_.size();
    const bool raw = kind == dataset::PackKind::raw;
    dataset::PackManifest pack;
    pack.stoker_version = "0.1.0";
    pack.kind = kind;
    pack.count = count;
    pack.fingerprint = seed_;
    pack.content = raw ? "array" : "wav";
    if (raw) pack.shape = {kRowBytes};
    const Archive members = archive();
    const std::uint64_t shape[] = {count, kRowBytes};
    std::string shard = raw ? dataset::npy_header(DType::u8, shape) : members.bytes, names;
    std::string index = dataset::index_header(count, pack.label_kind);
    for (std::uint64_t i = 0; i < count; ++i) {
      dataset::PackRow row;
      row.id = static_cast<std::int64_t>(500 + i);
      row.offset = raw ? shard.size() : members.offsets[i];
      row.bytes = raw ? kRowBytes : samples_[i].size();
      if (raw) shard.append(kRowBytes, static_cast<char>(i));
      index.append(reinterpret_cast<const char*>(&row), sizeof row);
      dataset::append_name(names, fmt::format("{:03}", i));
    }
    const std::string shard_name = dataset::shard_name(kind, 0);
    pack.shards = {{shard_name, shard.size(), count}};
    folder_.write("x.pack/" + shard_name, shard);
    const auto add = [&](std::string_view name, const std::string& bytes) {
      pack.files.push_back({std::string(name), bytes.size(), hash_text(bytes)});
      folder_.write(fmt::format("x.pack/{}", name), bytes);
    };
    add(dataset::kPackIndex, index);
    add(dataset::kPackNames, names);
    folder_.write("x.pack/pack.json", dataset::to_json(pack));
  }

  LifeKind kind_;
  std::uint64_t seed_;
  bool takes_none_;
  std::unique_ptr<storage::MemoryStore> store_;
  Folder folder_;
  std::vector<std::string> samples_;
  dataset::DatasetPtr tree_;
};

}  // namespace stoker::loader
