// numpy's .npz: a zip of .npy members, stored or deflated, zip64 where needed. The central directory is the truth; the
// local headers only tell where the data begins.
#include <algorithm>
#include <cstring>

#include "stoker/codec/array.h"
#include "stoker/codec/byte_order.h"
#include "stoker/codec/inflate.h"
#include "stoker/codec/table.h"

namespace stoker::codec {
namespace {

constexpr std::uint32_t kLocal = 0x04034B50, kCentral = 0x02014B50, kEnd = 0x06054B50;
constexpr std::uint32_t kEnd64 = 0x06064B50, kEnd64Locator = 0x07064B50;
constexpr std::size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr std::size_t kMaxComment = 65535;
constexpr std::uint16_t kStored = 0, kDeflated = 8;
// A npy header is 128 bytes, rarely more and at most 1 MiB; a stored block is at most 64 KiB.
constexpr std::size_t kHeaderRooms[] = {4608, 128 << 10, (1 << 20) + (128 << 10)};

struct Directory {
  std::uint64_t offset = 0, bytes = 0;
};

struct Member {
  std::string_view name;
  std::uint16_t flags = 0, method = 0;
  std::uint32_t crc32 = 0;
  std::uint64_t stored_bytes = 0, bytes = 0, local_offset = 0;
};

Result find_directory(Bytes file, Directory& directory) noexcept {
  if (file.size() < kEndBytes) return failed(Code::truncated, "shorter than an empty zip", file.size());
  const std::size_t lowest = file.size() - kEndBytes - std::min(kMaxComment, file.size() - kEndBytes);
  std::size_t end = file.size() - kEndBytes;
  while (little32(&file[end]) != kEnd || file.size() - end - kEndBytes < little16(&file[end + 20])) {
    if (end == lowest) return failed(Code::truncated, "no zip directory at the end", file.size());
    --end;
  }
  if (little16(&file[end + 4]) != 0 && little16(&file[end + 4]) != 0xFFFF) {
    return failed(Code::unsupported, "a zip of several parts", end);
  }
  directory.bytes = little32(&file[end + 12]);
  directory.offset = little32(&file[end + 16]);
  if (end >= kLocatorBytes && little32(&file[end - kLocatorBytes]) == kEnd64Locator) {
    const std::uint64_t end64 = little64(&file[end - kLocatorBytes + 8]);
    if (end64 > end || end - end64 < kEnd64Bytes || little32(&file[end64]) != kEnd64) {
      return failed(Code::corrupt, "the zip64 directory is not where the file says", end - kLocatorBytes);
    }
    directory.bytes = little64(&file[end64 + 40]);
    directory.offset = little64(&file[end64 + 48]);
  }
  if (directory.offset > end || directory.bytes > end - directory.offset) {
    return failed(Code::corrupt, "the zip directory is not where the file says", end);
  }
  return {};
}

// Sizes of 2^32-1 in a directory entry stand in its zip64 field instead, in this order.
Result read_zip64(Bytes extra, std::uint64_t offset, Member& member) noexcept {
  std::uint64_t* const wanted[] = {&member.bytes, &member.stored_bytes, &member.local_offset};
  if (std::ranges::none_of(wanted, [](const std::uint64_t* v) { return *v == 0xFFFFFFFF; })) return {};
  while (extra.size() >= 4) {
    const std::uint16_t id = little16(extra.data());
    const std::size_t length = little16(extra.data() + 2);
    if (extra.size() - 4 < length) break;
    if (id == 1) {
      Bytes field = extra.subspan(4, length);
      for (std::uint64_t* const value : wanted) {
        if (*value != 0xFFFFFFFF) continue;
        if (field.size() < 8) return failed(Code::corrupt, "a zip64 field is too short", offset);
        *value = little64(field.data());
        field = field.subspan(8);
      }
      return {};
    }
    extra = extra.subspan(4 + length);
  }
  return {};  // exactly 2^32-1, then; the caller checks the bounds
}

// Calls `take(member)` for each entry until it returns true, which is then the answer.
template <typename Take>
Result find_member(Bytes file, Member& found, const Take& take) noexcept {
  Directory directory;
  if (const Result result = find_directory(file, directory); !result.ok()) return result;
  std::uint64_t at = directory.offset;
  const std::uint64_t end = directory.offset + directory.bytes;
  while (end - at >= kCentralBytes) {
    if (little32(&file[at]) != kCentral) return failed(Code::corrupt, "a damaged zip directory entry", at);
    const std::size_t name_bytes = little16(&file[at + 28]), extra_bytes = little16(&file[at + 30]);
    const std::size_t entry_bytes = kCentralBytes + name_bytes + extra_bytes + little16(&file[at + 32]);
    if (end - at < entry_bytes) return failed(Code::corrupt, "a zip directory entry goes beyond its end", at);
    Member member;
    member.name = {reinterpret_cast<const char*>(file.data()) + at + kCentralBytes, name_bytes};
    member.flags = little16(&file[at + 8]);
    member.method = little16(&file[at + 10]);
    member.crc32 = little32(&file[at + 16]);
    member.stored_bytes = little32(&file[at + 20]);
    member.bytes = little32(&file[at + 24]);
    member.local_offset = little32(&file[at + 42]);
    const Bytes extra = file.subspan(at + kCentralBytes + name_bytes, extra_bytes);
    if (const Result result = read_zip64(extra, at, member); !result.ok()) return result;
    if (take(member)) {
      found = member;
      return {};
    }
    at += entry_bytes;
  }
  return failed(Code::mismatch, "no array of that name in the npz");
}

Result locate(Bytes file, const Member& member, ArrayInfo& info) noexcept {
  if ((member.flags & 1) != 0) return failed(Code::unsupported, "an encrypted member", member.local_offset);
  if (member.method != kStored && member.method != kDeflated) {
    return failed(Code::unsupported, "a member compressed by neither nothing nor deflate", member.local_offset);
  }
  const std::uint64_t at = member.local_offset;
  if (at > file.size() || file.size() - at < kLocalBytes || little32(&file[at]) != kLocal) {
    return failed(Code::corrupt, "the member is not where the zip directory says", at);
  }
  info.data_offset = at + kLocalBytes + little16(&file[at + 26]) + little16(&file[at + 28]);
  if (info.data_offset > file.size() || file.size() - info.data_offset < member.stored_bytes) {
    return failed(Code::truncated, "the member goes beyond the end", at);
  }
  info.deflated = member.method == kDeflated;
  info.stored_bytes = member.stored_bytes;
  info.member_bytes = member.bytes;
  info.crc32 = member.crc32;
  if (!info.deflated && info.stored_bytes != info.member_bytes) {
    return failed(Code::corrupt, "a stored member has two sizes", at);
  }
  if (info.deflated && info.member_bytes / kMaxExpansion > info.stored_bytes) {
    return failed(Code::corrupt, "the member claims to inflate more than deflate can", at);
  }
  return {};
}

// The whole member, inflated if need be, its sum checked.
Result read_member(Bytes file, const ArrayInfo& info, Scratch& scratch, Bytes& member) noexcept {
  if (info.data_offset > file.size() || file.size() - info.data_offset < info.stored_bytes) {
    return failed(Code::truncated, "the member goes beyond the end", file.size());
  }
  const Bytes stored = file.subspan(info.data_offset, info.stored_bytes);
  if (!info.deflated) {
    member = stored;
  } else {
    const std::span<std::byte> room = scratch.take(info.member_bytes);
    if (room.size() != info.member_bytes || room.data() == nullptr) {
      return failed(Code::no_memory, "no room to inflate the member");
    }
    std::size_t written = 0;
    switch (inflate(Wrapper::none, stored, room, written)) {
      case Inflated::ok:
        break;
      case Inflated::no_memory:
        return failed(Code::no_memory, "no room to inflate the member");
      case Inflated::more_output:
        return failed(Code::corrupt, "the member inflates to more than it says", info.data_offset);
      case Inflated::bad_data:
        return failed(Code::corrupt, "damaged deflate data", info.data_offset);
    }
    if (written != info.member_bytes) {
      return failed(Code::corrupt, "the member inflates to less than it says", info.data_offset);
    }
    member = room;
  }
  if (crc32(member) != info.crc32) return failed(Code::corrupt, "the member's CRC differs", info.data_offset);
  return {};
}

// Reads the array's header from the start of a deflated member, in memory that does not grow with what the member
// claims. libdeflate does not promise that the start of the output is there when it runs out of room, and a stored
// block that does not fit is not written at all. So an answer counts only if it is a whole header, and the last room
// holds the longest header and any stored block.
Result probe_start(Bytes stored, std::uint64_t member_bytes, Scratch& scratch, ArrayInfo& array) noexcept {
  Result result;
  for (const std::size_t most : kHeaderRooms) {
    const std::size_t room = std::min<std::uint64_t>(most, member_bytes);
    const Scratch::Mark mark = scratch.mark();
    const std::span<std::byte> start = scratch.take(room);
    if (start.data() == nullptr) return failed(Code::no_memory, "no room to inflate the array's header");
    std::fill(start.begin(), start.end(), std::byte{0});
    std::size_t written = 0;
    const Inflated inflated = inflate(Wrapper::none, stored, start, written);
    result = probe_npy(start, member_bytes, array);
    scratch.rewind(mark);
    if (inflated == Inflated::no_memory) return failed(Code::no_memory, "no room to inflate the array's header");
    if (inflated == Inflated::bad_data) return failed(Code::corrupt, "damaged deflate data");
    const bool header_is_whole = array.data_offset != 0;
    if (header_is_whole || inflated == Inflated::ok || room == member_bytes) break;
  }
  return result;
}

}  // namespace

Result probe_npz(Bytes bytes, std::string_view member, ArrayInfo& info, Scratch& scratch) noexcept {
  info = {};
  Member found;
  const Result searched = find_member(bytes, found, [member](const Member& candidate) {
    if (!candidate.name.ends_with(".npy")) return false;
    return member.empty() || candidate.name == member || candidate.name.substr(0, candidate.name.size() - 4) == member;
  });
  if (!searched.ok()) return searched;
  // Where a name is there twice, numpy takes the last one.
  Member none;
  const Result seen = find_member(bytes, none, [&found](const Member& candidate) {
    if (candidate.name == found.name) found = candidate;
    return false;
  });
  if (seen.code != Code::mismatch) return seen;  // mismatch: all were seen
  ArrayInfo where;
  if (const Result result = locate(bytes, found, where); !result.ok()) return result;

  const Bytes stored = bytes.subspan(where.data_offset, where.stored_bytes);
  if (!where.deflated) {
    if (Result result = probe_npy(stored, stored.size(), info); !result.ok()) {
      if (result.offset != kNoOffset) result.offset += where.data_offset;
      return result;
    }
  } else if (Result result = probe_start(stored, where.member_bytes, scratch, info); !result.ok()) {
    result.offset = where.data_offset;
    return result;
  }
  info.data_offset = where.data_offset;
  info.stored_bytes = where.stored_bytes;
  info.deflated = where.deflated;
  info.member_bytes = where.member_bytes;
  info.crc32 = where.crc32;
  return {};
}

namespace {

std::size_t list_npz(Bytes bytes, std::span<std::string_view> names) noexcept {
  std::size_t count = 0;
  Member none;
  const Result result = find_member(bytes, none, [&](const Member& member) {
    if (!member.name.ends_with(".npy")) return false;
    const std::string_view name = member.name.substr(0, member.name.size() - 4);
    const auto known = names.first(std::min(count, names.size()));
    if (std::find(known.begin(), known.end(), name) != known.end()) return false;
    if (count < names.size()) names[count] = name;
    ++count;
    return false;
  });
  return result.code == Code::mismatch ? count : 0;  // mismatch: all were seen
}

Result decode_npz(Bytes bytes, const ArrayInfo& info, std::byte* into, Scratch& scratch) noexcept {
  Bytes member;
  if (const Result result = read_member(bytes, info, scratch, member); !result.ok()) return result;
  ArrayInfo array;
  if (Result result = probe_npy(member, member.size(), array); !result.ok()) {
    result.offset = info.data_offset;
    return result;
  }
  if (array.data_bytes != info.data_bytes) return failed(Code::mismatch, "not the array that was probed");
  return decode_npy(member, array, into, scratch);
}

}  // namespace

extern constinit const Codec kNpz{.name = "npz",
                                  .title = "NPZ",
                                  .article = "an",
                                  .extensions = {"npz"},
                                  .magic = {{{0, "PK\x03\x04"}, {0, "PK\x05\x06"}}},
                                  .decoder = ArrayCodec{[](Bytes bytes, ArrayInfo& info, Scratch& scratch) noexcept {
                                                          return probe_npz(bytes, "", info, scratch);
                                                        },
                                                        decode_npz, /*is_plain=*/false, list_npz, probe_npz}};

}  // namespace stoker::codec
