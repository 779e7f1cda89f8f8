// A bare .npy: the first dimension counts the samples, each a run of bytes in the one open source.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/dataset/kinds.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kFirstTry = 4096;  // headers are 128 bytes but for odd ones
constexpr std::uint64_t kLongestHeader = 2 << 20;

ErrorKind kind_of(Code code) {
  switch (code) {
    case Code::unsupported:
    case Code::too_large:
    case Code::mismatch:
      return ErrorKind::unsupported;
    case Code::no_memory:
      return ErrorKind::unavailable;
    default:
      return ErrorKind::corrupt;
  }
}

codec::ArrayInfo probe(const storage::Source& source) {
  const std::uint64_t size = source.size_bytes();
  codec::ArrayInfo info;
  Result result;
  for (const std::uint64_t wanted : {kFirstTry, kLongestHeader}) {
    std::vector<std::byte> head(std::min(wanted, size));
    const storage::Read read{0, head};
    source.read({&read, 1});
    result = codec::probe_npy(head, size, info);
    if (result.ok() || head.size() == size) break;
  }
  if (!result.ok()) {
    throw Error(kind_of(result.code), fmt::format("cannot read `{}`: {}", source.name(), result.cause));
  }
  if (info.rank == 0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("cannot take samples from `{}`: it is a single number, without a first "
                            "dimension to count them",
                            source.name()));
  }
  if (info.data_bytes == 0 || info.shape[0] == 0) {
    throw Error(ErrorKind::not_found, fmt::format("cannot find samples in `{}`: the array is empty", source.name()));
  }
  return info;
}

class NpyDataset final : public Dataset {
 public:
  NpyDataset(const std::string& address, const OpenOptions& options)
      : source_(open(address, options.storage)), borrowed_(source_.get()) {
    const codec::ArrayInfo info = probe(*source_);
    count_ = info.shape[0];
    row_bytes_ = info.data_bytes / count_;
    data_offset_ = info.data_offset;
    const std::size_t slash = address.rfind('/');
    file_name_ = slash == std::string::npos ? address : address.substr(slash + 1);

    facts_.address = address;
    facts_.kind = "npy";
    facts_.total_bytes = info.data_bytes;
    facts_.largest_bytes = row_bytes_;
    facts_.array = info;
    facts_.fingerprint = mix(hash_text(file_name_, source_->size_bytes()), static_cast<std::uint64_t>(info.dtype));
    for (const std::uint64_t dimension : info.dims()) facts_.fingerprint = mix(facts_.fingerprint, dimension);
  }

  const Facts& facts() const noexcept override { return facts_; }
  std::uint64_t size() const noexcept override { return count_; }
  std::uint64_t id(std::uint64_t index) const noexcept override { return index; }
  storage::Location locate(std::uint64_t index, std::span<char>) const noexcept override {
    return storage::Location::in_source(source_.get(), data_offset_ + index * row_bytes_, row_bytes_);
  }
  Label label(std::uint64_t) const noexcept override { return {}; }
  codec::Media media(std::uint64_t) const noexcept override { return codec::media_named("npy"); }
  std::string name(std::uint64_t index) const override { return fmt::format("{}[{}]", file_name_, index); }
  double column(std::size_t, std::uint64_t) const noexcept override { return std::numeric_limits<double>::quiet_NaN(); }
  std::span<const storage::Source* const> sources() const noexcept override { return {&borrowed_, 1}; }
  std::span<const storage::Backend* const> backends() const noexcept override {
    return {&backend_, backend_ != nullptr ? 1u : 0u};
  }

 private:
  static std::unique_ptr<storage::Source> open(const std::string& address, storage::Storage storage) {
    auto source = storage::open_source(address, storage);
    const storage::Storage settled = storage::settle(storage, source->size_bytes());
    return settled == storage::Storage::direct && storage != settled ? storage::open_source(address, settled)
                                                                     : std::move(source);
  }

  std::unique_ptr<storage::Source> source_;
  const storage::Source* borrowed_;
  const storage::Backend* backend_ = borrowed_->backend();
  Facts facts_;
  std::string file_name_;
  std::uint64_t count_ = 0, row_bytes_ = 0, data_offset_ = 0;
};

}  // namespace

DatasetPtr open_npy(const std::string& address, const OpenOptions& options) {
  return std::make_shared<NpyDataset>(address, options);
}

}  // namespace stoker::dataset
