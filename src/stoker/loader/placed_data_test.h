// Suites that hold wherever the data lies: a test writes files once, and opens them where its parameter says, as local
// files or as objects of a store.
#pragma once

#include <filesystem>
#include <iterator>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "stoker/loader/made_data_test.h"
#include "stoker/os/read_file.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::loader {

enum class Place { files, store };
inline constexpr Place kPlaces[] = {Place::files, Place::store};

inline std::string name_of(const ::testing::TestParamInfo<Place>& place) {
  return place.param == Place::files ? "Files" : "Store";
}

class PlacedData : public ::testing::TestWithParam<Place> {
 protected:
  // What `folder` holds now, or the file or folder `name` of it. Objects are copies: later changes do not reach them.
  dataset::DatasetPtr placed(const Folder& folder, const std::string& name = "", dataset::OpenOptions options = {}) {
    if (GetParam() == Place::files) return open_uncached(folder.path(name), std::move(options));
    const std::filesystem::path top = folder.path();
    const std::string bucket = top.filename().string();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
      if (!entry.is_regular_file()) continue;
      store_.put(bucket + "/" + entry.path().lexically_relative(top).string(), os::read_text(entry.path().string()));
    }
    return open_uncached(store_.address(name.empty() ? bucket : bucket + "/" + name), std::move(options));
  }

  // What data there can be read with.
  static std::span<const storage::Storage> storages() {
    using storage::Storage;
    static constexpr Storage kAll[] = {Storage::buffered, Storage::ram, Storage::automatic, Storage::direct,
                                       Storage::mmap};
    return GetParam() == Place::files ? std::span(kAll) : std::span(kAll).first(3);
  }

 private:
  storage::MemoryStore store_;
};

}  // namespace stoker::loader
