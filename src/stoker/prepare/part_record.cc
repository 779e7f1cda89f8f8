#include "stoker/prepare/part_record.h"

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/os/file.h"
#include "stoker/os/read_file.h"

namespace stoker::prepare {
namespace {

constexpr const char* kPartSchema = "stoker.pack_part/1";
constexpr std::uint64_t kMostPartBytes = std::uint64_t{1} << 32;

}  // namespace

std::uint64_t PartRecord::key() const noexcept {
  const std::uint64_t made_with = mix(mix(hash_text(settings), seeks ? 1 : 0), shard_size);
  return mix(mix(mix(listing, made_with), part.number), part.of);
}

void write_part(const std::string& folder, const PartRecord& record) {
  Json json = {{"schema", kPartSchema},       {"part", record.part.number},
               {"of", record.part.of},        {"source", record.source},
               {"samples", record.samples},   {"listing", record.listing},
               {"settings", record.settings}, {"shard_size", record.shard_size},
               {"seek_index", record.seeks},  {"looked_at_ns", record.looked_at_ns},
               {"changed", record.changed},   {"rows", record.rows}};
  json["shards"] = Json::array();
  for (const dataset::PackShard& shard : record.shards)
    json["shards"].push_back({{"name", shard.name}, {"bytes", shard.bytes}, {"count", shard.count}});
  json["skipped"] = Json::array();
  for (const dataset::PackSkipped& one : record.skipped)
    json["skipped"].push_back({{"name", one.name}, {"cause", one.cause}});
  os::write_file(fmt::format("{}/{}", folder, kPartJson), json.dump(2) + "\n");
}

std::optional<PartRecord> read_part(const std::string& folder) {
  try {
    const Json json = Json::parse_or_null(os::read_text(fmt::format("{}/{}", folder, kPartJson), kMostPartBytes));
    if (!json.is_object() || json.value("schema", "") != kPartSchema) return std::nullopt;
    PartRecord record;
    record.part = {json.at("part").get<std::uint64_t>(), json.at("of").get<std::uint64_t>()};
    record.source = json.at("source").text();
    record.samples = json.at("samples").get<std::uint64_t>();
    record.listing = json.at("listing").get<std::uint64_t>();
    record.settings = json.at("settings").text();
    record.shard_size = json.at("shard_size").get<std::uint64_t>();
    record.seeks = json.at("seek_index").get<bool>();
    record.looked_at_ns = json.at("looked_at_ns").get<std::int64_t>();
    record.changed = json.at("changed").get<std::uint64_t>();
    record.rows = json.at("rows").get<std::uint64_t>();
    for (const Json& shard : json.at("shards")) {
      const std::string& name = shard.at("name").text();
      if (name.find('/') != std::string::npos || !name.starts_with("data-")) return std::nullopt;
      record.shards.push_back({name, shard.at("bytes").get<std::uint64_t>(), shard.at("count").get<std::uint64_t>()});
    }
    for (const Json& one : json.at("skipped"))
      record.skipped.push_back({one.at("name").text(), one.at("cause").text()});
    return record;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace stoker::prepare
