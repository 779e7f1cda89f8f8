#include "stoker/storage/s3/verdict.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/storage/s3/listing.h"

namespace stoker::storage::s3 {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) noexcept {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 6> kStaleKeys = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired",
                                                        "InvalidToken", "RequestExpired",        "InvalidAccessKeyId"};
constexpr std::array<std::string_view, 4> kBusy = {"SlowDown", "ServiceUnavailable", "Throttling",
                                                   "RequestLimitExceeded"};
constexpr std::array<std::string_view, 4> kPassing = {"RequestTimeout", "InternalError", "OperationAborted",
                                                      "XMinioServerNotInitialized"};

// "403 AccessDenied: Access Denied"
std::string said(const HttpReply& reply, const ErrorAnswer& error) {
  std::string text = fmt::format("HTTP status {}", reply.status);
  if (!error.code.empty()) text += fmt::format(" {}", error.code);
  if (!error.message.empty()) text += fmt::format(" ({})", error.message.substr(0, 200));
  return text;
}

Failure failing(ErrorKind kind, std::string text, std::string hint = {}, bool ends_the_run = false) {
  Failure failure;
  failure.kind = kind;
  failure.text = std::move(text);
  failure.hint = std::move(hint);
  failure.ends_the_run = ends_the_run;
  return failure;
}

Verdict verdict_of(Next next, Failure failure) {
  Verdict verdict;
  verdict.next = next;
  verdict.failure = std::move(failure);
  return verdict;
}

Verdict judge_broken(const HttpReply& reply, const Asked& asked) {
  Verdict verdict;
  if (reply.is_too_large) {
    return verdict_of(
        Next::fail,
        failing(ErrorKind::corrupt, fmt::format("the answer is longer than {}", format_bytes(HttpReply::kMostBody)),
                fmt::format("is {} the address of a store?", asked.host), true));
  }
  const bool may = may_pass(reply.curl_code);
  verdict.next = may ? Next::retry : Next::fail;
  verdict.failure = failing(ErrorKind::unavailable, reply.broken, "", !may);
  verdict.failure.may_retry = may;
  if (asked.is_web) {
    verdict.failure.hint = fmt::format("is {} reachable from here?{}", asked.host,
                                       may ? "" : " SSL_CERT_FILE names a file with certificates to trust");
  } else if (!may) {
    verdict.failure.hint = fmt::format(
        "the endpoint is {}; AWS_ENDPOINT_URL_S3 names another one, AWS_CA_BUNDLE its "
        "certificates",
        asked.host);
  } else {
    verdict.failure.hint =
        fmt::format("is {} reachable from here? AWS_ENDPOINT_URL_S3 names another endpoint", asked.host);
  }
  return verdict;
}

Failure refused(const HttpReply& reply, const ErrorAnswer& error, const Asked& asked) {
  const std::string text = said(reply, error);
  if (asked.is_web) {
    return failing(ErrorKind::permission, text, "the server wants credentials, and Stoker sends none over http");
  }
  const std::string from = fmt::format("the keys come from {}", asked.keys_origin);
  if (error.code == "SignatureDoesNotMatch") {
    return failing(ErrorKind::permission, text,
                   fmt::format("the secret key does not belong to the access key, or the region `{}` is wrong; {}",
                               asked.region, from),
                   true);
  }
  if (error.code == "RequestTimeTooSkewed") {
    const std::string& server = error.server_time.empty() ? reply.date : error.server_time;
    return failing(ErrorKind::permission,
                   fmt::format("{}: the clock of this machine differs too much from the store's{}", text,
                               server.empty() ? "" : fmt::format(", which says {}", server)),
                   "set the clock (`timedatectl set-ntp true`): signatures are valid for 15 minutes", true);
  }
  const std::string_view action = asked.lists ? "s3:ListBucket" : asked.writes ? "s3:PutObject" : "s3:GetObject";
  if (asked.keys_origin.empty()) {
    return failing(ErrorKind::permission, text,
                   "the bucket is not public: unset AWS_NO_SIGN_REQUEST, and give credentials", asked.lists);
  }
  return failing(
      ErrorKind::permission, text,
      fmt::format("allow {} on bucket `{}`{}; {}", action, asked.bucket,
                  asked.lists || asked.writes ? "" : " (without s3:ListBucket, a missing object looks the same)", from),
      false);
}

}  // namespace

