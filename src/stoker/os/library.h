// A shared library that is loaded while the program runs, so that the program also starts without it. A Library belongs
// to one thread; what it found may be called from any.
#pragma once

#include <string>
#include <utility>

namespace stoker::os {

class Library {
 public:
  Library() noexcept = default;
  explicit Library(const char* file) noexcept;  // as dlopen(3) finds it; false afterwards: it cannot be loaded
  Library(Library&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Library& operator=(Library other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Library();  // unloads it: nothing that it gave may be called any more

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  void keep_loaded() noexcept { handle_ = nullptr; }  // until the program ends

  // Null if the library has no such function. The caller knows its type.
  template <typename Function>
  Function find(const char* symbol) const noexcept {
    return reinterpret_cast<Function>(address_of(symbol));
  }

 private:
  void* address_of(const char* symbol) const noexcept;

  void* handle_ = nullptr;
};

// The whole path of the file that holds this code: the program, or the Python module. Empty where the system does not
// say.
std::string own_file();

}  // namespace stoker::os
