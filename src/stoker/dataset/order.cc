#include "stoker/dataset/order.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"

namespace stoker::dataset {
namespace {

// Separates the keys of the epoch's order from those of the stand-ins.
constexpr std::uint64_t kOrderKey = 0x6F72646572;
constexpr std::uint64_t kReplacementKey = 0x7265706C616365;
constexpr std::uint64_t kWindowKey = 0x77696E646F77;
constexpr std::uint64_t kHomeKey = 0x686F6D65;
constexpr std::uint64_t kNodeKey = 0x6E6F6465;

OrderOptions checked(const OrderOptions& options, std::uint64_t start) {
  if (options.batch_size == 0)
    throw Error(ErrorKind::usage,
                format_text("cannot make batches of 0 samples: {} is at least 1", option("batch_size")))
        .about("batch_size");
  if (options.world_size == 0)
    throw Error(ErrorKind::usage,
                format_text("cannot share batches among 0 ranks: {} is at least 1", option("world_size")))
        .about("world_size");
  if (options.rank >= options.world_size) {
    throw Error(ErrorKind::usage, format_text("cannot take part as rank {} of {}: ranks count from 0 to {} - 1",
                                              options.rank, options.world_size, option("world_size")))
        .about("rank");
  }
  if (options.batch_size > Permutation::kMaxSize / options.world_size) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot make batches of {} samples on {} ranks: the most is 2^48 together",
                            options.batch_size, options.world_size));
  }
  if (options.shuffle.how == Shuffle::How::blocks && options.shuffle.block == 0) {
    throw Error(ErrorKind::usage, "cannot shuffle blocks of 0 samples: a block is at least 1");
  }
  if (const Shuffle& by = options.shuffle; by.how == Shuffle::How::nodes) {
    if (by.nodes == 0 || by.of_node == 0 || by.of_node > Permutation::kMaxSize / by.nodes)
      throw Error(ErrorKind::usage, fmt::format("cannot share steps of {} samples each among {} nodes: both are at "
                                                "least 1, and at most 2^48 together",
                                                by.of_node, by.nodes));
  }
  if (start > options.size) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot start at position {}: the data set has {} samples", start, options.size),
                "the state belongs to a larger data set");
  }
  return options;
}

bool has_blocks(const OrderOptions& options) noexcept {
  return options.shuffle.how == Shuffle::How::blocks;
}

std::uint64_t windows_of(std::uint64_t blocks, const OrderOptions& options) noexcept {
  const std::uint64_t most =
      std::max<std::uint64_t>(1, std::min(options.shuffle.window, options.size) / options.shuffle.block);
  return std::max<std::uint64_t>(1, (blocks + most - 1) / most);
}

// Which sample is at home where does not change from epoch to epoch.
std::uint64_t order_key(const OrderOptions& options, std::uint64_t epoch) noexcept {
  if (options.shuffle.how == Shuffle::How::nodes) return mix(options.seed, kHomeKey);
  return mix(mix(options.seed, kOrderKey), epoch);
}

// A number of at least 1 and what follows it.
bool take_count(std::string_view& text, std::uint64_t& count) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || count == 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string text(const Shuffle& shuffle) {
  switch (shuffle.how) {
    case Shuffle::How::off:
      return "off";
    case Shuffle::How::full:
      return "full";
    case Shuffle::How::given:
      return "given";
    case Shuffle::How::nodes:
      if (shuffle.nodes == 0) return "nodes";
      return shuffle.of_node == 0 ? fmt::format("nodes:{}", shuffle.nodes)
                                  : fmt::format("nodes:{}:{}", shuffle.nodes, shuffle.of_node);
    case Shuffle::How::blocks:
      break;
  }
  return shuffle.block == 0 ? "blocks" : fmt::format("blocks:{}:{}", shuffle.block, shuffle.window);
}

bool is_switch(const Shuffle& shuffle) {
  return shuffle.how == Shuffle::How::off || shuffle.how == Shuffle::How::full;
}

