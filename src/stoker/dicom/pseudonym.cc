#include "stoker/dicom/pseudonym.h"

#include <cstdlib>
#include <random>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/sha256.h"
#include "stoker/os/file.h"
#include "stoker/os/folder_entries.h"
#include "stoker/os/read_file.h"

namespace stoker::dicom {
namespace {

constexpr std::size_t kShownDigits = 16, kLeastKey = 16, kMostKey = 4096;

std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string Pseudonyms::of(std::string_view kind, std::string_view value) const {
  std::string digits(2 * sizeof(Digest), ' ');
  write_hex(HmacKey(key_).sign(fmt::format("{}:{}", kind, value)), digits.data());
  return digits.substr(0, kShownDigits);
}

std::string default_key_path() {
  std::string folder = environment("XDG_CONFIG_HOME");
  if (folder.empty()) {
    const std::string home = environment("HOME");
    if (home.empty()) {
      throw Error(ErrorKind::usage, "cannot find the folder of the key: neither XDG_CONFIG_HOME nor HOME is set",
                  format_text("name a file: {}", option("key_file", "PATH")));
    }
    folder = home + "/.config";
  }
  return folder + "/stoker/dicom/key";
}

std::string read_or_make_key(const std::string& path) {
  if (!os::exists(path)) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    if (const std::size_t above = folder.rfind('/'); above != std::string::npos && above > 0) {
      os::make_folders(folder.substr(0, above));
    }
    if (!os::exists(folder)) os::make_private_folder(folder);
    std::random_device random;  // the system's generator
    std::string bytes;
    for (int i = 0; i < 32; ++i) bytes += static_cast<char>(random() & 0xFF);
    // Of two processes that make one at the same time, the first one's is kept.
    const std::string aside = fmt::format("{}.{:08x}", path, random());
    os::write_private_file(aside, hex_of(bytes) + "\n");
    const int error_number = os::link_entry(aside, path);
    os::remove_entry(aside);
    if (error_number != 0 && !os::exists(path)) throw system_error(error_number, "write", path);
  }
  std::string key = os::read_text(path, kMostKey);
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r' || key.back() == ' ')) key.pop_back();
  if (key.size() < kLeastKey) {
    throw Error(ErrorKind::usage, fmt::format("the key in `{}` is shorter than {} characters", path, kLeastKey),
                "remove the file: a new one is made. Ids of earlier runs then do not come back");
  }
  return key;
}

}  // namespace stoker::dicom
