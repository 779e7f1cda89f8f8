#include "stoker/storage/s3/credentials.h"

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "stoker/base/error.h"
#include "stoker/os/temp_folder_test.h"
#include "stoker/storage/interruption.h"
#include "stoker/storage/s3/settings.h"

namespace stoker::storage::s3 {
namespace {

using std::chrono::minutes;

constexpr std::string_view kSecret = "the-secret";

// A machine with an environment, files, servers and a clock of its own.
class S3Credentials : public ::testing::Test {
 protected:
  S3Credentials() {
    set("HOME", folder_.path());
    set("AWS_EC2_METADATA_DISABLED", "true");
  }
  void set(const std::string& name, const std::string& value) { variables_[name] = value; }
  void serve(const std::string& url, const std::string& body, int status = 200) {
    HttpReply reply;
    reply.status = status;
    reply.body = body;
    servers_[url] = reply;
  }
  static std::string keys(const std::string& access, const std::string& token_key, const std::string& expires = {}) {
    return fmt::format(R"({{"Version": 1, "AccessKeyId": "{}", "SecretAccessKey": "{}", "{}": "token"{}}})", access,
                       kSecret, token_key, expires.empty() ? "" : fmt::format(R"(, "Expiration": "{}")", expires));
  }
  CredentialWorld world() {
    return {[this](const char* name) -> std::optional<std::string> {
              const auto found = variables_.find(name);
              return found == variables_.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
            },
            [this](const HttpRequest& request) {
              asked_.push_back(request);
              const auto found = servers_.find(request.url);
              if (found != servers_.end()) return found->second;
              HttpReply reply;
              reply.curl_code = 7;
              reply.broken = "connection refused";
              return reply;
            },
            [this] { return now_; },
            [this](const std::string& command) {
              ran_.push_back(command);
              return output_;
            }};
  }
  Credentials find() { return find_credentials(world()); }
  Error failing() {
    try {
      (void)find();
    } catch (const Error& error) {
      EXPECT_EQ(error.message().find(kSecret), std::string::npos) << error.message();
      EXPECT_EQ(error.hint().find(kSecret), std::string::npos) << error.hint();
      return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return Error(ErrorKind::internal, "");
  }

  os::TempFolder folder_;
  std::map<std::string, std::string> variables_;
  std::map<std::string, HttpReply> servers_;
  std::vector<HttpRequest> asked_;
  std::vector<std::string> ran_;
  std::string output_;
  WallTime now_ = *parse_iso_time("2026-11-17T12:00:00Z");
};

TEST_F(S3Credentials, OfTheEnvironmentComeFirst) {
  folder_.file(".aws/credentials", "[default]\naws_access_key_id = file\naws_secret_access_key = x\n");
  set("AWS_ACCESS_KEY_ID", "env");
  set("AWS_SECRET_ACCESS_KEY", std::string(kSecret));
  set("AWS_SESSION_TOKEN", "token");
  const Credentials found = find();
  EXPECT_EQ(found.access_key, "env");
  EXPECT_EQ(found.secret_key, kSecret);
  EXPECT_EQ(found.session_token, "token");
  EXPECT_EQ(found.origin, "the environment");
}

TEST_F(S3Credentials, HalfOfThemIsAnErrorThatSaysWhichHalf) {
  set("AWS_SECRET_ACCESS_KEY", std::string(kSecret));
  EXPECT_NE(failing().message().find("AWS_ACCESS_KEY_ID is not"), std::string::npos);
}

TEST_F(S3Credentials, OfAProfileAreInTheCredentialsFileOrTheConfigFile) {
  folder_.file(".aws/credentials",
               "[train]\naws_access_key_id = one\naws_secret_access_key = x\naws_session_token = t\n");
  folder_.file(".aws/config", "[profile other]\naws_access_key_id = two\naws_secret_access_key = y\n");
  set("AWS_PROFILE", "train");
  EXPECT_EQ(find().access_key, "one");
  EXPECT_EQ(find().session_token, "t");
  EXPECT_EQ(find().origin, "profile `train`");
  set("AWS_PROFILE", "other");
  EXPECT_EQ(find().access_key, "two");
  set("AWS_PROFILE", "none");
  EXPECT_EQ(failing().kind(), ErrorKind::not_found);
}

TEST_F(S3Credentials, OfAnotherFileAreThoseThatTheEnvironmentNames) {
  set("AWS_SHARED_CREDENTIALS_FILE",
      folder_.file("elsewhere", "[default]\naws_access_key_id = one\naws_secret_access_key = x\n"));
  EXPECT_EQ(find().access_key, "one");
}

TEST_F(S3Credentials, OfAProcessAreWhatItPrints) {
  folder_.file(".aws/config", "[default]\ncredential_process = /opt/bin/keys --for \"me\"\n");
  output_ = keys("process", "SessionToken", "2026-11-17T13:00:00Z");
  const Credentials found = find();
  EXPECT_EQ(ran_, std::vector<std::string>{"/opt/bin/keys --for \"me\""});
  EXPECT_EQ(found.access_key, "process");
  EXPECT_EQ(found.session_token, "token");
  EXPECT_EQ(found.expires, now_ + minutes(60));
  for (const std::string& output : {std::string("no JSON"), std::string("{}"), std::string("[1]"),
                                    std::string(R"({"SecretAccessKey": "the-secret"})")}) {
    output_ = output;
    EXPECT_EQ(failing().kind(), ErrorKind::permission) << output;
  }
}

TEST_F(S3Credentials, ARealProcessIsRunByTheShell) {
  folder_.file(".aws/config", "[default]\ncredential_process = printf '%s' '" + keys("ran", "SessionToken") + "'\n");
  CredentialWorld world = this->world();
  world.run = CredentialWorld::real().run;
  EXPECT_EQ(find_credentials(world).access_key, "ran");
  const auto message_of = [&](const std::string& command) {
    folder_.file(".aws/config", fmt::format("[default]\ncredential_process = {}\n", command));
    try {
      (void)find_credentials(world);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(message_of("echo the-secret; exit 3"),
            "cannot get AWS credentials from credential_process of profile `default`: `echo` ended with exit code 3");
  EXPECT_EQ(
      message_of("/nothere.sh --token the-secret"),
      "cannot get AWS credentials from credential_process of profile `default`: `/nothere.sh` ended with exit code "
      "127: there is no such command");
}

TEST_F(S3Credentials, AProcessThatHangsEndsWithTheInterruption) {
  folder_.file(".aws/config", "[default]\ncredential_process = sleep 600\n");
  CredentialWorld world = this->world();
  world.run = CredentialWorld::real().run;
  int asked = 0;
  Interruption interruption([&] { return ++asked > 1; });  // not before the process runs
  const InterruptionScope scope(&interruption);
  try {
    (void)find_credentials(world);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "interrupted");
  }
}

TEST_F(S3Credentials, AThreadThatWaitsForTheLookupOfAnotherEndsWithTheInterruption) {
  folder_.file(".aws/config", "[default]\ncredential_process = keys\n");
  CredentialWorld world = this->world();
  std::atomic<bool> is_running{false}, may_end{false};
  world.run = [&](const std::string&) {
    is_running = true;
    while (!may_end) std::this_thread::yield();
    return keys("late", "SessionToken");
  };
  CredentialKeeper keeper(world);
  std::thread first([&] { EXPECT_EQ(keeper.current()->access_key, "late"); });
  while (!is_running) std::this_thread::yield();
  {
    Interruption interruption([] { return true; });
    const InterruptionScope scope(&interruption);
    EXPECT_THROW((void)keeper.current(), Error);
    EXPECT_THROW((void)keeper.after_refusal(nullptr), Error);
  }
  may_end = true;
  first.join();
  EXPECT_EQ(keeper.current()->access_key, "late");
}

TEST_F(S3Credentials, KeysThatHaveExpiredAlreadyAreRefusedWithTheTime) {
  folder_.file(".aws/config", "[default]\ncredential_process = get-keys\n");
  output_ = keys("process", "SessionToken", "2001-02-03T04:05:06Z");
  EXPECT_NE(failing().message().find("its keys expired at 2001-02-03T04:05:06Z"), std::string::npos);
}

TEST_F(S3Credentials, ARequestIsUnsignedOnlyWhereTheVariableSaysYes) {
  for (const char* const word : {"1", "yes", "TRUE", "on"}) {
    set("AWS_NO_SIGN_REQUEST", word);
    EXPECT_TRUE(load_settings(world().environment).anonymous) << word;
  }
  for (const char* const word : {"0", "no", "False", "off"}) {
    set("AWS_NO_SIGN_REQUEST", word);
    EXPECT_FALSE(load_settings(world().environment).anonymous) << word;
  }
  set("AWS_NO_SIGN_REQUEST", "maybe");
  try {
    (void)load_settings(world().environment);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "AWS_NO_SIGN_REQUEST is `maybe`, and neither yes nor no");
    EXPECT_EQ(error.hint(), "it is 1, yes, true, on, 0, no, false or off");
  }
}

TEST_F(S3Credentials, ProfilesThatAssumeARoleOrSignOnAreRefusedByName) {
  folder_.file(
      ".aws/config",
      "[profile role]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = default\n[profile sso]\nsso_session = "
      "me\n");
  for (const auto& [profile, word] : {std::pair("role", "role_arn"), std::pair("sso", "sso_session")}) {
    set("AWS_PROFILE", profile);
    const Error error = failing();
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_NE(error.message().find(word), std::string::npos);
    EXPECT_NE(error.hint().find("export-credentials"), std::string::npos);
  }
}

TEST_F(S3Credentials, OfAWebIdentityAreExchangedForItsToken) {
  set("AWS_WEB_IDENTITY_TOKEN_FILE", folder_.file("token", "a.b/c=\n"));
  set("AWS_ROLE_ARN", "arn:aws:iam::1:role/train");
  set("AWS_REGION", "eu-west-1");
  serve(
      "https://sts.eu-west-1.amazonaws.com/",
      "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><SessionToken>st</SessionToken>"
      "<SecretAccessKey>the-secret</SecretAccessKey><Expiration>2026-11-17T13:00:00Z</Expiration><AccessKeyId>web"
      "</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>");
  const Credentials found = find();
  EXPECT_EQ(found.access_key, "web");
  EXPECT_EQ(found.session_token, "st");
  EXPECT_EQ(found.expires, now_ + minutes(60));
  EXPECT_EQ(asked_.at(0).body,
            "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Ftrain&RoleSessionName=stoker&"
            "Version=2011-06-15&WebIdentityToken=a.b%2Fc%3D");
  serve("https://sts.eu-west-1.amazonaws.com/",
        "<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>expired</Message></Error></ErrorResponse>",
        400);
  EXPECT_NE(failing().message().find("InvalidIdentityToken"), std::string::npos);
}

TEST_F(S3Credentials, OfAContainerAreAskedForWithItsToken) {
  set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/keys");
  serve("http://169.254.170.2/v2/keys", keys("container", "Token", "2026-11-17T18:00:00Z"));
  EXPECT_EQ(find().access_key, "container");
  set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "");
  set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials");
  set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", folder_.file("pod", "pod-token\n"));
  serve("http://169.254.170.23/v1/credentials", keys("pod", "Token"));
  EXPECT_EQ(find().access_key, "pod");
  EXPECT_EQ(asked_.back().headers, std::vector<std::string>{"Authorization: pod-token"});
  for (const char* const elsewhere : {"http://169.254.170.23.evil.org/", "http://example.org/", "http://127.0.0.12/"}) {
    set("AWS_CONTAINER_CREDENTIALS_FULL_URI", elsewhere);
    const std::size_t before = asked_.size();
    EXPECT_NE(failing().message().find("plain http"), std::string::npos);
    EXPECT_EQ(asked_.size(), before) << "nothing is sent there";
  }
}

TEST_F(S3Credentials, OfAnInstanceAreAskedForWithASessionToken) {
  set("AWS_EC2_METADATA_DISABLED", "");
  serve("http://169.254.169.254/latest/api/token", "imds-token");
  serve("http://169.254.169.254/latest/meta-data/iam/security-credentials/", "my role\n");
  serve("http://169.254.169.254/latest/meta-data/iam/security-credentials/my%20role", keys("instance", "Token"));
  EXPECT_EQ(find().access_key, "instance");
  ASSERT_EQ(asked_.size(), 3u);
  EXPECT_EQ(asked_[0].method, HttpRequest::Method::put);
  EXPECT_EQ(asked_[2].headers, std::vector<std::string>{"X-aws-ec2-metadata-token: imds-token"});
  for (const HttpRequest& request : asked_) EXPECT_TRUE(request.without_proxy);
}

TEST_F(S3Credentials, ThatAreNowhereAreAnErrorThatSaysWhereWasLooked) {
  set("AWS_EC2_METADATA_DISABLED", "");
  const Error error = failing();
  EXPECT_EQ(error.kind(), ErrorKind::permission);
  EXPECT_NE(error.message().find("profile `default`"), std::string::npos);
  EXPECT_NE(error.hint().find("AWS_NO_SIGN_REQUEST"), std::string::npos);
  serve("http://169.254.169.254/latest/api/token", "imds-token");
  serve("http://169.254.169.254/latest/meta-data/iam/security-credentials/", "", 404);
  EXPECT_EQ(failing().message(), error.message()) << "a machine without a role";
}

TEST_F(S3Credentials, AreRefreshedSomeMinutesBeforeTheyExpire) {
  folder_.file(".aws/config", "[default]\ncredential_process = keys\n");
  output_ = keys("first", "SessionToken", "2026-11-17T13:00:00Z");
  CredentialKeeper keeper(world());
  EXPECT_EQ(keeper.current()->access_key, "first");
  now_ += minutes(50);
  EXPECT_EQ(keeper.current()->access_key, "first");
  EXPECT_EQ(ran_.size(), 1u);
  now_ += minutes(6);
  output_ = "no keys now";
  EXPECT_EQ(keeper.current()->access_key, "first") << "still good for four minutes";
  EXPECT_EQ(keeper.current()->access_key, "first");
  EXPECT_EQ(ran_.size(), 2u) << "and is not tried again at once";
  now_ += minutes(1);
  output_ = keys("second", "SessionToken", "2026-11-17T14:00:00Z");
  EXPECT_EQ(keeper.current()->access_key, "second");
  now_ += minutes(90);
  output_ = "no keys now";
  EXPECT_THROW((void)keeper.current(), Error) << "these have expired";
}

TEST_F(S3Credentials, ThatWereRefusedAreLookedUpAgain) {
  const std::string path =
      folder_.file(".aws/credentials", "[default]\naws_access_key_id = old\naws_secret_access_key = x\n");
  CredentialKeeper keeper(world());
  const auto old = keeper.current();
  EXPECT_EQ(keeper.after_refusal(old), nullptr) << "there are no others";
  folder_.file(".aws/credentials", "[default]\naws_access_key_id = new\naws_secret_access_key = x\n");
  const auto others = keeper.after_refusal(keeper.current());
  ASSERT_NE(others, nullptr);
  EXPECT_EQ(others->access_key, "new");
  EXPECT_EQ(keeper.after_refusal(old), others) << "another thread was refused with the old ones";
}

TEST_F(S3Credentials, AFileThatOthersCanReadIsNoted) {
  const std::string path =
      folder_.file(".aws/credentials", "[default]\naws_access_key_id = a\naws_secret_access_key = x\n");
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  const Settings open = load_settings(world().environment);
  ASSERT_EQ(open.notes.size(), 1u);
  EXPECT_NE(open.notes[0].find("chmod 600 " + path), std::string::npos);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_TRUE(load_settings(world().environment).notes.empty());
}

TEST_F(S3Credentials, SettingsComeFromTheEnvironmentAndTheProfile) {
  folder_.file(".aws/config",
               "[profile x]\nregion = eu-west-3\nendpoint_url = http://config:1\nservices = local\ns3 =\n  "
               "addressing_style = virtual\n[services local]\ns3 =\n  endpoint_url = http://service:1\n");
  EXPECT_EQ(load_settings(world().environment).region, "us-east-1");
  set("AWS_PROFILE", "x");
  Settings settings = load_settings(world().environment);
  EXPECT_EQ(settings.region, "eu-west-3");
  EXPECT_EQ(settings.endpoint_url, "http://service:1");
  EXPECT_EQ(settings.style, Style::virtual_host);
  EXPECT_FALSE(settings.anonymous);
  set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
  EXPECT_EQ(load_settings(world().environment).endpoint_url, "");
  set("AWS_ENDPOINT_URL", "http://all:1");
  EXPECT_EQ(load_settings(world().environment).endpoint_url, "http://all:1");
  set("AWS_ENDPOINT_URL_S3", "http://s3:1");
  set("AWS_DEFAULT_REGION", "r-1");
  set("AWS_NO_SIGN_REQUEST", "YES");
  set("AWS_REQUEST_PAYER", "requester");
  set("AWS_CA_BUNDLE", "/ca.pem");
  set("AWS_MAX_ATTEMPTS", "3");
  settings = load_settings(world().environment);
  EXPECT_EQ(settings.endpoint_url, "http://s3:1");
  EXPECT_EQ(settings.region, "r-1");
  EXPECT_TRUE(settings.anonymous);
  EXPECT_TRUE(settings.requester_pays);
  EXPECT_EQ(settings.ca_bundle, "/ca.pem");
  EXPECT_EQ(settings.most_tries, 3);
  set("AWS_REGION", "r-2");
  EXPECT_EQ(load_settings(world().environment).region, "r-2");
}

TEST_F(S3Credentials, SettingsThatMakeNoSenseAreRefused) {
  set("AWS_REGION", "eu west");
  EXPECT_THROW(load_settings(world().environment), Error);
  set("AWS_REGION", "");
  set("AWS_MAX_ATTEMPTS", "many");
  EXPECT_THROW(load_settings(world().environment), Error);
}

TEST(S3Times, AreReadWithAndWithoutFractionsAndZones) {
  const auto time = parse_iso_time("2026-11-17T12:00:00Z");
  ASSERT_TRUE(time);
  EXPECT_EQ(parse_iso_time("2026-11-17T12:00:00.123456Z"), time);
  EXPECT_EQ(parse_iso_time("2026-11-17T12:00:00+00:00"), time);
  EXPECT_EQ(parse_iso_time("2026-11-17T14:30:00+02:30"), time);
  EXPECT_EQ(parse_iso_time("2026-11-17T07:00:00-05:00"), time);
  for (const char* const text : {"", "now", "2026-13-17T12:00:00Z", "2026-11-17", "2026-11-17T25:00:00Z",
                                 "2026-11-17T12:00:00 Zulu", "20261117T120000Z", "2026-11-1xT12:00:00Z"}) {
    EXPECT_FALSE(parse_iso_time(text)) << text;
  }
}

}  // namespace
}  // namespace stoker::storage::s3
