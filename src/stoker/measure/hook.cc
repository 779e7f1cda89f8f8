#include "stoker/measure/hook.h"

#include <cstdlib>

#include "stoker/os/file.h"

namespace stoker::measure {

void write_hook(const std::string& folder) {
  for (const HookFile& file : hook_files()) {
    const std::string path = folder + "/" + std::string(file.path);
    os::make_folders(path.substr(0, path.rfind('/')));
    os::write_file(path, file.text);
  }
}

std::map<std::string, std::string> install_hook(const std::string& folder,
                                                std::map<std::string, std::string> environment) {
  const std::string hook = folder + "/hook", records = folder + "/records";
  os::make_folders(hook);
  os::make_folders(records);
  write_hook(hook);
  const auto own = environment.find("PYTHONPATH");
  const char* const before = own != environment.end() ? own->second.c_str() : std::getenv("PYTHONPATH");
  environment["PYTHONPATH"] = before != nullptr && *before != '\0' ? hook + ":" + before : hook;
  environment["STOKER_MEASURE_DIR"] = records;
  return environment;
}

}  // namespace stoker::measure
