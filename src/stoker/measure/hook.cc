#include "stoker/measure/hook.h"

#include "stoker/os/file.h"

namespace stoker::measure {

void write_hook(const std::string& folder) {
  for (const HookFile& file : hook_files()) {
    const std::string path = folder + "/" + std::string(file.path);
    os::make_folders(path.substr(0, path.rfind('/')));
    os::write_file(path, file.text);
  }
}

}  // namespace stoker::measure
