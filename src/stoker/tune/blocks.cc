#include "stoker/tune/blocks.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"
#include "stoker/base/plain_text.h"
#include "stoker/meter/confidence.h"
#include "stoker/meter/ledger.h"

namespace stoker::tune {
namespace {

constexpr std::size_t kLongestLine = 4096;

// Sum of a part that every block must know to be known at all.
std::optional<double> sum_of(const std::vector<Block>& blocks, std::optional<double> Block::*part) {
  double sum = 0;
  for (const Block& block : blocks) {
    if (!(block.*part)) return std::nullopt;
    sum += *(block.*part);
  }
  return sum;
}

// "12,345.6" is one number, as people print it; what is no number to its end is none.
double rate_in(std::string text) {
  for (std::size_t at = 0; (at = text.find(',', at)) != std::string::npos;) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789", at + 1), text.size()) - at - 1;
    if (at == 0 || digits != 3) return 0;
    text.erase(at, 1);
  }
  char* end = nullptr;
  const double rate = std::strtod(text.c_str(), &end);
  while (*end == ' ') ++end;
  return *end == '\0' ? rate : 0;
}

}  // namespace

std::optional<Block> block_of(const Json& json) {
  if (!json.is_object() || json.value("event", Json()) != "block") return std::nullopt;
  const auto number = [&](const char* key) -> std::optional<double> {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number()) return std::nullopt;
    const double value = found->get<double>();
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  };
  const auto amount = [&](const char* key) {
    const std::optional<double> value = number(key);
    return value && *value >= 0 ? value : std::nullopt;
  };
  return Block{.steps = amount("steps").value_or(0),
               .samples = amount("samples").value_or(0),
               .seconds = amount("seconds").value_or(0),
               .compute_s = amount("compute_s"),
               .h2d_s = amount("h2d_s"),
               .fetch_s = amount("fetch_s"),
               .prep_s = amount("prep_s"),
               .handoff_s = amount("handoff_s"),
               .data_s = amount("data_s"),
               .ready_change = number("ready_change").value_or(0),
               .queue_depth = amount("queue_depth"),
               .is_warmup = json.value("warmup", Json()) == true};
}

double steady_samples(const Block& block) noexcept {
  const double batch = block.steps > 0 ? block.samples / block.steps : 0;
  const double samples = block.samples + block.ready_change * batch;
  if (!block.compute_s || *block.compute_s <= 0) return samples;
  return std::min(samples, block.samples * std::max(1.0, block.seconds / *block.compute_s));
}

void fill_row(const std::vector<Block>& blocks, Row& row) {
  Block sum;
  std::vector<double> rates;
  for (const Block& block : blocks) {
    const double samples = steady_samples(block);
    sum.steps += block.steps;
    sum.samples += samples;
    sum.seconds += block.seconds;
    if (block.seconds > 0) rates.push_back(samples / block.seconds);
  }
  if (sum.seconds <= 0 || sum.samples <= 0) return;
  const double rate = sum.samples / sum.seconds;
  row.images_per_s = rate;
  row.steps = static_cast<std::uint64_t>(sum.steps);
  if (const auto half = meter::half_width(rates)) {
    row.ci_low = std::max(0.0, rate - *half);
    row.ci_high = rate + *half;
  }
  row.step_ms = sum.seconds / sum.steps * 1e3;
  const auto per_step = [&](std::optional<double> seconds) {
    return seconds ? std::optional(*seconds / sum.steps * 1e3) : std::nullopt;
  };
  const auto fetch = sum_of(blocks, &Block::fetch_s), prep = sum_of(blocks, &Block::prep_s),
             handoff = sum_of(blocks, &Block::handoff_s), compute = sum_of(blocks, &Block::compute_s);
  row.h2d_ms = per_step(sum_of(blocks, &Block::h2d_s));
  row.compute_ms = per_step(compute);
  if (const auto depth = sum_of(blocks, &Block::queue_depth))
    row.queue_depth = *depth / static_cast<double>(blocks.size());
  const auto ns = [](double seconds) { return static_cast<std::int64_t>(seconds * 1e9); };
  if (compute && fetch && prep && handoff) {
    row.data_ms = per_step(*fetch + *prep + *handoff);
    const meter::Verdict verdict = meter::judge(ns(*compute), {ns(*fetch), ns(*prep), ns(*handoff)});
    row.verdict = meter::name(verdict.bound);
    row.bound = meter::general_name(verdict.bound);
  } else if (const auto data = sum_of(blocks, &Block::data_s); data && compute) {
    row.data_ms = per_step(data);
    row.bound = meter::general_name(meter::judge(ns(*compute), {0, ns(*data), 0}).bound);
  }
}