Shuffle parse_shuffle(std::string_view text) {
  if (text == "off") return false;
  if (text == "full") return true;
  constexpr std::string_view kBlocks = "blocks", kNodes = "nodes";
  std::string_view rest = text;
  const auto take = [&rest](std::uint64_t& count) {
    if (!rest.starts_with(':')) return false;
    rest.remove_prefix(1);
    return take_count(rest, count);
  };
  if (text.starts_with(kBlocks)) {
    Shuffle shuffle(Shuffle::How::blocks, 0, 0);
    rest.remove_prefix(kBlocks.size());
    if (rest.empty()) return shuffle;
    if (take(shuffle.block) && take(shuffle.window) && rest.empty() && shuffle.window >= shuffle.block) return shuffle;
  } else if (text.starts_with(kNodes)) {
    Shuffle shuffle = Shuffle::by_node();
    rest.remove_prefix(kNodes.size());
    if (rest.empty() || (take(shuffle.nodes) && (rest.empty() || (take(shuffle.of_node) && rest.empty()))))
      return shuffle;
  }
  throw Error(ErrorKind::usage,
              format_text("{} is off, full, blocks, blocks:NEIGHBOURS:MIXED, nodes or nodes:COUNT, not `{}`",
                          option("shuffle"), text),
              "blocks:32:4096 keeps 32 neighbours together and mixes 4096 samples; nodes keeps samples on their node")
      .about("shuffle");
}

Order::Order(const OrderOptions& options, std::uint64_t epoch, std::uint64_t start)
    : options_(checked(options, start)),
      epoch_(epoch),
      start_(start),
      steps_(0),
      blocks_(has_blocks(options) ? options.size / options.shuffle.block : 0),
      windows_(has_blocks(options) ? windows_of(blocks_, options) : 1),
      permutation_(has_blocks(options) ? blocks_ : options.size, order_key(options, epoch)) {
  if (const Shuffle& by = options_.shuffle; by.how == Shuffle::How::nodes)
    whole_ = options_.size / (by.nodes * by.of_node) * by.of_node;
  const std::uint64_t left = options_.size - start_;
  const std::uint64_t per_step = options_.batch_size * options_.world_size;
  steps_ = left / per_step;
  if (left % per_step != 0 && options_.last_batch != LastBatch::drop) ++steps_;
}

BatchRange Order::batch(std::uint64_t step) const noexcept {
  const std::uint64_t per_step = options_.batch_size * options_.world_size;
  const std::uint64_t first = start_ + step * per_step;
  const std::uint64_t left = options_.size - first;
  if (left >= per_step) {
    return {first + options_.rank * options_.batch_size, options_.batch_size, options_.batch_size};
  }
  if (options_.last_batch == LastBatch::pad) {
    const std::uint64_t begin = options_.rank * options_.batch_size;
    const std::uint64_t own = begin < left ? std::min(options_.batch_size, left - begin) : 0;
    return {first + begin, options_.batch_size, own};
  }
  const std::uint64_t base = left / options_.world_size, extra = left % options_.world_size;
  const std::uint64_t own = base + (options_.rank < extra ? 1 : 0);
  return {first + options_.rank * base + std::min(options_.rank, extra), own, own};
}

std::uint64_t Order::position_after(std::uint64_t step) const noexcept {
  const std::uint64_t per_step = options_.batch_size * options_.world_size;
  return std::min(start_ + (step + 1) * per_step, options_.size);
}

std::uint64_t Order::sample(std::uint64_t position) const noexcept {
  if (position >= options_.size) position = options_.size == 0 ? 0 : position % options_.size;
  switch (options_.shuffle.how) {
    case Shuffle::How::off:
    case Shuffle::How::given:
      break;
    case Shuffle::How::full:
      return permutation_(position);
    case Shuffle::How::blocks:
      return sample_of_blocks(position);
    case Shuffle::How::nodes:
      return sample_of_node(position);
  }
  return position;
}

std::uint64_t Order::window(std::uint64_t position) const noexcept {
  if (blocks_ == 0) return 0;
  if (position >= options_.size) position %= options_.size;
  const std::uint64_t block = std::min(position / options_.shuffle.block, blocks_ - 1);
  const std::uint64_t each = blocks_ / windows_, longer = blocks_ % windows_;  // this number of windows has one more
  return block < longer * (each + 1) ? block / (each + 1) : longer + (block - longer * (each + 1)) / each;
}

std::uint64_t Order::position_of(std::uint64_t sample) const noexcept {
  switch (options_.shuffle.how) {
    case Shuffle::How::off:
    case Shuffle::How::given:
      break;
    case Shuffle::How::full:
      return permutation_.inverse(sample);
    case Shuffle::How::blocks:
      return position_in_blocks(sample);
    case Shuffle::How::nodes:
      return position_on_node(sample);
  }
  return sample;
}

