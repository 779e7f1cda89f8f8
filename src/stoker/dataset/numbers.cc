#include "stoker/dataset/numbers.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/dataset/kinds.h"

namespace stoker::dataset {
namespace {

class Numbers final : public Dataset, public storage::Source {
 public:
  Numbers(std::uint64_t count, const std::string& name) : count_(count) {
    if (count == 0)
      throw Error(ErrorKind::not_found, fmt::format("cannot find samples in `{}`: its length is 0", name));
    facts_.address = name;
    facts_.kind = "dataset";
    facts_.total_bytes = count;
    facts_.largest_bytes = 1;
    facts_.fingerprint = mix(hash_text("numbers", count), count);
    facts_.array.emplace();
    facts_.array->rank = 2;
    facts_.array->shape[0] = count;
    facts_.array->shape[1] = 1;
    facts_.array->data_bytes = count;
  }

  const Facts& facts() const noexcept override { return facts_; }
  std::uint64_t size() const noexcept override { return count_; }
  std::uint64_t id(std::uint64_t index) const noexcept override { return index; }
  storage::Location locate(std::uint64_t index, std::span<char>) const noexcept override {
    return storage::Location::in_source(this, index, 1);
  }
  Label label(std::uint64_t) const noexcept override { return {}; }
  codec::Media media(std::uint64_t) const noexcept override { return codec::media_named("npy"); }
  std::string name(std::uint64_t index) const override { return fmt::format("{}[{}]", facts_.address, index); }
  double column(std::size_t, std::uint64_t) const noexcept override { return std::numeric_limits<double>::quiet_NaN(); }
  std::span<const storage::Source* const> sources() const noexcept override { return {&self_, 1}; }

  std::string_view name() const noexcept override { return facts_.address; }
  std::uint64_t size_bytes() const noexcept override { return count_; }
  void read(std::span<const storage::Read> reads) const override {
    for (const storage::Read& read : reads) std::ranges::fill(read.into, std::byte{0});
  }

 private:
  std::uint64_t count_;
  const storage::Source* self_ = this;
  Facts facts_;
};

}  // namespace

DatasetPtr numbers(std::uint64_t count, const std::string& name, const OpenOptions& options) {
  return narrow_and_widen(std::make_shared<Numbers>(count, name), options);
}

}  // namespace stoker::dataset
