#include "stoker/plan/case.h"

#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"

namespace stoker::plan {
namespace {

constexpr double kAgree = 0.02;  // two figures of one thing differ by rounding alone

// An object of the file with its place in it, so that a mistake is named: `runs[0].stages.prep_s`.
class Node {
 public:
  Node(const Json& json, std::string file, std::string place)
      : json_(json), file_(std::move(file)), place_(std::move(place)) {
    if (!json_.is_object()) refuse("", "is not an object");
  }

  // Every key must be known: a misspelt one would otherwise be left out silently.
  void only(std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : json_.items()) {
      bool found = key.starts_with("_");  // a comment
      for (const std::string_view one : known) found = found || one == key;
      if (found) continue;
      const std::vector<std::string_view> names(known);
      const std::string near = nearest(key, names.data(), names.size());
      refuse(key, near.empty() ? "is no key of a case" : fmt::format("is no key of a case; did you mean `{}`?", near));
    }
  }
  bool has(const char* key) const { return json_.contains(key) && !json_.at(key).is_null(); }
  const Json& at(const char* key) const {
    if (!has(key)) refuse(key, "is missing");
    return json_.at(key);
  }
  Node child(const char* key) const { return {at(key), file_, place_of(key)}; }
  std::vector<Node> children(const char* key) const {
    if (!at(key).is_array()) refuse(key, "is not a list");
    std::vector<Node> all;
    for (std::size_t i = 0; i < at(key).size(); ++i) {
      all.emplace_back(at(key)[i], file_, fmt::format("{}[{}]", place_of(key), i));
    }
    return all;
  }
  std::string text(const char* key, const std::string& fallback = {}) const {
    if (!has(key)) return fallback;
    if (!at(key).is_string()) refuse(key, "is not a text");
    return at(key).get<std::string>();
  }
  bool flag(const char* key, bool fallback) const {
    if (!has(key)) return fallback;
    if (!at(key).is_boolean()) refuse(key, "is neither true nor false");
    return at(key).get<bool>();
  }
  double number(const char* key, double fallback, double most = 1e18) const {
    if (!has(key)) return fallback;
    if (!at(key).is_number()) refuse(key, "is not a number");
    const double value = at(key).get<double>();
    if (!std::isfinite(value) || value < 0 || value > most)
      refuse(key, fmt::format("is {:g}, which it cannot be", value));
    return value;
  }
  double bytes(const char* key, double fallback = 0) const {  // a number, or "80GB"
    if (!has(key) || at(key).is_number()) return number(key, fallback);
    return parsed(key, [](const std::string& word) { return static_cast<double>(parse_bytes(word)); });
  }
  double seconds(const char* key, double fallback = 0) const {  // a number, or "15d"
    if (!has(key) || at(key).is_number()) return number(key, fallback);
    return parsed(key,
                  [](const std::string& word) { return std::chrono::duration<double>(parse_duration(word)).count(); });
  }
  [[noreturn]] void refuse(const char* key, const std::string& why) const { refuse(std::string(key), why); }
  [[noreturn]] void refuse(const std::string& key, const std::string& why) const {
    throw Error(ErrorKind::corrupt, fmt::format("cannot read the case `{}`: {} {}", file_, place_of(key), why));
  }

 private:
  std::string place_of(const std::string& key) const {
    if (key.empty()) return place_.empty() ? "it" : place_;
    return place_.empty() ? key : place_ + "." + key;
  }
  template <typename F>
  double parsed(const char* key, F parse) const {
    try {
      return parse(text(key));
    } catch (const Error& error) {
      refuse(key, fmt::format("is no good: {}", error.message()));
    }
  }

