#include "stoker/loader/array_members.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"

namespace stoker::loader {
namespace {

constexpr std::size_t kArraysNamed = 8;

std::string names_in(const FirstSample& first, std::size_t& count) {
  std::array<std::string_view, kArraysNamed> names;
  count = codec::list_arrays(first.head.media, first.bytes, names);
  std::string text;
  for (std::size_t i = 0; i < std::min(count, names.size()); ++i)
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", names[i]);
  if (count > names.size()) text += fmt::format(" and {} more", count - names.size());
  return text;
}

}  // namespace

std::vector<ArrayMember> find_members(const FirstSample& first, const LoaderOptions& options) {
  std::size_t count = 0;
  const std::string names = names_in(first, count);
  if (options.arrays.empty()) {
    if (count < 2) return {{"", first.head.array}};
    throw Error(ErrorKind::usage, format_text("`{}` holds {} arrays: {}", first.name, count, names),
                format_text("name those that are wanted, such as {}", option("arrays", "x,y")))
        .about("arrays");
  }
  if (options.arrays.size() > kMaxOutputs)
    throw Error(ErrorKind::usage, format_text("{} names {} arrays: at most {} are loaded", option("arrays"),
                                              options.arrays.size(), kMaxOutputs))
        .about("arrays");
  if (count == 0) {
    throw Error(
        ErrorKind::usage,
        format_text("{} does not go with `{}`: only .npz files hold arrays by name", option("arrays"), first.name),
        "leave it out")
        .about("arrays");
  }
  std::vector<ArrayMember> members;
  Scratch scratch;
  for (const std::string& name : options.arrays) {
    ArrayMember& member = members.emplace_back(ArrayMember{name, {}});
    const Result result = codec::probe_member(first.head.media, first.bytes, name, member.first, scratch);
    if (result.ok()) continue;
    if (result.code != Code::mismatch)
      throw Error(ErrorKind::corrupt, format_text("cannot read `{}` of `{}`: {}", name, first.name, result.cause));
    throw Error(ErrorKind::usage,
                format_text("{} names `{}`, and `{}` holds {}", option("arrays"), name, first.name, names))
        .about("arrays");
  }
  return members;
}

Result probe_member(const ArrayMember& member, codec::Media media, codec::Bytes bytes, codec::ArrayInfo& info,
                    Scratch& scratch) noexcept {
  if (member.name.empty() && codec::list_arrays(media, bytes, {}) > 1)
    return failed(Code::mismatch, "it holds several arrays, and the first file holds one: name the wanted one");
  const Result result = member.name.empty() ? codec::probe_array(media, bytes, info, scratch)
                                            : codec::probe_member(media, bytes, member.name, info, scratch);
  if (!result.ok())
    return result.code == Code::mismatch ? failed(Code::mismatch, "it lacks an array that the first file has") : result;
  if (info.dtype != member.first.dtype || info.rank != member.first.rank)
    return failed(Code::mismatch, "its dtype or number of axes is not that of the first array");
  return {};
}

}  // namespace stoker::loader