Order::Mixed Order::mixed_with(std::uint64_t position) const noexcept {
  const std::uint64_t number = window(position);
  const std::uint64_t each = blocks_ / windows_, longer = blocks_ % windows_;
  const auto start = [&](std::uint64_t w) {
    return w == windows_ ? options_.size : (w * each + std::min(w, longer)) * options_.shuffle.block;
  };
  const std::uint64_t first = start(number);
  const std::uint64_t key = mix(mix(mix(options_.seed, kWindowKey), epoch_), number);
  return {first, Permutation(start(number + 1) - first, key)};
}

// Blocks in random order, cut into windows; and within each window its samples in random order.
std::uint64_t Order::sample_of_blocks(std::uint64_t position) const noexcept {
  const std::uint64_t block = options_.shuffle.block;
  const Mixed mixed = mixed_with(position);
  const std::uint64_t place = mixed.first + mixed.permutation(position - mixed.first);
  const std::uint64_t of_block = place / block;
  return of_block < blocks_ ? permutation_(of_block) * block + place % block : place;
}

std::uint64_t Order::position_in_blocks(std::uint64_t sample) const noexcept {
  const std::uint64_t block = options_.shuffle.block, of_block = sample / block;
  const std::uint64_t place = of_block < blocks_ ? permutation_.inverse(of_block) * block + sample % block : sample;
  const Mixed mixed = mixed_with(place);  // places and positions have the same windows
  return mixed.first + mixed.permutation.inverse(place - mixed.first);
}

// The places of a node's samples, and how this epoch mixes them.
Order::Mixed Order::home_of(std::uint64_t node) const noexcept {
  const std::uint64_t nodes = options_.shuffle.nodes, each = options_.size / nodes, longer = options_.size % nodes;
  const std::uint64_t key = mix(mix(mix(options_.seed, kNodeKey), epoch_), node);
  return {node * each + std::min(node, longer), Permutation(each + (node < longer ? 1 : 0), key)};
}

std::uint64_t Order::sample_of_node(std::uint64_t position) const noexcept {
  const std::uint64_t nodes = options_.shuffle.nodes, of_node = options_.shuffle.of_node, step = nodes * of_node;
  std::uint64_t node = position % step / of_node, place = position / step * of_node + position % of_node;
  if (const std::uint64_t whole = whole_ * nodes; position >= whole) {  // what is left of each node
    const std::uint64_t each = options_.size / nodes - whole_, longer = options_.size % nodes, at = position - whole;
    node = at < longer * (each + 1) ? at / (each + 1) : longer + (at - longer * (each + 1)) / each;
    place = whole_ + at - (node * each + std::min(node, longer));
  }
  const Mixed home = home_of(node);
  return permutation_(home.first + home.permutation(place));
}

std::uint64_t Order::position_on_node(std::uint64_t sample) const noexcept {
  const std::uint64_t nodes = options_.shuffle.nodes, of_node = options_.shuffle.of_node;
  const std::uint64_t each = options_.size / nodes, longer = options_.size % nodes;
  const std::uint64_t at = permutation_.inverse(sample);
  const std::uint64_t node = at < longer * (each + 1) ? at / (each + 1) : longer + (at - longer * (each + 1)) / each;
  const Mixed home = home_of(node);
  const std::uint64_t place = home.permutation.inverse(at - home.first);
  if (place < whole_) return place / of_node * nodes * of_node + node * of_node + place % of_node;
  return whole_ * nodes + node * (each - whole_) + std::min(node, longer) + place - whole_;
}

std::uint64_t Order::replacement(std::uint64_t position, std::uint32_t attempt) const noexcept {
  const std::uint64_t others = options_.size < 2 ? 0 : options_.size - 1;
  if (others == 0) return 0;
  const std::uint64_t bad = sample(position);
  // A permutation of the other samples, so that no try repeats one before all were tried.
  const std::uint64_t key = mix(mix(mix(options_.seed, kReplacementKey), epoch_), position % options_.size);
  const std::uint64_t other = Permutation(others, key)(attempt % others);
  return other < bad ? other : other + 1;
}

}  // namespace stoker::dataset
