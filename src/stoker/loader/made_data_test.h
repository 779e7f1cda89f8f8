// Small data sets for the loader's tests, made in a temporary folder, and verbs to drain a loader.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/loader/loader.h"

namespace stoker::loader {

class Folder {
 public:
  Folder() {
    static std::atomic<int> count{0};
    path_ = std::filesystem::temp_directory_path() / fmt::format("stoker-test-{}-{}", ::getpid(), count++);
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(const std::string& name = "") const {
    return name.empty() ? path_.string() : (path_ / name).string();
  }

  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::filesystem::path path_;
};

inline std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// 16-bit mono; every frame has the same value.
inline std::string wav(std::uint32_t frames, std::int16_t value, std::uint32_t rate = 8000) {
  std::string data;
  for (std::uint32_t i = 0; i < frames; ++i) data += little(static_cast<std::uint16_t>(value), 2);
  return "RIFF" + little(36 + data.size(), 4) + "WAVEfmt " + little(16, 4) + little(1, 2) + little(1, 2) +
         little(rate, 4) + little(rate * 2, 4) + little(2, 2) + little(16, 2) + "data" + little(data.size(), 4) + data;
}

// n files a/000000.wav ..., the value of file i being i.
inline void write_wavs(const Folder& folder, int n, std::uint32_t frames = 100) {
  for (int i = 0; i < n; ++i) {
    folder.write(fmt::format("{}/{:06}.wav", i % 2 == 0 ? "even" : "odd", i),
                 wav(frames, static_cast<std::int16_t>(i)));
  }
}

// uint8 [rows, columns]; every byte of row i is i % 251.
inline std::string npy(std::uint64_t rows, std::uint64_t columns, std::string_view row_shape = "") {
  const std::string shape = row_shape.empty() ? fmt::format("{}", columns) : std::string(row_shape);
  std::string header = fmt::format("{{'descr': '|u1', 'fortran_order': False, 'shape': ({}, {}), }}", rows, shape);
  header.resize((10 + header.size() + 64) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string bytes = std::string("\x93NUMPY\x01\x00", 8) + little(header.size(), 2) + header;
  for (std::uint64_t i = 0; i < rows; ++i) bytes.append(columns, static_cast<char>(i % 251));
  return bytes;
}

inline dataset::DatasetPtr open_uncached(const std::string& address, dataset::OpenOptions options = {}) {
  options.use_cache = false;
  return dataset::open(address, options);
}

inline LoaderOptions batches_of(std::uint64_t batch_size, int workers = 2) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.num_workers = workers;
  options.memory_limit = 64 << 20;
  return options;
}

// One batch, copied out.
struct Taken {
  std::vector<std::int64_t> indices, ids, labels, lengths;
  std::vector<std::uint8_t> valid;
  std::vector<std::string> rows;  // the bytes of each row of the first tensor
  friend bool operator==(const Taken&, const Taken&) = default;
};

inline Taken copy_out(const Batch& batch) {
  Taken taken;
  taken.indices.assign(batch.indices().begin(), batch.indices().end());
  taken.ids.assign(batch.ids().begin(), batch.ids().end());
  taken.labels.assign(batch.labels().begin(), batch.labels().end());
  taken.lengths.assign(batch.lengths().begin(), batch.lengths().end());
  taken.valid.assign(batch.valid().begin(), batch.valid().end());
  const Tensor& tensor = batch.tensors()[0];
  std::size_t row_bytes = size_of(tensor.dtype);
  for (std::size_t i = 1; i < tensor.shape.size(); ++i) row_bytes *= static_cast<std::size_t>(tensor.shape[i]);
  for (std::uint64_t i = 0; i < batch.size(); ++i) {
    const bool is_packed = batch.packs_rows();
    const std::size_t at = is_packed ? static_cast<std::size_t>(batch.places()[i]) : i * row_bytes;
    const std::size_t bytes = is_packed ? static_cast<std::size_t>(batch.lengths()[i]) : row_bytes;
    taken.rows.emplace_back(reinterpret_cast<const char*>(tensor.data + at), bytes);
  }
  return taken;
}

inline std::vector<Taken> drain(Loader& loader, std::uint64_t most = ~std::uint64_t{0}) {
  std::vector<Taken> all;
  while (all.size() < most) {
    const BatchPtr batch = loader.next();
    if (!batch) break;
    all.push_back(copy_out(*batch));
  }
  return all;
}

inline std::vector<Taken> epoch_of(const dataset::DatasetPtr& dataset, const LoaderOptions& options,
                                   std::uint64_t epoch = 0) {
  Loader loader(dataset, options);
  loader.start_epoch(epoch);
  return drain(loader);
}

inline std::vector<std::int64_t> indices_of(const std::vector<Taken>& batches) {
  std::vector<std::int64_t> all;
  for (const Taken& batch : batches) all.insert(all.end(), batch.indices.begin(), batch.indices.end());
  return all;
}

}  // namespace stoker::loader
