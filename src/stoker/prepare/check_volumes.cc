#include "stoker/prepare/check_volumes.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/scratch.h"
#include "stoker/codec/codec.h"
#include "stoker/prepare/pack_volumes.h"
#include "stoker/storage/read_whole.h"

namespace stoker::prepare {
namespace {

constexpr std::uint64_t kHeadOfBricks = 4096;  // bytes; an array of bricks begins behind them

// The brick of a pack without its pack.json, as the first array has it. Zeros: that cannot be read either.
dataset::Extents brick_on_disk(const std::string& folder) {
  codec::ArrayInfo array;
  try {
    const auto source = storage::open_source(fmt::format("{}/image-00000.npy", folder));
    std::vector<std::byte> head(std::min(source->size_bytes(), kHeadOfBricks));
    const storage::Read read{0, head};
    source->read({&read, 1});
    if (!codec::probe_npy(head, source->size_bytes(), array).ok() || array.rank < 6) return {};
  } catch (const Error&) {
    return {};
  }
  return {array.shape[3], array.shape[4], array.shape[5]};
}

void pack_again(const CheckOptions& options, const std::optional<dataset::VolumePack>& pack, CheckReport& report) {
  PackVolumesOptions again;
  again.source = !options.source.empty() ? options.source : pack ? pack->source : "";
  if (again.source.empty()) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot repair `{}`: its pack.json, which names the source, is damaged", options.address),
                format_text("{} names the source", option("source")))
        .about("source");
  }
  again.destination = options.address;
  again.brick = pack ? pack->volumes.front().image.info.chunk : brick_on_disk(options.address);
  again.rebuild = true;
  again.progress = options.progress;
  try {
    const PackVolumesReport made = pack_volumes(again);
    report.notes.push_back(fmt::format("all volumes were packed again from `{}`, in bricks of {}x{}x{}", again.source,
                                       made.brick[0], made.brick[1], made.brick[2]));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::not_found) throw;
    throw Error(error.kind(), format_text("cannot repair `{}`: {}", options.address, error.text()),
                format_text("{} names where the source is now", option("source")));
  }
  report.broken_repaired = true;
  for (Damage& damage : report.damaged) damage.repaired = true;
}

}  // namespace

std::optional<CheckReport> check_volumes(const CheckOptions& options) {
  CheckReport report;
  std::optional<dataset::VolumePack> pack;
  try {
    pack = dataset::find_volume_pack(options.address);
    if (!pack) return std::nullopt;
    report = check_volume_pack(options.address, *pack, options.progress);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
    report.address = options.address;
    report.kind = "volume pack";
    report.unit = "brick";
    report.is_pack = true;
    report.broken.push_back(error.message());
  }
  if (report.is_sound()) return report;
  if (options.repair) {
    pack_again(options, pack, report);
  } else if (pack) {
    report.notes.push_back(format_text("{} packs all volumes again from `{}`", option("repair"), pack->source));
  } else {
    report.notes.push_back(format_text("{} with {} packs all volumes again from the source that you name",
                                       option("repair"), option("source")));
  }
  return report;
}

CheckReport check_volume_pack(const std::string& address, const dataset::VolumePack& pack,
                              const TellProgress& progress) {
  CheckReport report;
  ProgressTeller teller(progress);
  report.address = address;
  report.kind = "volume pack";
  report.unit = "brick";
  report.is_pack = report.decoded = true;
  std::uint64_t total = 0;
  for (const dataset::VolumePack::Entry& entry : pack.volumes)
    total += entry.image.info.chunks() + (entry.mask ? entry.mask->info.chunks() : 0);
  for (const dataset::VolumePack::Entry& entry : pack.volumes) {
    for (const dataset::PackedBricks* const bricks : {&entry.image, entry.mask ? &*entry.mask : nullptr}) {
      if (bricks == nullptr) continue;
      std::unique_ptr<dataset::Volume> volume;
      try {
        volume = dataset::open_bricks(address, *bricks, {});
      } catch (const Error& error) {
        report.broken.push_back(error.message());
        report.count += bricks->info.chunks();
        continue;
      }
      std::vector<std::byte> encoded, decoded(bricks->info.chunk_bytes());
      Scratch scratch;
      for (std::uint64_t brick = 0; brick < bricks->info.chunks(); ++brick, ++report.count) {
        const storage::WholeRead read = storage::read_whole(volume->locate_chunk(brick, {}), encoded);
        const Result result = read.ok() ? volume->decode_chunk(brick, read.bytes, decoded.data(), scratch) : Result{};
        if (!read.ok() || !result.ok()) {
          report.damaged.push_back({report.count, volume->chunk_name(brick),
                                    read.ok() ? std::string(result.cause) : read.failure.text, false, ""});
        }
        report.bytes += decoded.size();
        if (!teller("checking", report.count, total, report.bytes)) throw Error(ErrorKind::unavailable, "interrupted");
      }
    }
  }
  report.seconds = teller.seconds();
  return report;
}

}  // namespace stoker::prepare
