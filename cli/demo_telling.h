// How a demo speaks: numbered headings, the commands that it runs, and lines of the terminal's width. With --json it
// says nothing until the end. One thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/os/temporary_folder.h"

#include "terminal.h"

namespace stoker::cli {

// The folder of a demo: of --dir, which stays, or a temporary one, which goes unless --keep is given.
class DemoFolder {
 public:
  explicit DemoFolder(const Arguments& arguments);
  const std::string& path() const { return path_; }
  bool keeps() const { return keep_; }

 private:
  std::optional<os::TemporaryFolder> temporary_;
  std::string path_;
  bool keep_;
};

// `text` in lines of the terminal's width, each after `indent`; lines that go on end with `more`.
std::string wrapped(const std::string& text, std::string_view more = "", std::string_view indent = "   ");
std::string sentence(std::string text);  // with a capital letter

class Telling {
 public:
  // `environment` is for the verbs that it runs.
  Telling(const Face& face, std::string folder, std::map<std::string, std::string> environment = {});

  void tell(const std::string& text) const;
  void heading(const std::string& text);
  // Shows a command. Paths are shown as they are seen from the demo's folder, where the commands can be run again.
  void command(const std::vector<std::string>& words) const;
  // Shows a command, runs it, and gives its answer. `shown` takes the place of the words that are shown. Throws Error
  // where there is no answer.
  Json verb(const std::vector<std::string>& words, const std::string& label,
            const std::vector<std::string>& shown = {}) const;
  std::string inside(std::string_view name) const;  // the path of a file in the demo's folder

  const Face& face() const { return face_; }
  const std::string& folder() const { return folder_; }

 private:
  const Face& face_;
  const std::string folder_;
  const std::map<std::string, std::string> environment_;
  int number_ = 0;
};

}  // namespace stoker::cli
