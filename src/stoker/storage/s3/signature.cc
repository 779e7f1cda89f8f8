#include "stoker/storage/s3/signature.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>

namespace stoker::storage::s3 {
namespace {

constexpr std::string_view kHashOfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

struct UrlParts {
  std::string_view host, path, query;  // the host as the header Host has it
};

UrlParts split_url(std::string_view url) noexcept {
  const bool is_tls = url.starts_with("https:");
  const std::size_t scheme = url.find("://");
  std::string_view rest = scheme == std::string_view::npos ? url : url.substr(scheme + 3);
  const std::size_t host_bytes = std::min(rest.find_first_of("/?"), rest.size());
  UrlParts parts;
  parts.host = rest.substr(0, host_bytes);
  const std::string_view usual_port = is_tls ? ":443" : ":80";  // libcurl leaves it out of Host
  if (parts.host.ends_with(usual_port)) parts.host.remove_suffix(usual_port.size());
  rest.remove_prefix(host_bytes);
  const std::size_t mark = std::min(rest.find('?'), rest.size());
  parts.path = mark == 0 ? "/" : rest.substr(0, mark);
  parts.query = rest.substr(std::min(mark + 1, rest.size()));
  return parts;
}

}  // namespace

void Signer::derive_key(const Credentials& keys, std::string_view region) {
  secret_ = keys.secret_key;
  region_ = region;
  const HmacKey day(HmacKey("AWS4" + secret_).sign(day_));
  const HmacKey place(day.sign(region_));
  const HmacKey service(place.sign("s3"));
  key_ = HmacKey(service.sign("aws4_request"));
  scope_ = fmt::format("{}/{}/s3/aws4_request", day_, region_);
}

const Signer::Headers& Signer::sign(const Signable& request, const Credentials& keys, std::string_view region,
                                    WallTime now) {
  const std::int64_t second = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  if (second != second_) {
    const std::time_t time = second;
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    std::array<char, 32> text{};
    stamp_.assign(text.data(), std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts));
    headers_.date.assign("x-amz-date: ").append(stamp_);
    second_ = second;
  }
  const std::string_view day = std::string_view(stamp_).substr(0, 8);
  if (day_ != day || secret_ != keys.secret_key || region_ != region) {
    day_ = day;
    derive_key(keys, region);
  }

  std::array<char, 64> hash_digits;
  std::string_view body_hash = kHashOfNothing;
  if (!request.body.empty()) {
    write_hex(sha256(request.body), hash_digits.data());
    body_hash = {hash_digits.data(), hash_digits.size()};
  }
  const UrlParts url = split_url(request.url);
  std::string& names = headers_.authorization;  // "host;range;...", before it becomes the header
  names.assign("host");
  canonical_.clear();
  const auto put = [&](std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) canonical_.append(part);
  };
  put({request.method, "\n", url.path, "\n", url.query, "\nhost:", url.host, "\n"});
  const auto put_header = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    put({name, ":", value, "\n"});
    names.append(";").append(name);
  };
  put_header("range", request.range);
  put_header("x-amz-content-sha256", body_hash);
  put_header("x-amz-date", stamp_);
  put_header("x-amz-request-payer", request.requester_pays ? "requester" : "");
  put_header("x-amz-security-token", keys.session_token);
  put({"\n", names, "\n", body_hash});

  std::array<char, 64> hex;
  write_hex(sha256(canonical_), hex.data());
  to_sign_.clear();
  for (const std::string_view part :
       {kAlgorithm, std::string_view("\n"), std::string_view(stamp_), std::string_view("\n"), std::string_view(scope_),
        std::string_view("\n"), std::string_view(hex.data(), hex.size())}) {
    to_sign_.append(part);
  }
  write_hex(key_.sign(to_sign_), hex.data());

  canonical_.assign("Authorization: ").append(kAlgorithm).append(" Credential=").append(keys.access_key);
  canonical_.append("/").append(scope_).append(",SignedHeaders=").append(names);
  canonical_.append(",Signature=").append(hex.data(), hex.size());
  headers_.authorization.swap(canonical_);
  headers_.body_hash.assign("x-amz-content-sha256: ").append(body_hash);
  headers_.payer.assign(request.requester_pays ? "x-amz-request-payer: requester" : "");
  headers_.token.clear();
  if (!keys.session_token.empty()) headers_.token.assign("x-amz-security-token: ").append(keys.session_token);
  return headers_;
}

}  // namespace stoker::storage::s3