  const Json& json_;
  std::string file_, place_;
};

std::map<std::string, std::string> knobs_of(const Node& node, const char* key) {
  std::map<std::string, std::string> knobs;
  if (!node.has(key)) return knobs;
  const Node inner = node.child(key);
  for (const auto& [knob, value] : node.at(key).items()) {
    if (value.is_array() || value.is_object() || value.is_null()) inner.refuse(knob, "is neither a number nor a word");
    knobs[knob] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return knobs;
}

Job read_job(const Node& job, std::optional<double>& effective_batch) {
  job.only({"images", "epochs", "epoch_images", "steps_per_epoch", "batch_size", "budget", "effective_batch", "lr",
            "validation_time", "checkpoint_time", "checkpoint_every"});
  Job out;
  out.images = job.number("images", 0);
  if (job.has("epoch_images")) out.epoch_images = job.number("epoch_images", 0);
  if (job.has("steps_per_epoch")) out.epoch_images = job.number("steps_per_epoch", 0) * job.number("batch_size", 1);
  if (job.has("epochs")) {
    if (!out.epoch_images) job.refuse("epochs", "says nothing without epoch_images or steps_per_epoch");
    const double images = job.number("epochs", 0) * *out.epoch_images;
    if (job.has("images") && std::abs(images - out.images) > kAgree * out.images)
      job.refuse("images",
                 fmt::format("is {:g}, and epochs of epoch_images are {:g}: give one of both", out.images, images));
    out.images = images;
  }
  if (job.has("budget")) out.budget_days = job.seconds("budget") / 86400;
  if (job.has("effective_batch")) effective_batch = job.number("effective_batch", 0);
  out.validation_s = job.seconds("validation_time");
  out.checkpoint_s = job.seconds("checkpoint_time");
  out.checkpoint_every_s = job.seconds("checkpoint_every", 3600);
  return out;
}

void read_machine(const Node& machine, PlanRun& run) {
  machine.only({"cores", "memory", "shm", "device_memory", "unified", "disk_bytes_per_s", "memory_bytes_per_s"});
  run.cores = machine.number("cores", 0, 1e6);
  run.limits.memory_bytes = machine.bytes("memory");
  run.limits.limited_by = "memory";
  run.limits.shm_bytes = machine.bytes("shm");
  run.limits.unified = machine.flag("unified", false);
  run.device_limit_bytes = machine.bytes("device_memory");
  run.setting.disk_bytes_per_s = machine.number("disk_bytes_per_s", 0);
  run.setting.memory_bytes_per_s = machine.number("memory_bytes_per_s", run.setting.memory_bytes_per_s);
  run.setting.memory_bytes = run.limits.memory_bytes;
}

void read_data(const Node& data, PlanRun& run) {
  data.only({"bytes", "sample_bytes", "decoded_bytes", "storage", "cache", "file_per_sample", "decodes"});
  run.setting.dataset_bytes = data.bytes("bytes");
  run.setting.sample_bytes = data.bytes("sample_bytes");
  run.setting.decoded_bytes = data.bytes("decoded_bytes");
  run.setting.is_file_per_sample = data.flag("file_per_sample", true);
  run.setting.decodes = data.flag("decodes", true);
  run.limits.dataset_bytes = run.setting.dataset_bytes;
  const std::string storage = data.text("storage", "buffered"), cache = data.text("cache", "warm");
  bool known = false;
  for (const Access access : {Access::buffered, Access::direct, Access::mmap, Access::ram, Access::remote}) {
    if (storage != name(access)) continue;
    run.setting.access = access;
    known = true;
  }
  if (!known) data.refuse("storage", fmt::format("is `{}`, not buffered, direct, mmap, ram or remote", storage));
  if (cache != "warm" && cache != "cold" && cache != "unknown")
    data.refuse("cache", fmt::format("is `{}`, not warm, cold or unknown", cache));
  run.setting.warm = cache == "warm";
  if (cache == "unknown") {
    run.notes.emplace_back("whether the page cache was cold or warm was not recorded: it may explain any difference");
  }
}

tune::Row read_row(const Node& node, std::uint64_t number) {
  node.only({"knobs", "status", "images_per_s", "step_s", "samples_per_step", "compute_ms", "verdict", "host_peak",
             "device_allocated", "device_reserved", "error"});
  tune::Row row{.trial = number};
  for (const auto& [knob, value] : knobs_of(node, "knobs")) row.knobs[knob] = value;
  const std::string status = node.text("status", "ok");
  const auto parsed = tune::parse_status(status);
  if (!parsed) node.refuse("status", fmt::format("is `{}`, which is not one of ours", status));
  row.status = *parsed;
  if (node.has("images_per_s")) row.images_per_s = node.number("images_per_s", 0);
  if (node.has("step_s")) {
    const double step = node.seconds("step_s");
    if (step <= 0) node.refuse("step_s", "is 0");
    row.step_ms = step * 1e3;
    const double per_s = node.number("samples_per_step", 1) / step;
    if (row.images_per_s && node.has("samples_per_step") && std::abs(per_s - *row.images_per_s) > kAgree * per_s)
      node.refuse("images_per_s", fmt::format("is {:g}, and samples_per_step in step_s are {:g}: give one of both",
                                              *row.images_per_s, per_s));
    if (!row.images_per_s) row.images_per_s = per_s;
  }
  if (row.status == tune::Status::ok && !row.images_per_s) node.refuse("images_per_s", "is missing, yet the row is ok");
  if (node.has("compute_ms")) row.compute_ms = node.number("compute_ms", 0);
  row.verdict = node.text("verdict");
  row.error = node.text("error");
  const auto bytes = [&](const char* key) {
    return node.has(key) ? std::optional(static_cast<std::uint64_t>(node.bytes(key))) : std::nullopt;
  };
  row.host_peak_bytes = bytes("host_peak");
  row.device_allocated_bytes = bytes("device_allocated");
  row.device_reserved_bytes = bytes("device_reserved");
  return row;
}

void read_stages(const Node& node, PlanRun& run) {
  node.only({"batch_size", "num_workers", "io_threads", "fetch_in_workers", "fetch_s", "prep_s", "handoff_s",
             "compute_s", "cpu_s", "storage_per_s"});
  Stages stages;
  stages.cores = run.cores;
  stages.batch_size = node.number("batch_size", 1);
  stages.workers = node.number("num_workers", 1, 1e6);
  stages.io_threads = node.number("io_threads", 1, 1e6);
  stages.fetch_in_workers = node.flag("fetch_in_workers", true);
  stages.fetch_s = node.seconds("fetch_s");
  stages.prep_s = node.seconds("prep_s");
  stages.handoff_s = node.seconds("handoff_s");
  stages.compute_s = node.seconds("compute_s");
  stages.cpu_s = node.seconds("cpu_s");
  stages.storage_per_s = node.number("storage_per_s", 0);
  run.stages = stages;
}

void read_memory(const Node& node, PlanRun& run) {
  node.only({"main", "workers", "worker", "worker_growth_per_s", "worker_most", "batch", "prefetch_factor",
             "pin_memory", "cache", "device"});
  run.host.main_bytes = node.bytes("main");
  run.host.workers = node.number("workers", run.stages ? run.stages->workers : 0, 1e6);
  run.host.worker_bytes = node.bytes("worker");
  run.host.worker_growth_per_s = node.number("worker_growth_per_s", 0);
  run.host.worker_most_bytes = node.bytes("worker_most");
  run.host.batch_bytes = node.bytes("batch");
  run.host.prefetch_factor = node.number("prefetch_factor", 2);
  run.host.pin_memory = node.flag("pin_memory", false);
  run.host.cache_bytes = node.bytes("cache");
  run.device_now_bytes = node.bytes("device");
  run.host.device_bytes = run.device_now_bytes;
}

}  // namespace

PlanInput parse_case(std::string_view text, const std::string& file) {
  const Json json = Json::parse(text, file);
  const Node root(json, file, "");
  root.only({"schema", "title", "job", "machine", "data", "runs"});
  if (root.text("schema") != "stoker.case/1") root.refuse("schema", "is not stoker.case/1");
  PlanInput input;
  input.job = read_job(root.child("job"), input.effective_batch);
  if (root.child("job").has("lr")) {
    input.learning_rate = root.child("job").number("lr", 0);
    if (*input.learning_rate <= 0) root.child("job").refuse("lr", "is 0: a learning rate is above 0");
  }
  for (const Node& node : root.children("runs")) {
    node.only({"name", "model", "amp", "checkpointing", "img_size", "current", "rows", "stages", "memory", "epochs",
               "target_per_s"});
    PlanRun run;
    run.kind = PlanSource::case_file;
    run.source = file;
    run.name = node.text("name", std::filesystem::path(file).stem().string());
    if (root.has("machine")) read_machine(root.child("machine"), run);
    if (root.has("data")) read_data(root.child("data"), run);
    run.model = node.text("model");
    if (run.model.starts_with("vit:") || run.model.starts_with("dino:")) run.vit = parse_vit(run.model);
    run.training.half = node.text("amp", "bf16") != "none";
    run.training.checkpointing = node.flag("checkpointing", false);
    if (node.has("img_size")) run.img_size = node.number("img_size", 0, 1e6);
    run.current = knobs_of(node, "current");
    if (node.has("stages")) read_stages(node.child("stages"), run);
    if (node.has("memory")) read_memory(node.child("memory"), run);
    for (const Node& row : node.children("rows")) run.rows.push_back(read_row(row, run.rows.size() + 1));
    if (run.rows.empty()) node.refuse("rows", "is empty");
    if (node.has("epochs")) {
      for (const Node& epoch : node.children("epochs")) {
        epoch.only({"epoch", "images_per_s"});
        run.epochs.push_back({static_cast<std::uint64_t>(epoch.number("epoch", 0)), epoch.number("images_per_s", 0)});
        if (run.epochs.back().per_s <= 0) epoch.refuse("images_per_s", "is missing or 0");
      }
    }
    if (node.has("target_per_s")) {
      const Json& target = node.at("target_per_s");
      if (!target.is_array() || target.size() != 2 || !target[0].is_number() || !target[1].is_number())
        node.refuse("target_per_s", "is not [least, most]");
      run.target_per_s = {target[0].get<double>(), target[1].get<double>()};
    }
    input.runs.push_back(std::move(run));
  }
  if (input.runs.empty()) root.refuse("runs", "is empty");
  return input;
}

}  // namespace stoker::plan
