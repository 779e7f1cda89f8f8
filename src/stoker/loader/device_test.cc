// Promise 10: a pinned slab is refilled only after the device has finished with it.
#include "stoker/loader/device.h"

#include <cstdlib>
#include <set>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "stoker/loader/made_data_test.h"

namespace stoker::loader {
namespace {

struct Fake {
  Fake() {
    ::setenv("STOKER_DEVICE_RUNTIME", STOKER_FAKE_DEVICE, 1);
    library = ::dlopen(STOKER_FAKE_DEVICE, RTLD_NOW);
    finish = reinterpret_cast<void (*)(int)>(::dlsym(library, "fake_finish"));
    pinned = reinterpret_cast<int (*)()>(::dlsym(library, "fake_pinned"));
    recorded = reinterpret_cast<int (*)()>(::dlsym(library, "fake_recorded"));
    last_stream = reinterpret_cast<void* (*)()>(::dlsym(library, "fake_last_stream"));
  }
  ~Fake() {
    ::unsetenv("STOKER_DEVICE_RUNTIME");
    DeviceRuntime::set_stream_provider({});
  }
  void* library;
  void (*finish)(int);
  int (*pinned)();
  int (*recorded)();
  void* (*last_stream)();
};

TEST(Device, APinnedSlabIsReusedOnlyWhenItsEventIsDone) {
  Fake fake;
  int stream = 0;
  DeviceRuntime::set_stream_provider([&] { return static_cast<void*>(&stream); });
  Folder folder;
  folder.write("x.npy", npy(100, 100'000));
  LoaderOptions options = batches_of(10);
  options.pin_memory = true;
  options.memory_limit = 5700 << 10;  // two slabs
  {
    Loader loader(open_uncached(folder.path("x.npy")), options);
    std::set<const std::byte*> used;
    for (int i = 0; i < 2; ++i) {
      const BatchPtr batch = loader.next();
      used.insert(batch->tensors()[0].data);
    }
    EXPECT_EQ(used.size(), 2u);
    EXPECT_GT(fake.pinned(), 0);
    EXPECT_EQ(fake.recorded(), 2);
    EXPECT_EQ(fake.last_stream(), &stream);
    // Both slabs were dropped, but the device still reads them: no third batch.
    int asked = 0;
    EXPECT_THROW(loader.next([&] { return ++asked == 3; }), Error);
    fake.finish(1);
    {
      const BatchPtr batch = loader.next();
      ASSERT_TRUE(batch);
      EXPECT_TRUE(used.contains(batch->tensors()[0].data));
      EXPECT_EQ(static_cast<int>(batch->tensors()[0].data[0]), 20);
    }
    fake.finish(1 << 20);
    EXPECT_EQ(drain(loader).size(), 7u);
  }
  EXPECT_EQ(fake.pinned(), 0);
}

TEST(Device, WithoutARuntimePinningIsOffAndSaysSo) {
  ::setenv("STOKER_DEVICE_RUNTIME", "/nonexistent/libcudart.so", 1);
  Folder folder;
  folder.write("x.npy", npy(10, 10));
  LoaderOptions options = batches_of(5);
  options.pin_memory = true;
  Loader loader(open_uncached(folder.path("x.npy")), options);
  ::unsetenv("STOKER_DEVICE_RUNTIME");
  ASSERT_FALSE(loader.notes().empty());
  EXPECT_NE(loader.notes().back().in_python().find("pin_memory is off"), std::string::npos);
  EXPECT_EQ(drain(loader).size(), 2u);
}

}  // namespace
}  // namespace stoker::loader
