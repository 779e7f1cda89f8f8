#include "stoker/storage/s3/settings.h"

#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/os/file.h"
#include "stoker/os/read_file.h"
#include "stoker/storage/s3/certificates.h"

namespace stoker::storage::s3 {
namespace {

constexpr std::uint64_t kMostFile = 16 << 20;

struct ReadSections {
  Sections sections;
  std::string path;
  bool is_open_to_others = false;
};

ReadSections read_sections(const Environment& environment, const char* variable, const char* name) {
  ReadSections read;
  if (const auto path = environment(variable)) {
    read.path = *path;
  } else if (const auto home = environment("HOME")) {
    read.path = fmt::format("{}/.aws/{}", *home, name);
  }
  if (read.path.starts_with("~/")) {
    if (const auto home = environment("HOME")) read.path = *home + read.path.substr(1);
  }
  if (read.path.empty() || read.path == "/dev/null" || !os::exists(read.path)) return read;
  read.sections = parse_sections(os::read_text(read.path, kMostFile));
  read.is_open_to_others = os::others_may_read(read.path);
  return read;
}

bool is_yes(const std::optional<std::string>& value) {
  if (!value) return false;
  const std::string word = to_lower(*value);
  return word == "1" || word == "yes" || word == "true" || word == "on";
}

// Of a variable that opens a bucket without keys: what is neither yes nor no is refused.
bool is_yes_or_no(const Environment& environment, const char* variable) {
  const std::optional<std::string> value = environment(variable);
  if (!value || is_yes(value)) return value.has_value();
  const std::string word = to_lower(*value);
  if (word == "0" || word == "no" || word == "false" || word == "off") return false;
  throw Error(ErrorKind::usage, fmt::format("{} is `{}`, and neither yes nor no", variable, *value),
              "it is 1, yes, true, on, 0, no, false or off");
}

bool holds_secret(const Sections& sections) {
  for (const auto& [name, section] : sections) {
    if (section.contains("aws_secret_access_key") || section.contains("aws_session_token")) return true;
  }
  return false;
}

std::string endpoint_of(const Environment& environment, const Section& profile, const Sections& config) {
  if (const auto url = environment("AWS_ENDPOINT_URL_S3")) return *url;
  const bool is_configured = !is_yes(environment("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"));
  if (const auto services = profile.find("services"); is_configured && services != profile.end()) {
    if (const auto named = config.find(fmt::format("services {}", services->second)); named != config.end()) {
      const auto url = named->second.find("s3.endpoint_url");
      if (url != named->second.end()) return url->second;
    }
  }
  if (const auto url = environment("AWS_ENDPOINT_URL")) return *url;
  if (!is_configured) return {};
  const auto url = profile.find("endpoint_url");
  return url == profile.end() ? std::string() : url->second;
}

Style style_of(const Section& profile) {
  const auto found = profile.find("s3.addressing_style");
  if (found == profile.end() || found->second == "auto") return Style::automatic;
  if (found->second == "path") return Style::path;
  if (found->second == "virtual") return Style::virtual_host;
  throw Error(ErrorKind::usage, fmt::format("cannot use the addressing_style `{}`", found->second),
              "it is auto, path or virtual, in ~/.aws/config");
}

}  // namespace

std::optional<std::string> process_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

Settings load_settings(const Environment& environment) {
  Settings settings;
  const ReadSections config = read_sections(environment, "AWS_CONFIG_FILE", "config");
  const ReadSections credentials = read_sections(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  for (const ReadSections* const file : {&config, &credentials}) {
    if (file->is_open_to_others && holds_secret(file->sections)) {
      settings.notes.push_back(fmt::format(
          "other users of this machine can read the secrets in `{0}`; close it with `chmod 600 {0}`", file->path));
    }
  }
  const std::optional<std::string> chosen = environment("AWS_PROFILE");
  settings.profile = chosen.value_or(environment("AWS_DEFAULT_PROFILE").value_or("default"));
  if (chosen && !has_profile(config.sections, credentials.sections, settings.profile)) {
    throw Error(ErrorKind::not_found,
                fmt::format("cannot find the profile `{}` that AWS_PROFILE names: neither `{}` nor `{}` has it",
                            settings.profile, config.path, credentials.path));
  }
  settings.profile_settings = profile_of(config.sections, credentials.sections, settings.profile);
  const Section& profile = settings.profile_settings;
  if (const auto region = environment("AWS_REGION")) {
    settings.region = *region;
  } else if (const auto fallback = environment("AWS_DEFAULT_REGION")) {
    settings.region = *fallback;
  } else if (const auto found = profile.find("region"); found != profile.end()) {
    settings.region = found->second;
  }
  for (const char c : settings.region) {
    const bool is_plain = to_lower(c) >= 'a' && to_lower(c) <= 'z';
    if (!is_plain && !(c >= '0' && c <= '9') && c != '-') {
      throw Error(ErrorKind::usage, fmt::format("cannot use the region `{}`", settings.region),
                  "a region is a word such as eu-west-1: AWS_REGION");
    }
  }
  settings.endpoint_url = endpoint_of(environment, profile, config.sections);
  settings.style = style_of(profile);
  settings.anonymous = is_yes_or_no(environment, "AWS_NO_SIGN_REQUEST");
  settings.requester_pays = environment("AWS_REQUEST_PAYER").value_or("") == "requester";
  if (const auto found = profile.find("ca_bundle"); found != profile.end()) settings.ca_bundle = found->second;
  if (const auto bundle = environment("AWS_CA_BUNDLE")) settings.ca_bundle = *bundle;
  if (settings.ca_bundle.empty()) settings.ca_bundle = trusted_certificates(environment);
  if (const auto tries = environment("AWS_MAX_ATTEMPTS")) {
    const auto [end, error] = std::from_chars(tries->data(), tries->data() + tries->size(), settings.most_tries);
    if (error != std::errc() || end != tries->data() + tries->size() || settings.most_tries < 1) {
      throw Error(ErrorKind::usage, fmt::format("AWS_MAX_ATTEMPTS is `{}`, and not a number of tries", *tries));
    }
  }
  if (const auto stall = environment("STOKER_S3_STALL_TIMEOUT")) {
    settings.stall_timeout = std::chrono::ceil<std::chrono::milliseconds>(parse_duration(*stall));
  }
  return settings;
}

}  // namespace stoker::storage::s3
