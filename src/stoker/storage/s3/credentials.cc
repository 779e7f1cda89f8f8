#include "stoker/storage/s3/credentials.h"

#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/os/capture.h"
#include "stoker/os/read_file.h"
#include "stoker/storage/interruption.h"
#include "stoker/storage/s3/address.h"
#include "stoker/storage/s3/listing.h"

namespace stoker::storage::s3 {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr auto kRefreshBefore = minutes(5);
constexpr auto kRetryRefresh = std::chrono::seconds(30);
constexpr milliseconds kMetadataTimeout{1000};
constexpr milliseconds kProcessTimeout{60'000};

std::string text_of_file(const std::string& path) {
  std::string text = os::read_text(path, 1 << 20);
  while (text.ends_with('\n') || text.ends_with('\r') || text.ends_with(' ')) text.pop_back();
  return text;
}

Error cannot_get(std::string_view origin, std::string_view cause, const std::string& hint = {}) {
  return Error(ErrorKind::permission, fmt::format("cannot get AWS credentials from {}: {}", origin, cause), hint);
}

// The answer of a credential_process, a container or an instance. The text itself never gets into a message.
Credentials from_json(const std::string& text, std::string_view token_key, std::string origin, WallTime now) {
  const std::optional<Json> json = Json::try_parse(text);
  const auto field = [&](std::string_view key) -> std::string {
    if (!json || !json->is_object()) return {};
    const Json* const found = json->find(key);
    return found != json->end() && found->is_string() ? found->text() : std::string();
  };
  Credentials credentials{field("AccessKeyId"), field("SecretAccessKey"), field(token_key), {}, std::move(origin)};
  if (credentials.access_key.empty() || credentials.secret_key.empty()) {
    throw cannot_get(credentials.origin, "the answer has no AccessKeyId and SecretAccessKey");
  }
  if (const std::string expires = field("Expiration"); !expires.empty()) {
    credentials.expires = parse_iso_time(expires);
    if (!credentials.expires) throw cannot_get(credentials.origin, "its Expiration is not a time");
    if (*credentials.expires <= now) {
      throw cannot_get(credentials.origin, fmt::format("its keys expired at {}", expires.substr(0, 40)),
                       "renew them there, or look at the clock of this machine");
    }
  }
  return credentials;
}

std::string answer_of(const CredentialWorld& world, const HttpRequest& request, std::string_view origin) {
  HttpReply reply;
  for (int tries = 0; tries < 3; ++tries) {
    reply = world.send(request);
    if (reply.is_complete() && reply.status < 500) break;
  }
  if (!reply.is_complete()) throw cannot_get(origin, reply.broken);
  if (reply.status != 200) {
    const ErrorAnswer error = parse_error(reply.body);
    throw cannot_get(origin, error.code.empty() ? fmt::format("HTTP status {}", reply.status)
                                                : fmt::format("{}: {}", error.code, error.message));
  }
  return std::move(reply.body);
}

std::optional<Credentials> from_environment(const CredentialWorld& world) {
  const auto access = world.environment("AWS_ACCESS_KEY_ID");
  const auto secret = world.environment("AWS_SECRET_ACCESS_KEY");
  if (!access && !secret) return {};
  if (!access || !secret) {
    throw cannot_get("the environment",
                     fmt::format("{} is set and {} is not", access ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                                 access ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID"));
  }
  return Credentials{*access, *secret, world.environment("AWS_SESSION_TOKEN").value_or(""), {}, "the environment"};
}

std::optional<Credentials> from_web_identity(const CredentialWorld& world, const Settings& settings) {
  const auto setting = [&](const char* variable, const char* key) -> std::optional<std::string> {
    if (auto value = world.environment(variable)) return value;
    const auto found = settings.profile_settings.find(key);
    return found == settings.profile_settings.end() ? std::nullopt : std::optional(found->second);
  };
  const auto token_file = setting("AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
  const auto role = setting("AWS_ROLE_ARN", "role_arn");
  if (!token_file || !role) return {};
  const std::string origin = "web identity";
  HttpRequest request;
  request.method = HttpRequest::Method::post;
  const bool in_china = settings.region.starts_with("cn-");
  request.url = world.environment("AWS_ENDPOINT_URL_STS")
                    .value_or(fmt::format("https://sts.{}.amazonaws.com{}/", settings.region, in_china ? ".cn" : ""));
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  request.ca_bundle = settings.ca_bundle;
  request.body = fmt::format(
      "Action=AssumeRoleWithWebIdentity&RoleArn={}&RoleSessionName={}&Version=2011-06-15&WebIdentityToken={}",
      encode_query(*role), encode_query(setting("AWS_ROLE_SESSION_NAME", "role_session_name").value_or("stoker")),
      encode_query(text_of_file(*token_file)));
  const std::string answer = answer_of(world, request, origin);
  Credentials credentials{text_of_element(answer, "AccessKeyId"), text_of_element(answer, "SecretAccessKey"),
                          text_of_element(answer, "SessionToken"),
                          parse_iso_time(text_of_element(answer, "Expiration")), origin};
  if (credentials.access_key.empty() || credentials.secret_key.empty()) {
    throw cannot_get(origin, "the answer of the token service has no keys");
  }
  return credentials;
}

std::optional<Credentials> from_profile(const CredentialWorld& world, const Settings& settings) {
  const Section& profile = settings.profile_settings;
  const std::string origin = fmt::format("profile `{}`", settings.profile);
  const auto text = [&](const char* key) {
    const auto found = profile.find(key);
    return found == profile.end() ? std::string() : found->second;
  };
  for (const char* const key : {"role_arn", "sso_session", "sso_start_url"}) {
    if (text(key).empty()) continue;
    throw Error(ErrorKind::unsupported,
                fmt::format("cannot get AWS credentials from {}: this version does not use its {}", origin, key),
                fmt::format("add a profile with `credential_process = aws configure export-credentials --profile {} "
                            "--format process`, and name it in AWS_PROFILE",
                            settings.profile));
  }
  if (!text("aws_access_key_id").empty() || !text("aws_secret_access_key").empty()) {
    if (text("aws_access_key_id").empty() || text("aws_secret_access_key").empty()) {
      throw cannot_get(origin, "it has only one of aws_access_key_id and aws_secret_access_key");
    }
    return Credentials{text("aws_access_key_id"), text("aws_secret_access_key"), text("aws_session_token"), {}, origin};
  }
  if (const std::string command = text("credential_process"); !command.empty()) {
    const std::string process = fmt::format("credential_process of {}", origin);
    std::string output;
    try {
      output = world.run(command);
    } catch (const Error& error) {
      check_interruption();  // Ctrl-C ends the program too: report the interruption
      // Its first word only: arguments may hold secrets.
      throw cannot_get(process, fmt::format("`{}` {}", command.substr(0, command.find(' ')), error.message()),
                       fmt::format("run it yourself: credential_process in the section of {}", origin));
    }
    return from_json(output, "SessionToken", process, world.now());
  }
  return {};
}

// Amazon's rule: keys travel over plain http only to this machine and to the addresses of its agents.
bool may_be_plain(std::string_view uri) {
  for (const std::string_view host : {"http://127.0.0.1", "http://localhost", "http://[::1]", "http://169.254.170.2",
                                      "http://169.254.170.23", "http://[fd00:ec2::23]"}) {
    if (!uri.starts_with(host)) continue;
    const std::string_view rest = uri.substr(host.size());
    if (rest.empty() || rest.front() == '/' || rest.front() == ':') return true;
  }
  return false;
}

std::optional<Credentials> from_container(const CredentialWorld& world) {
  const auto relative = world.environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const auto full = world.environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!relative && !full) return {};
  const std::string origin = "the container";
  HttpRequest request;
  request.url = relative ? fmt::format("http://169.254.170.2{}", *relative) : *full;
  if (!request.url.starts_with("https://") && !may_be_plain(request.url)) {
    throw cannot_get(origin, "AWS_CONTAINER_CREDENTIALS_FULL_URI is plain http to another machine");
  }
  request.without_proxy = true;
  request.connect_timeout = kMetadataTimeout;
  request.stall_timeout = 5 * kMetadataTimeout;
  std::string token = world.environment("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("");
  if (const auto file = world.environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) token = text_of_file(*file);
  if (token.find_first_of("\r\n") != std::string::npos) throw cannot_get(origin, "its token has a line break in it");
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  return from_json(answer_of(world, request, origin), "Token", origin, world.now());
}

// None: there is no such service here.
std::optional<Credentials> from_instance(const CredentialWorld& world) {
  if (world.environment("AWS_EC2_METADATA_DISABLED").value_or("") == "true") return {};
  const std::string origin = "the instance metadata";
  std::string root = world.environment("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("http://169.254.169.254");
  while (root.ends_with('/')) root.pop_back();
  HttpRequest request;
  request.without_proxy = true;
  request.connect_timeout = request.stall_timeout = kMetadataTimeout;
  request.method = HttpRequest::Method::put;
  request.url = root + "/latest/api/token";
  request.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"};
  const HttpReply token = world.send(request);
  if (token.status != 200 || !token.is_complete() || token.body.find_first_of("\r\n") != std::string::npos) return {};
  request.method = HttpRequest::Method::get;
  request.headers = {"X-aws-ec2-metadata-token: " + token.body};
  request.url = root + "/latest/meta-data/iam/security-credentials/";
  const HttpReply roles = world.send(request);
  if (!roles.is_complete() || roles.status == 404) return {};  // the machine has no role
  const std::string role = roles.body.substr(0, roles.body.find_first_of("\r\n"));
  if (roles.status != 200 || role.empty()) throw cannot_get(origin, fmt::format("HTTP status {}", roles.status));
  request.url += encode_path(role);
  return from_json(answer_of(world, request, origin), "Token", origin, world.now());
}

std::string run_process(const std::string& command) {
  const os::Captured ran = os::capture({"/bin/sh", "-c", command}, kProcessTimeout, 1 << 20, check_interruption);
  constexpr int kNoSuchCommand = 127;  // of a shell
  if (ran.timed_out) throw Error(ErrorKind::permission, "did not end within a minute");
  if (ran.code != 0) {
    throw Error(ErrorKind::permission, fmt::format("ended with exit code {}{}", ran.code,
                                                   ran.code == kNoSuchCommand ? ": there is no such command" : ""));
  }
  return ran.output;
}

}  // namespace

CredentialWorld CredentialWorld::real() {
  return {process_environment,
          [](const HttpRequest& request) {
            HttpClient client;
            return client.send(request);
          },
          [] { return std::chrono::system_clock::now(); }, run_process};
}

Credentials find_credentials(const CredentialWorld& world) {
  if (auto found = from_environment(world)) return *found;
  const Settings settings = load_settings(world.environment);
  if (auto found = from_web_identity(world, settings)) return *found;
  if (auto found = from_profile(world, settings)) return *found;
  if (auto found = from_container(world)) return *found;
  if (auto found = from_instance(world)) return *found;
  throw Error(ErrorKind::permission,
              fmt::format("cannot find AWS credentials: the environment, profile `{}`, web identity, the container and "
                          "the instance have none",
                          settings.profile),
              "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; AWS_NO_SIGN_REQUEST=yes reads public "
              "buckets");
}

class CredentialKeeper::Turn {
 public:
  struct IfFree {};

  // Waits for the thread that has the turn. Throws Error where the user interrupts this thread.
  explicit Turn(CredentialKeeper& keeper) : keeper_(keeper) {
    for (std::unique_lock lock(keeper_.mutex_); !take(lock);) {
      lock.unlock();
      check_interruption();
      lock.lock();
      keeper_.turn_ended_.wait_for(lock, kAskEvery, [&] { return !keeper_.is_looking_up_; });
    }
  }
  Turn(CredentialKeeper& keeper, IfFree) : keeper_(keeper) {
    std::unique_lock lock(keeper_.mutex_);
    take(lock);
  }
  ~Turn() {
    if (!is_ours_) return;
    {
      const std::scoped_lock lock(keeper_.mutex_);
      keeper_.is_looking_up_ = false;
    }
    keeper_.turn_ended_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool is_ours() const noexcept { return is_ours_; }

 private:
  bool take(const std::unique_lock<std::mutex>&) noexcept {
    is_ours_ = !keeper_.is_looking_up_;
    keeper_.is_looking_up_ = true;
    return is_ours_;
  }

  CredentialKeeper& keeper_;
  bool is_ours_ = false;
};

std::shared_ptr<const Credentials> CredentialKeeper::held() const {
  const std::scoped_lock lock(mutex_);
  return held_;
}

std::shared_ptr<const Credentials> CredentialKeeper::look_up() {
  auto found = std::make_shared<const Credentials>(find_credentials(world_));
  const std::scoped_lock lock(mutex_);
  return held_ = std::move(found);
}

std::shared_ptr<const Credentials> CredentialKeeper::current() {
  std::shared_ptr<const Credentials> now_held = held();
  const WallTime now = world_.now();
  if (now_held && (!now_held->expires || *now_held->expires - now > kRefreshBefore)) return now_held;
  if (now_held && *now_held->expires > now) {
    const Turn turn(*this, Turn::IfFree());
    if (!turn.is_ours() || now - tried_ < kRetryRefresh) return now_held;
    tried_ = now;
    try {
      return look_up();
    } catch (const Error&) {
      check_interruption();
      return now_held;  // good for some minutes yet: the next try may succeed
    }
  }
  const Turn turn(*this);
  if (auto others = held(); others != now_held) return others;  // another thread was quicker
  return look_up();
}

std::shared_ptr<const Credentials> CredentialKeeper::after_refusal(const std::shared_ptr<const Credentials>& used) {
  const Turn turn(*this);
  if (auto others = held(); others != used) return others;
  const std::shared_ptr<const Credentials> found = look_up();
  const bool is_same = used && found->access_key == used->access_key && found->secret_key == used->secret_key &&
                       found->session_token == used->session_token;
  return is_same ? nullptr : found;
}

std::optional<WallTime> parse_iso_time(std::string_view text) {
  const auto number = [&](std::size_t at, std::size_t digits) -> int {
    int value = 0;
    if (text.size() < at + digits) return -1;
    const char* const begin = text.data() + at;
    const auto [end, error] = std::from_chars(begin, begin + digits, value);
    return error == std::errc() && end == begin + digits ? value : -1;
  };
  const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
  const int hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != ' ')) return {};
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) return {};
  WallTime time =
      std::chrono::sys_days(date) + std::chrono::hours(hour) + minutes(minute) + std::chrono::seconds(second);
  std::string_view rest = text.substr(19);
  if (rest.starts_with('.')) rest.remove_prefix(std::min(rest.find_first_not_of("0123456789", 1), rest.size()));
  if (rest.empty() || rest == "Z") return time;
  if (rest.size() != 6 || (rest[0] != '+' && rest[0] != '-') || rest[3] != ':') return {};
  const std::size_t zone = text.size() - 5;
  const int away = number(zone, 2) * 60 + number(zone + 3, 2);
  return time - (rest[0] == '+' ? minutes(away) : -minutes(away));
}

}  // namespace stoker::storage::s3
