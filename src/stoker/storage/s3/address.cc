#include "stoker/storage/s3/address.h"

#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/error.h"

namespace stoker::storage::s3 {
namespace {

constexpr std::size_t kLongestKey = 1024;  // bytes, as Amazon allows

constexpr bool is_unreserved(char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == '~';
}

void append_encoded(std::string& out, std::string_view text, bool keep_slashes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : text) {
    if (is_unreserved(c) || (keep_slashes && c == '/')) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
}

std::string encode(std::string_view text, bool keep_slashes) {
  std::string out;
  out.reserve(text.size() + 16);
  append_encoded(out, text, keep_slashes);
  return out;
}

int digit_of(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Amazon is stricter; other stores also take upper case and underscores.
bool may_be_bucket(std::string_view name) noexcept {
  return name.size() >= 3 && name.size() <= 255 && name != "..." &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_unreserved(c) && c != '~'; });
}

std::string suffix_of(std::string_view region) {
  return region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
}

}  // namespace

Place parse_place(std::string_view name) {
  Place place;
  parse_place(name, place);
  return place;
}

void parse_place(std::string_view name, Place& place) {
  const std::size_t slash = std::min(name.find('/'), name.size());
  const std::string_view bucket = name.substr(0, slash);
  if (!may_be_bucket(bucket)) {
    throw Error(ErrorKind::usage,
                bucket.empty() ? std::string("cannot use `s3://`: it names no bucket")
                               : fmt::format("cannot use `s3://{}`: `{}` cannot be the name of a bucket", name, bucket),
                "an address is s3://bucket/prefix; a bucket has 3 or more letters, digits, dots and hyphens");
  }
  place.bucket = bucket;
  place.key = name.substr(std::min(slash + 1, name.size()));
  if (place.key.size() > kLongestKey) {
    throw Error(ErrorKind::usage, fmt::format("cannot use a key of {} bytes in bucket `{}`: keys have at most {}",
                                              place.key.size(), bucket, kLongestKey));
  }
}

void parse_web_place(std::string_view scheme, std::string_view name, Place& place) {
  const std::size_t slash = std::min(name.find('/'), name.size());
  const std::string_view host = name.substr(0, slash);
  if (host.empty() || host.find_first_of("@?#%\\\"<>^`{|} \t\r\n") != std::string_view::npos) {
    // The text itself is not repeated: it may hold a password.
    throw Error(ErrorKind::usage, fmt::format("cannot use a {}:// address: its host is not a name", scheme),
                fmt::format("an address is {}://host/path, without user and password", scheme));
  }
  place.bucket = host;
  place.key = name.substr(std::min(slash + 1, name.size()));
}

std::string address_of(std::string_view bucket, std::string_view key) {
  return fmt::format("s3://{}/{}", bucket, key);
}

std::string encode_path(std::string_view key) {
  return encode(key, true);
}

std::string encode_web_path(std::string_view path) {
  constexpr std::string_view kAllowed = "/?&=+:@!$'()*,;";
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool is_escape =
        path[i] == '%' && i + 2 < path.size() && digit_of(path[i + 1]) >= 0 && digit_of(path[i + 2]) >= 0;
    if (is_escape || kAllowed.find(path[i]) != std::string_view::npos) {
      out += path[i];
    } else {
      append_encoded(out, path.substr(i, 1), false);
    }
  }
  return out;
}

std::string encode_query(std::string_view text) {
  return encode(text, false);
}

std::string decode_key(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? digit_of(text[i + 1]) : -1;
    const int low = high >= 0 ? digit_of(text[i + 2]) : -1;
    if (low >= 0) {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::string Endpoint::url(std::string_view key) const {
  std::string out;
  write_url(key, out);
  return out;
}

void Endpoint::write_url(std::string_view key, std::string& out) const {
  out.assign(origin).append(path).append("/");
  if (is_web) {
    out.append(encode_web_path(key));
  } else {
    append_encoded(out, key, true);
  }
}

Endpoint web_endpoint(std::string_view scheme, std::string_view host) {
  Endpoint endpoint;
  endpoint.origin = fmt::format("{}://{}", scheme, host);
  endpoint.is_web = true;
  return endpoint;
}

Endpoint make_endpoint(std::string_view endpoint_url, std::string_view region, std::string_view bucket, Style style) {
  Endpoint endpoint;
  endpoint.region = region;
  if (endpoint_url.empty()) {
    // The certificate of *.s3.amazonaws.com does not cover names with dots.
    const bool by_path =
        style == Style::path || (style == Style::automatic && bucket.find('.') != std::string_view::npos);
    const std::string host = fmt::format("s3.{}.{}", region, suffix_of(region));
    endpoint.origin = by_path ? fmt::format("https://{}", host) : fmt::format("https://{}.{}", bucket, host);
    if (by_path) endpoint.path = fmt::format("/{}", bucket);
    endpoint.lists_in_order = !bucket.ends_with("--x-s3");  // directory buckets promise no order
    return endpoint;
  }
  while (endpoint_url.ends_with('/')) endpoint_url.remove_suffix(1);
  const std::size_t scheme = endpoint_url.find("://");
  const std::string_view kind = endpoint_url.substr(0, std::min(scheme, endpoint_url.size()));
  const std::string_view rest = scheme == std::string_view::npos ? "" : endpoint_url.substr(scheme + 3);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view host = rest.substr(0, slash);
  if ((kind != "http" && kind != "https") || host.empty() ||
      rest.find_first_of("@?# \t\r\n") != std::string_view::npos) {
    // The text itself is not repeated: it may hold a password.
    throw Error(ErrorKind::usage, "cannot use the S3 endpoint: it is not an address such as https://host:9000",
                "look at AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL and `endpoint_url` in ~/.aws/config");
  }
  endpoint.origin =
      style == Style::virtual_host ? fmt::format("{}://{}.{}", kind, bucket, host) : fmt::format("{}://{}", kind, host);
  endpoint.path = std::string(rest.substr(slash));
  if (style != Style::virtual_host) endpoint.path += fmt::format("/{}", bucket);
  return endpoint;
}

}  // namespace stoker::storage::s3
