// Writing files so that a name never shows half a file: write aside, fsync, rename, fsync the folder.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace stoker::os {

// Replaces `path` by `bytes`, whole or not at all; after an error the old file is untouched and nothing is left behind.
// (Only a failing fsync of the folder comes too late for that: the new file is then whole, but may not survive a
// crash.) Throws Error. Safe from many threads and processes; the last one wins.
void write_file(const std::string& path, std::span<const std::byte> bytes);
void write_file(const std::string& path, std::string_view text);

// Makes `path` and the folders above it that are missing. Throws Error.
void make_folders(const std::string& path);

}  // namespace stoker::os
