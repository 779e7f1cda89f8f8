// Patches of volumes: the worker cuts them from mapped volumes, from planes that were read, or from decoded chunks, and
// normalizes, mirrors and turns them on the way into the batch; operations of `transform` follow. Outputs: "image",
// "mask" where there are masks, and the coordinates of the corner.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "stoker/dataset/volumes.h"
#include "stoker/loader/kind.h"
#include "stoker/transform/volume_plan.h"

namespace stoker::loader {

class VolumeKind final : public Kind {
 public:
  VolumeKind(std::shared_ptr<const dataset::VolumeSet> volumes, const LoaderOptions& options);  // throws Error

  void announce(const SampleKey& key) const noexcept override;
  RowResult measure(codec::Bytes bytes, std::uint64_t& length) const noexcept override;
  RowResult make(codec::Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t& length, Scratch& scratch,
                 SeekStore* seek) const noexcept override;

 private:
  struct Planes;  // where the planes of one patch lie

  // Where the planes of the patch are in memory: in the mapping, in the parts from `first_part` on, or in `scratch`,
  // where the chunks are copied together.
  RowResult find_planes(const dataset::Volume& volume, std::uint64_t number, const dataset::Placement& placement,
                        std::uint32_t first_part, codec::Bytes joined, const SampleKey& key, Scratch& scratch,
                        Planes& planes) const noexcept;
  RowResult gather(const dataset::Volume& volume, std::uint64_t number, const dataset::Placement& placement,
                   const SampleKey& key, Scratch& scratch, std::byte* into) const noexcept;
  RowResult copy_chunk(const dataset::Volume& volume, std::uint64_t number, std::uint64_t chunk,
                       const dataset::Extents& corner, const dataset::Placement& placement, const SampleKey& key,
                       Scratch& scratch, std::byte* into) const;
  RowResult decode(const dataset::Volume& volume, std::uint64_t number, std::uint64_t chunk, const SampleKey& key,
                   std::byte* into, Scratch& scratch) const;
  // Whether less than a chunk is read or unpacked, as it is not kept for other patches.
  bool takes_pieces(const dataset::Volume& volume, const SampleKey& key) const noexcept;
  RowResult take_planes(const dataset::Volume& volume, std::uint64_t chunk, std::uint64_t first, std::uint64_t count,
                        Scratch& scratch, const std::byte*& planes) const;
  void write_image(const Planes& planes, const dataset::Placement& placement, const Slot& slot,
                   std::byte* line) const noexcept;
  void write_mask(const Planes& planes, const dataset::Placement& placement, const Slot& slot,
                  std::byte* line) const noexcept;
  // A cause that names the chunk. Static, as causes are: the texts live as long as the kind.
  const char* cause_in_chunk(const dataset::Volume& volume, std::uint64_t chunk, const char* cause) const;
  const char* cause_of_cut(const dataset::Volume& volume) const noexcept;
  const char* kept_cause(std::string text, const char* fallback) const;

  const std::shared_ptr<const dataset::VolumeSet> volumes_;
  const dataset::Extents patch_;
  const bool is_mixed_;  // patches come from anywhere, one after another: a chunk is seldom needed again soon
  transform::VolumePlan transforms_;
  mutable std::mutex causes_mutex_;
  mutable std::deque<std::string> causes_;
};

}  // namespace stoker::loader
