#include "stoker/storage/s3/certificates.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "stoker/os/library.h"

namespace stoker::storage::s3 {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBundleVariables[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};
constexpr const char* kOfSystems[] = {
    "etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Arch
    "etc/pki/tls/certs/ca-bundle.crt",    // Fedora, Red Hat
    "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "etc/ssl/ca-bundle.pem",  // SUSE
    "etc/ssl/cert.pem",       // Alpine
};
constexpr const char* kOfPackages[] = {"certifi/cacert.pem", "pip/_vendor/certifi/cacert.pem"};

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// site-packages/stoker/_engine.so lies in the first, PREFIX/bin/stoker beside the others.
std::vector<fs::path> packages_of(const fs::path& own_file) {
  const fs::path above = own_file.parent_path().parent_path();
  std::vector<fs::path> folders = {above};
  std::error_code error;
  for (fs::directory_iterator at(above / "lib", error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with("python3")) folders.push_back(at->path() / "site-packages");
  }
  return folders;
}

}  // namespace

std::string trusted_certificates(const Environment& environment, const std::string& root, const std::string& own_file) {
  for (const char* const variable : kBundleVariables) {
    if (const auto file = environment(variable)) return *file;
  }
  for (const char* const file : kOfSystems) {
    if (const fs::path path = fs::path(root) / file; is_file(path)) return path.string();
  }
  if (own_file.empty()) return {};
  for (const fs::path& folder : packages_of(own_file)) {
    for (const char* const file : kOfPackages) {
      if (is_file(folder / file)) return (folder / file).string();
    }
  }
  return {};
}

std::string trusted_certificates(const Environment& environment) {
  return trusted_certificates(environment, "/", os::own_file());
}

}  // namespace stoker::storage::s3
