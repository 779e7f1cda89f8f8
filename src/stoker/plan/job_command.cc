#include "stoker/plan/job_command.h"

#include <algorithm>
#include <initializer_list>

#include "stoker/base/ascii.h"

namespace stoker::plan {
namespace {

struct Names {
  std::string_view knob, letter;  // `letter`: the one of `-j 4`; empty: none is common
  std::initializer_list<std::string_view> words;
};

// Flags of training programs in wide use: PyTorch's examples, timm, transformers, Lightning, detectron2, YOLO.
const Names kNames[] = {
    {"num_workers",
     "j",
     {"num_workers", "workers", "n_workers", "nworkers", "num_worker", "dataloader_num_workers", "dataloader_workers",
      "loader_workers", "num_loader_workers", "data_workers", "num_data_workers"}},
    {"batch_size",
     "b",
     {"batch_size", "batch", "bs", "batchsize", "train_batch_size", "per_device_train_batch_size", "micro_batch_size"}},
    {"prefetch_factor", "", {"prefetch_factor", "prefetch", "dataloader_prefetch_factor"}},
    {"accumulate_steps",
     "",
     {"accumulate_steps", "accumulation_steps", "gradient_accumulation_steps", "grad_accum", "accumulate_grad_batches",
      "accum_iter", "grad_accum_steps"}},
    {"persistent_workers", "", {"persistent_workers", "dataloader_persistent_workers"}},
    {"img_size", "", {"img_size", "image_size", "imgsz", "input_size"}},
};

bool is_flag_of(const Names& names, std::string_view word, bool is_assigned) {
  const std::size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  if (dashes == 0 && !is_assigned) return false;  // a value or a file
  word.remove_prefix(dashes);
  if (dashes == 1 && word.size() == 1) return !names.letter.empty() && word == names.letter;
  if (const std::size_t dot = word.rfind('.'); dot != std::string_view::npos) word.remove_prefix(dot + 1);
  while (word.starts_with('+')) word.remove_prefix(1);
  std::string plain;
  for (const char c : word) plain += c == '-' ? '_' : to_lower(c);
  return std::find(names.words.begin(), names.words.end(), plain) != names.words.end();
}

}  // namespace

std::optional<std::vector<std::string>> with_knob(const std::vector<std::string>& command, std::string_view knob,
                                                  std::string_view now, std::string_view value) {
  const auto* const names =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const Names& one) { return one.knob == knob; });
  if (names == std::end(kNames)) return std::nullopt;
  std::optional<std::vector<std::string>> changed;
  const auto take = [&](std::size_t index, std::string word) {
    if (changed) return false;
    changed = command;
    (*changed)[index] = std::move(word);
    return true;
  };
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string_view word = command[i];
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos) {
      if (word.substr(equals + 1) != now || !is_flag_of(*names, word.substr(0, equals), true)) continue;
      if (!take(i, std::string(word.substr(0, equals + 1)) + std::string(value))) return std::nullopt;
    } else if (i + 1 < command.size() && command[i + 1] == now && is_flag_of(*names, word, false)) {
      if (!take(i + 1, std::string(value))) return std::nullopt;
    } else if (!names->letter.empty() && word.starts_with('-') && word.substr(1, 1) == names->letter &&
               word.substr(std::min<std::size_t>(2, word.size())) == now) {
      if (!take(i, std::string(word.substr(0, 2)) + std::string(value))) return std::nullopt;  // -j4
    }
  }
  return changed;
}

}  // namespace stoker::plan