Failure changed_object(const std::string& then, const std::string& now) {
  return failing(ErrorKind::corrupt,
                 now.empty() ? fmt::format("it changed since it was listed: version {} is gone", then)
                             : fmt::format("it changed since it was listed: version {} then, {} now", then, now));
}

Verdict judge(const HttpReply& reply, const Asked& asked) {
  if (!reply.is_complete() && reply.status != 200 && reply.status != 206) return judge_broken(reply, asked);
  if (!reply.is_complete()) {
    Verdict verdict = judge_broken(reply, asked);
    verdict.next = may_pass(reply.curl_code) ? Next::retry : Next::fail;
    return verdict;
  }
  const ErrorAnswer error = parse_error(reply.body);
  // A multipart upload may fail after its 200 was sent: the body then has the error.
  const bool failed_late = asked.writes && reply.status == 200 && !error.code.empty();
  if ((reply.status == 200 || reply.status == 206) && !failed_late) return {};
  if (reply.status == 204 && asked.writes) return {};
  const std::string text = said(reply, error);

  if (!asked.is_web && is_one_of(error.code, kStaleKeys)) {
    return verdict_of(Next::refresh,
                      failing(ErrorKind::permission, text,
                              fmt::format("the keys come from {}: renew them there", asked.keys_origin), true));
  }
  const std::string& region = !reply.bucket_region.empty() ? reply.bucket_region : error.region;
  const bool is_elsewhere = reply.status == 301 || reply.status == 307 || reply.status == 308 ||
                            error.code == "AuthorizationHeaderMalformed" || error.code == "PermanentRedirect" ||
                            (reply.status == 400 && !reply.bucket_region.empty());
  if (is_elsewhere && asked.is_web) {
    return verdict_of(Next::fail, failing(ErrorKind::unavailable, fmt::format("{}: it leads elsewhere", text)));
  }
  if (is_elsewhere) {
    Verdict verdict =
        verdict_of(Next::fail, failing(ErrorKind::unavailable,
                                       fmt::format("{}: bucket `{}` is in another region or at another "
                                                   "endpoint",
                                                   text, asked.bucket),
                                       region.empty() ? "set AWS_REGION to the region of the bucket"
                                                      : fmt::format("the bucket is in region `{}`: AWS_REGION", region),
                                       true));
    if (!region.empty() && region != asked.region) {
      verdict.next = Next::ask_other_region;
      verdict.region = region;
    }
    return verdict;
  }
  const bool is_busy = reply.status == 429 || reply.status == 503 || is_one_of(error.code, kBusy);
  if (is_busy || reply.status == 408 || reply.status == 500 || reply.status == 502 || reply.status == 504 ||
      is_one_of(error.code, kPassing) || failed_late) {
    Verdict verdict = verdict_of(
        Next::retry, failing(ErrorKind::unavailable, text, is_busy ? "the store asks for fewer requests at once" : ""));
    verdict.failure.may_retry = true;
    verdict.is_throttled = is_busy;
    return verdict;
  }
  if (reply.status == 401 || reply.status == 403) return verdict_of(Next::fail, refused(reply, error, asked));
  if (error.code == "NoSuchBucket") {
    return verdict_of(Next::fail, failing(ErrorKind::not_found,
                                          fmt::format("there is no bucket `{}` at {}", asked.bucket, asked.host),
                                          "check the name of the bucket, and AWS_ENDPOINT_URL_S3", true));
  }
  if (reply.status == 404) return verdict_of(Next::fail, failing(ErrorKind::not_found, "there is no such object"));
  if (reply.status == 412) return verdict_of(Next::fail, changed_object(asked.version, ""));
  return verdict_of(Next::fail, failing(ErrorKind::unavailable, text));
}

}  // namespace stoker::storage::s3
