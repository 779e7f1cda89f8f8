#include "stoker/os/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "stoker/os/child.h"

namespace stoker::os {
namespace {

// Pointers into `words`, as exec takes them.
std::vector<char*> null_ended(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

class FileActions {
 public:
  explicit FileActions(const std::vector<Spawn::Descriptor>& descriptors) {
    posix_spawn_file_actions_init(&actions_);
    for (const auto& [target, ours] : descriptors) {
      if (ours != Spawn::kNull) {
        posix_spawn_file_actions_adddup2(&actions_, ours, target);
      } else {
        posix_spawn_file_actions_addopen(&actions_, target, "/dev/null", target == STDIN_FILENO ? O_RDONLY : O_WRONLY,
                                         0);
      }
    }
  }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }

  const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class Attributes {
 public:
  explicit Attributes(const Spawn& how) {
    posix_spawnattr_init(&attributes_);
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    for (const int signal : how.default_signals) sigaddset(&defaults, signal);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (how.has_group) {
      posix_spawnattr_setpgroup(&attributes_, 0);
      flags |= POSIX_SPAWN_SETPGROUP;
    }
    posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }

  const posix_spawnattr_t* get() const noexcept { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace

pid_t spawn(const std::vector<std::string>& command, const Spawn& how) {
  const std::vector<std::string> variables = environment_with(how.environment);
  const std::vector<char*> argv = null_ended(command), envp = null_ended(variables);
  const FileActions actions(how.descriptors);
  const Attributes attributes(how);
  pid_t pid = -1;
  const int error_number = posix_spawnp(&pid, argv[0], actions.get(), attributes.get(), argv.data(), envp.data());
  if (error_number != 0) throw spawn_error(error_number, command[0], how.hint);
  return pid;
}

}  // namespace stoker::os
