#include "stoker/os/library.h"

#include <dlfcn.h>

namespace stoker::os {

Library::Library(const char* file) noexcept : handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {}

Library::~Library() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

void* Library::address_of(const char* symbol) const noexcept {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, symbol);
}

}  // namespace stoker::os
