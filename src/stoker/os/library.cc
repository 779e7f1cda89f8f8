#include "stoker/os/library.h"

#include <filesystem>
#include <system_error>

#include <dlfcn.h>
#include <link.h>

namespace stoker::os {

Library::Library(const char* file) noexcept : handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {}

Library::~Library() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

void* Library::address_of(const char* symbol) const noexcept {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, symbol);
}

std::string own_file() {
  Dl_info facts{};
  link_map* map = nullptr;
  const bool found =
      ::dladdr1(reinterpret_cast<void*>(&own_file), &facts, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
  std::error_code error;
  // The program itself has no name there.
  const bool is_program = !found || map == nullptr || map->l_name == nullptr || *map->l_name == '\0';
  const std::filesystem::path path = std::filesystem::canonical(is_program ? "/proc/self/exe" : map->l_name, error);
  return error ? std::string() : path.string();
}

}  // namespace stoker::os
