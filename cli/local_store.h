// An S3 server for a demo: SeaweedFS on ports of this machine alone, with a temporary folder of its own. It ends with
// this object, and its folder goes. If this process is killed, the server ends too. Make it while this process has one
// thread; upload() may be called from any.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stoker/os/isolated.h"
#include "stoker/os/temporary_folder.h"
#include "stoker/storage/s3/session.h"

namespace stoker::cli {

class LocalStore {
 public:
  // Waits until the server answers and has the bucket. Throws Error(not_found) where SeaweedFS is not installed, and
  // Error(unavailable) where it does not start, or `interrupted` says true.
  LocalStore(std::string bucket, const std::function<bool()>& interrupted);

  const std::string& endpoint() const { return endpoint_; }
  // The variables that lead s3:// to this server; what the user set for another store is made empty.
  const std::map<std::string, std::string>& environment() const { return environment_; }
  void upload(const std::string& key, std::string body) const;  // throws Error

 private:
  bool start(const std::string& program, const std::function<bool()>& interrupted);  // false: it ended at once
  bool answers();
  std::string last_words() const;  // of its log

  const std::string bucket_;
  os::TemporaryFolder folder_;
  std::string endpoint_;
  std::map<std::string, std::string> environment_;
  storage::s3::HttpClient client_;
  std::shared_ptr<storage::s3::Session> session_;
  std::optional<os::Isolated> server_;  // the last member: it ends before its folder goes
};

}  // namespace stoker::cli
