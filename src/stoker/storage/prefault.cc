#include "stoker/storage/prefault.h"

#include "stoker/os/mapping.h"

namespace stoker::storage {

bool Prefault::ask(std::span<const std::byte> bytes) noexcept {
  if (!cold_ || ++asked_ % kProbe == 0) return false;
  os::read_pages_soon(bytes);
  return true;
}

void Prefault::settle(std::span<const std::byte> bytes, bool asked) noexcept {
  if (bytes.empty()) return;
  if (asked) {
    (void)os::populate_pages(bytes);  // what fails here fails again, with its name, when it is touched
  } else {
    (void)*static_cast<const volatile std::byte*>(bytes.data());
  }
}

void Prefault::begin() noexcept {
  faults_ = os::page_faults_that_waited();
}

void Prefault::end(bool all_asked) noexcept {
  if (os::page_faults_that_waited() != faults_) {
    cold_ = true;
  } else if (!all_asked) {
    cold_ = false;
  }
}

}  // namespace stoker::storage
