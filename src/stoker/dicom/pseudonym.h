// Ids in place of those of the files: keyed hashes (HMAC-SHA256, 64 bits shown), so that the same patient, study or
// series has the same id in every run with the same key, and nobody without the key can find out whose it is by trying.
// Values; safe from any thread.
#pragma once

#include <string>
#include <string_view>

namespace stoker::dicom {

class Pseudonyms {
 public:
  explicit Pseudonyms(std::string key) : key_(std::move(key)) {}

  // 16 digits. `kind` keeps a patient and a study of the same text apart.
  std::string of(std::string_view kind, std::string_view value) const;
  std::string fingerprint() const { return of("fingerprint", ""); }  // tells keys apart without telling them

 private:
  std::string key_;
};

// The key in `path`, or a new random one that is written there, in a folder closed to other users where the folder is
// missing. Throws Error; a key that is short, or that others may read, is `usage`.
std::string read_or_make_key(const std::string& path);
// $XDG_CONFIG_HOME/stoker/dicom/key or ~/.config/stoker/dicom/key. Throws Error(usage): there is no home.
std::string default_key_path();

}  // namespace stoker::dicom
