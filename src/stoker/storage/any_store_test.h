// The stores that the suites run on: the one in memory, and S3 where this build has it.
#pragma once

#include <memory>
#include <string>

#include "stoker/storage/memory_store_test.h"
#ifdef STOKER_HAS_S3
#include "stoker/storage/s3/store_test.h"
#endif

namespace stoker::storage {

enum class StoreKind { memory, s3 };

#ifdef STOKER_HAS_S3
inline constexpr StoreKind kStores[] = {StoreKind::memory, StoreKind::s3};
#else
inline constexpr StoreKind kStores[] = {StoreKind::memory};
#endif

inline const char* name_of(StoreKind kind) {
  return kind == StoreKind::memory ? "Memory" : "S3";
}

class AnyStore {
 public:
  explicit AnyStore(StoreKind kind) {
#ifdef STOKER_HAS_S3
    if (kind == StoreKind::s3) s3_ = std::make_unique<S3Store>();
#endif
    if (kind == StoreKind::memory) memory_ = std::make_unique<MemoryStore>();
  }

#ifdef STOKER_HAS_S3
#define STOKER_TO_STORE(call) return s3_ ? s3_->call : memory_->call
  bool is_s3() const {
    return s3_ != nullptr;
  }
  S3Store& s3() {
    return *s3_;
  }
  const Backend& backend() const {
    return s3_ ? s3_->backend() : *memory_;
  }
#else
#define STOKER_TO_STORE(call) return memory_->call
  bool is_s3() const {
    return false;
  }
  const Backend& backend() const {
    return *memory_;
  }
#endif
  MemoryStore& memory() {
    return *memory_;
  }
  operator const Backend&() const {
    return backend();
  }  // NOLINT: as the store in memory, which is a backend

  std::unique_ptr<Source> open(const std::string& name) const {
    return backend().open(name, Storage::buffered);
  }
  std::string address(std::string_view name) const {
    STOKER_TO_STORE(address(name));
  }
  void put(const std::string& name, std::string bytes) {
    STOKER_TO_STORE(put(name, std::move(bytes)));
  }
  std::string version(const std::string& name) const {
    STOKER_TO_STORE(version(name));
  }
  void set_latency(std::chrono::nanoseconds usual) {
    STOKER_TO_STORE(set_latency(usual));
  }
  void hold(const std::string& name) {
    STOKER_TO_STORE(hold(name));
  }
  void let_go() {
    STOKER_TO_STORE(let_go());
  }
  std::uint64_t requests() const {
    STOKER_TO_STORE(requests());
  }
  std::uint64_t answered() const {
    STOKER_TO_STORE(answered());
  }
  std::uint64_t most_in_flight() const {
    STOKER_TO_STORE(most_in_flight());
  }
#undef STOKER_TO_STORE

 private:
#ifdef STOKER_HAS_S3
  std::unique_ptr<S3Store> s3_;
#endif
  std::unique_ptr<MemoryStore> memory_;
};

}  // namespace stoker::storage
