// Asks a Python for the memory of a model's training step (python/stoker/model_memory.py). One thread.
#pragma once

#include <string>

#include "stoker/base/json.h"

namespace stoker::tune {

struct TraceWishes {
  std::string model = {};      // "torchvision:resnet50,img=224", or file.py:function
  std::string amp = "bf16";    // or "fp16", "none"
  std::string optimizer = {};  // "sgd" or "adam"; empty: sgd
  bool checkpointing = false;  // of every block
};

// Runs `python` for some seconds. Throws Error(usage) where it has no torch, or the model cannot be traced.
Json trace_model(const std::string& python, const TraceWishes& wishes);

}  // namespace stoker::tune