RateReader::RateReader(const std::string& rate_regex, double batch_size, const std::string& log_pattern)
    : batch_size_(batch_size) {
  if (!rate_regex.empty()) {
    own_.emplace(rate_regex, "rate_regex");
    if (own_->group_count() == 0) {
      throw Error(ErrorKind::usage,
                  format_text("{} `{}` has no group that is the rate", option("rate_regex"), rate_regex),
                  "put the number into brackets: 'throughput: ([0-9.]+)'");
    }
  }
  if (!log_pattern.empty()) {
    pattern_.emplace(log_pattern);
    if (!pattern_->tells_step() && !pattern_->has("samples_per_s") && !pattern_->has("images_per_s")) {
      throw Error(
          ErrorKind::usage,
          format_text("{} `{}` has no group that is a rate or the time of a step", option("log_pattern"), log_pattern),
          "name one samples_per_s, images_per_s, steps_per_s, step_s or step_ms: 'took (?<step_s>[0-9.]+)'")
          .about("log_pattern");
    }
  }
}

void RateReader::add(std::string_view text) {
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      read_line();
      line_.clear();
    } else if (line_.size() < kLongestLine) {
      line_ += c;
    }
  }
}

double RateReader::rate_by_pattern(const std::string& line) const {
  const double batch = batch_size_ > 0 ? batch_size_ : 1;
  for (const auto& [name, text] : pattern_->find(line)) {
    const double number = rate_in(text);
    if (!(number > 0)) continue;
    if (name == "samples_per_s" || name == "images_per_s") return number;
    if (name == "steps_per_s") return number * batch;
    if (name == "step_s") return batch / number;
    if (name == "step_ms") return 1e3 * batch / number;
  }
  return 0;
}

void RateReader::read_line() {
  static const std::regex samples_per_second(R"(([0-9][0-9,.]*)\s*([kM]?)(?:imgs?|images?|samples?|examples?)/s)");
  static const std::regex per_second(R"(([0-9]+(?:\.[0-9]+)?)\s*([kM]?)(?:it|batch|batches|step|steps)/s\b)");
  static const std::regex per_step(R"(([0-9]+(?:\.[0-9]+)?)\s*s/(?:it|batch|step)\b)");
  const std::string line = without_escapes(line_);
  std::smatch match;
  const auto number = [&] { return rate_in(match[1].str()); };
  const auto scaled = [&] { return number() * (match[2].length() == 0 ? 1 : match[2].str() == "k" ? 1e3 : 1e6); };
  double rate = 0;
  if (own_) {
    if (const auto groups = own_->search(line); !groups.empty() && groups[1]) rate = rate_in(std::string(*groups[1]));
  } else if (pattern_) {
    rate = rate_by_pattern(line);
  } else if (line.find("/s") != std::string::npos || line.find("s/") != std::string::npos) {
    const double batch = batch_size_ > 0 ? batch_size_ : 1;
    if (std::regex_search(line, match, samples_per_second)) {
      rate = scaled();
    } else if (std::regex_search(line, match, per_second)) {
      rate = scaled() * batch;
    } else if (std::regex_search(line, match, per_step) && number() > 0) {
      rate = batch / number();
    }
  }
  if (rate > 0 && std::isfinite(rate)) rates_.push_back(rate);
}

}  // namespace stoker::tune
