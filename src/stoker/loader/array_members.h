// Which arrays of a file are loaded: its only one, or those that the option `arrays` names. Pure functions; safe from
// any thread, with one Scratch each.
#pragma once

#include <string>
#include <vector>

#include "stoker/loader/kind.h"

namespace stoker::loader {

struct ArrayMember {
  std::string name;        // empty: the file has one array
  codec::ArrayInfo first;  // of the first file
};

// Throws Error: a file of several arrays of which none is named, or a name that it does not have.
std::vector<ArrayMember> find_members(const FirstSample& first, const LoaderOptions& options);

// The same array of another file: its header, where dtype and rank must be those of the first file.
Result probe_member(const ArrayMember& member, codec::Media media, codec::Bytes bytes, codec::ArrayInfo& info,
                    Scratch& scratch) noexcept;

}  // namespace stoker::loader
