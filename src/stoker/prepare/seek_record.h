// seek.bin of an encoded pack (loader/seek_file.h): the places of every baseline JPEG file in it, noted while it is
// packed, so that the first epoch already decodes only what a crop touches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "stoker/dataset/packed.h"
#include "stoker/loader/seek_file.h"
#include "stoker/prepare/journal.h"
#include "stoker/prepare/seek_spill.h"

namespace stoker::prepare {

inline constexpr std::uint64_t kSeekShare = 26;  // places take at most 1/26 of their file

// Looks through a whole JPEG file, whose identity (loader::identity_of) is the checksum that the index has of it.
// `part` is a SeekRow without offset, check and sample, and the places behind it; empty for what is no baseline JPEG
// file, is damaged, or is too small to gain. The same bytes give the same part. From any thread.
void note_places(codec::Bytes file, std::uint64_t identity, std::vector<std::byte>& part) noexcept;

// Whether any sample of the pack is a JPEG file by its name.
bool has_jpeg(const dataset::Dataset& data) noexcept;

// What the old pack knows of the samples that a new one keeps. One thread.
class KeptPlaces {
 public:
  // `kept`: (position in the new pack, sample of the old one). `base` may be null, if nothing is kept.
  KeptPlaces(std::shared_ptr<const dataset::Packed> base, bool trust_old,
             const std::vector<std::pair<std::uint64_t, std::uint64_t>>& kept);

  // Notes what the old pack does not know, though it should: it has no seek.bin, or a broken one. False: interrupted.
  bool complete(SeekSpill& spill, const std::function<bool(std::uint64_t done, std::uint64_t total)>& keep_going) const;
  const loader::SeekRow* of(std::uint64_t position) const noexcept;  // null: nothing
  const loader::SeekFile& file() const noexcept { return old_; }

 private:
  std::shared_ptr<const dataset::Packed> base_;
  loader::SeekFile old_;
  std::unordered_map<std::uint64_t, const loader::SeekRow*> rows_;
  std::unordered_map<std::uint64_t, std::uint64_t> missing_;  // sample of the old pack to position
};

// Writes seek.bin into `folder` from the spills of `spill_folders` and what is kept, and adds it to `pack.files`.
// `rows` are sorted by position. Returns how many JPEG files it knows. Throws Error.
std::uint64_t write_pack_seek(const std::string& folder, const std::vector<std::string>& spill_folders,
                              std::span<const JournalRow> rows, const KeptPlaces& kept, dataset::PackManifest& pack);

// Whether a row speaks of this file; `deep`: and has the very places that are noted of it now.
bool is_noted(codec::Bytes file, std::uint64_t identity, const loader::SeekFile& seek, const loader::SeekRow& row,
              bool deep) noexcept;

// What is wrong with a pack's seek.bin; empty: nothing, or it has none. `file` is the sound one then.
std::string open_pack_seek(const std::string& address, const dataset::PackManifest& pack, loader::SeekFile& file);

}  // namespace stoker::prepare
