// loader::Loader as stoker._engine.Loader. Its options are a dict, which the engine checks by its table of options.
#include "stoker/loader/loader.h"

#include <atomic>
#include <memory>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/dataset/order.h"
#include "stoker/loader/device.h"
#include "stoker/os/local_ranks.h"
#include "stoker/os/memory.h"
#include "stoker/transform/ops.h"

#include "bindings/batch.h"
#include "bindings/dataset.h"
#include "bindings/options.h"
#include "bindings/workers.h"

namespace stoker::bindings {
namespace {

using loader::LoaderOptions;

class LoaderHandle {
 public:
  LoaderHandle(const DatasetHandle& dataset, LoaderOptions options) {
    wait_for([&](const std::function<bool()>&) {
      loader_ = std::make_unique<loader::Loader>(dataset.dataset, std::move(options));
    });
  }
  LoaderHandle(const LoaderHandle&) = delete;
  LoaderHandle& operator=(const LoaderHandle&) = delete;
  // In a forked child there is no thread to join: the memory is left alone.
  ~LoaderHandle() {
    if (origin_.is_forked() || !close_quietly()) {
      static_cast<void>(loader_.release());
    } else {
      WithoutGil no_gil;
      loader_.reset();
    }
  }

  loader::Loader& get() const {
    origin_.check("this loader");
    return *loader_;
  }
  bool is_forked() const noexcept { return origin_.is_forked(); }

  void close() {
    gave_up_ = true;
    wait_for([this](const loader::Interrupted& interrupted) { loader_->close(interrupted); });
    gave_up_ = false;
  }

  // The engine serves one consumer; a second thread is told so instead of racing it.
  template <class Call>
  auto consume(Call&& call) {
    loader::Loader& loader = get();
    if (consuming_.exchange(true, std::memory_order_acquire)) {
      throw Error(ErrorKind::usage, "cannot take a batch: another thread is taking one from this loader",
                  "take batches from one thread, or guard the loader with a lock");
    }
    struct Done {
      std::atomic<bool>& flag;
      ~Done() { flag.store(false, std::memory_order_release); }
    } done{consuming_};
    return wait_for([&](const std::function<bool()>& interrupted) { return call(loader, interrupted); });
  }

 private:
  // For the destructor, from which nothing can be raised. False: threads that wait for the storage had to be left
  // behind, because of Ctrl-C (which is raised again where the program goes on) or after `timeout`.
  bool close_quietly() noexcept {
    const nb::error_scope error_on_its_way;
    try {
      // After Ctrl-C in close() the user does not wait once more.
      wait_for([this](const loader::Interrupted& interrupted) {
        loader_->close(gave_up_ ? loader::Interrupted([] { return true; }) : interrupted);
      });
      return true;
    } catch (nb::python_error& error) {
      if (error.matches(PyExc_KeyboardInterrupt)) {
        PyErr_SetInterrupt();
      } else {
        error.discard_as_unraisable("the end of a stoker.Loader");
      }
    } catch (const Error&) {
    }
    return false;
  }

  std::unique_ptr<loader::Loader> loader_;
  Origin origin_;
  std::atomic<bool> consuming_{false};
  bool gave_up_ = false;  // the last close() ended early
};

const dataset::Shuffle kGiven(dataset::Shuffle::How::given, 0, 0);

// A JSON list, or the short text of the command line.
transform::Ops parse_transform(const std::string& text) {
  return text.starts_with('[') ? transform::ops_from_json(text) : transform::parse_ops(text);
}

double seconds(std::int64_t ns) noexcept {
  return static_cast<double>(ns) * 1e-9;
}

nb::dict stage_dict(const meter::StageTotals& totals) {
  nb::dict out;
  out["busy_s"] = totals.busy_s;
  out["input_wait_s"] = totals.input_wait_s;
  out["room_wait_s"] = totals.room_wait_s;
  out["items"] = totals.items;
  out["bytes"] = totals.bytes;
  return out;
}

nb::dict depth_dict(const meter::DepthMeter::Depth& depth) {
  nb::dict out;
  out["mean"] = depth.mean;
  out["least"] = depth.least;
  out["most"] = depth.most;
  out["empty_share"] = depth.empty_share;
  return out;
}

nb::dict store_dict(const storage::StoreFigures& store) {
  nb::dict out;
  out["requests"] = store.requests;
  out["retries"] = store.retries;
  out["doubled"] = store.doubled;
  out["store_bytes"] = store.store_bytes;
  out["cache_hits"] = store.cache_hits;
  out["cache_misses"] = store.cache_misses;
  out["cache_bytes"] = store.cache_bytes;
  return out;
}

nb::dict stats_dict(const loader::Stats& stats) {
  nb::dict wait;
  wait["fetch_s"] = seconds(stats.wait.fetch_ns);
  wait["prep_s"] = seconds(stats.wait.prep_ns);
  wait["handoff_s"] = seconds(stats.wait.handoff_ns);
  nb::dict out;
  out["samples"] = stats.samples;
  out["batches"] = stats.batches;
  out["steps"] = stats.steps;
  out["encoded_bytes"] = stats.encoded_bytes;
  out["decoded_bytes"] = stats.decoded_bytes;
  out["running_s"] = stats.running_s;
  out["compute_s"] = stats.compute_s;
  out["wait_s"] = seconds(stats.wait.total_ns());
  out["wait"] = wait;
  out["first_batch_s"] = stats.first_batch_s;
  out["fetch"] = stage_dict(stats.fetch);
  out["prep"] = stage_dict(stats.prep);
  out["ready_batches"] = depth_dict(stats.ready);
  out["ready_samples"] = depth_dict(stats.bytes_ready);
  out["num_workers"] = stats.num_workers;
  out["io_threads"] = stats.io_threads;
  out["memory_used"] = stats.memory_used;
  out["memory_peak"] = stats.memory_peak;
  out["memory_limit"] = stats.memory_limit;
  out["errors"] = stats.errors;
  out["slabs"] = stats.slabs;
  out["slab_bytes"] = stats.slab_bytes;
  out["slabs_held"] = stats.slabs_held;
  out["ram_bytes"] = stats.ram_bytes;
  out["chunk_hits"] = stats.chunk_hits;
  out["chunk_misses"] = stats.chunk_misses;
  out["chunk_bytes"] = stats.chunk_bytes;
  out["seek_files"] = stats.seek_files;
  out["seek_bytes"] = stats.seek_bytes;
  out["store"] = store_dict(stats.store);
  return out;
}

// Every option of the table, as it is in force.
nb::dict options_dict(const LoaderOptions& options) {
  const loader::Request request{options, {}};
  nb::dict out;
  for (const loader::Option& option : loader::option_table()) {
    if (option.heading != loader::Heading::samples) out[to_str(option.name)] = value_to(option.get(request));
  }
  return out;
}

// True and False are what people know; only blocks need words.
nb::object shuffle_value(const dataset::Shuffle& shuffle) {
  if (!is_switch(shuffle)) return nb::cast(text(shuffle));
  return nb::cast(shuffle.how == dataset::Shuffle::How::full);
}

nb::dict state_dict(const loader::State& state) {
  nb::dict out;
  out["epoch"] = state.epoch;
  out["position"] = state.position;
  out["seed"] = state.seed;
  out["shuffle"] = shuffle_value(state.shuffle);
  out["size"] = state.size;
  out["fingerprint"] = state.fingerprint;
  if (!state.settings.empty()) {
    nb::dict settings;
    for (const auto& [name, value] : state.settings) settings[name.c_str()] = value;
    out["settings"] = settings;
  }
  return out;
}

nb::dict error_dict(const loader::SampleError& error) {
  nb::dict out;
  out["name"] = error.name;
  const auto of_sample = [&](std::uint64_t value) -> nb::object {
    return error.is_sample() ? nb::int_(value) : nb::object(nb::none());
  };
  out["index"] = of_sample(error.index);
  out["id"] = of_sample(error.id);
  out["epoch"] = of_sample(error.epoch);
  out["position"] = of_sample(error.position);
  out["stage"] = error.stage;
  out["cause"] = error.cause.in_python();
  out["offset"] = error.offset;
  out["action"] = error.action;
  out["message"] = error.message().in_python();
  return out;
}

// Steps of an epoch from `position` on, wherever the loader stands now.
std::uint64_t steps_from(const loader::Loader& loader, std::uint64_t position) {
  const LoaderOptions& options = loader.options();
  dataset::OrderOptions order;
  order.size = loader.dataset().size();
  order.shuffle = options.shuffle;
  order.seed = options.seed;
  order.batch_size = options.batch_size;
  order.rank = options.rank;
  order.world_size = options.world_size;
  order.last_batch = options.last_batch;
  return dataset::Order(order, 0, position).steps();
}

// `provider` (a Python callable, or None) gives the consumer's current stream as a number. Asked when a pinned slab is
// dropped, from whichever thread drops it. The callable is never freed: a batch may be dropped while Python shuts down.
void set_stream_provider(const nb::object& provider) {
  if (provider.is_none()) return loader::DeviceRuntime::set_stream_provider({});
  PyObject* const callable = nb::object(provider).release().ptr();
  loader::DeviceRuntime::set_stream_provider([callable]() -> void* {
    if (Py_IsInitialized() == 0) return nullptr;
    nb::gil_scoped_acquire gil;
    try {
      return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(nb::handle(callable)()));
    } catch (const std::exception&) {
      return nullptr;  // the default stream, which waits for the others
    }
  });
}

}  // namespace

void bind_loader(nb::module_& module) {
  nb::class_<LoaderHandle>(module, "Loader", nb::is_weak_referenceable(), "The engine's loader.")
      .def(
          "__init__",
          [](LoaderHandle* self, const DatasetHandle& dataset, const nb::dict& options, bool given_order,
             const SharedHandle* shared) {
            LoaderOptions asked = request_from(options).loader;
            if (given_order) asked.shuffle = kGiven;
            if (shared != nullptr) asked.shared_region = shared->memory;
            new (self) LoaderHandle(dataset, std::move(asked));
          },
          nb::arg("dataset"), nb::arg("options"), nb::arg("given_order") = false, nb::arg("shared").none() = nb::none(),
          "`options`: names and values, as in loader_options(). `given_order`: give() says which samples are next. "
          "`shared`: where batches lie.")
      .def(
          "give",
          [](LoaderHandle& self, std::vector<std::uint64_t> indices) {
            self.consume([&](loader::Loader& loader, const loader::Interrupted&) { loader.give(std::move(indices)); });
          },
          nb::arg("indices"), "The samples of one more batch of the epoch.")
      .def(
          "end_order",
          [](LoaderHandle& self) {
            self.consume([](loader::Loader& loader, const loader::Interrupted&) { loader.end_order(); });
          },
          "The epoch ends after what was given.")
      .def_prop_ro("steps_wanted", [](const LoaderHandle& self) { return self.get().steps_wanted(); })
      .def_prop_ro(
          "slabs_held", [](const LoaderHandle& self) { return self.get().stats().slabs_held; },
          "Batches that were handed out and are still in use.")
      .def(
          "steps_from",
          [](const LoaderHandle& self, std::uint64_t position) { return steps_from(self.get(), position); },
          nb::arg("position") = 0, "Steps of an epoch that is entered at a global position.")
      .def_prop_ro("steps", [](const LoaderHandle& self) { return self.get().steps(); })
      .def_prop_ro("epoch", [](const LoaderHandle& self) { return self.get().epoch(); })
      .def_prop_ro("is_forked", &LoaderHandle::is_forked)
      .def(
          "refuse_after_fork", [](const LoaderHandle& self) { static_cast<void>(self.get()); },
          "Raises in a child made by fork().")
      .def_prop_ro("notes",
                   [](const LoaderHandle& self) {
                     std::vector<std::string> notes;
                     for (const Text& note : self.get().notes()) notes.push_back(note.in_python());
                     return notes;
                   })
      .def_prop_ro("plan", [](const LoaderHandle& self) { return self.get().kind().description; })
      .def(
          "passes",
          [](const LoaderHandle& self) {
            nb::list all;
            for (const transform::Pass& one : self.get().passes()) {
              nb::list operations;
              for (const std::string& operation : one.operations) operations.append(to_str(operation));
              nb::dict pass;
              pass["output"] = to_str(one.output);
              pass["operations"] = operations;
              pass["whole_image"] = one.is_whole;
              pass["scratch_bytes"] = one.scratch_bytes;
              pass["images"] = one.images;
              pass["seconds"] = static_cast<double>(one.ns) * 1e-9;
              all.append(pass);
            }
            return all;
          },
          "What runs together over the pixels of an image, with the time of one sample in 16.")
      .def("options", [](const LoaderHandle& self) { return options_dict(self.get().options()); })
      .def(
          "start_epoch",
          [](LoaderHandle& self, std::uint64_t epoch, std::uint64_t position) {
            self.consume([&](loader::Loader& loader, const loader::Interrupted& interrupted) {
              loader.start_epoch(epoch, position, interrupted);
            });
          },
          nb::arg("epoch"), nb::arg("position") = 0)
      .def(
          "next",
          [](LoaderHandle& self) -> std::optional<BatchHandle> {
            loader::BatchPtr batch = self.consume([](loader::Loader& loader, const loader::Interrupted& interrupted) {
              return loader.next(interrupted);
            });
            if (!batch) return std::nullopt;
            return BatchHandle(std::move(batch));
          },
          "The next batch, or None at the end of the epoch.")
      .def_prop_ro("padding_bytes", [](const LoaderHandle& self) { return self.get().padding_bytes(); })
      .def("state", [](const LoaderHandle& self) { return state_dict(self.get().state()); })
      .def(
          "check_state",
          [](const LoaderHandle& self, std::uint64_t epoch, std::uint64_t position, std::uint64_t seed,
             const std::string& shuffle, std::uint64_t size, std::uint64_t fingerprint,
             std::vector<std::pair<std::string, std::string>> settings) {
            const dataset::Shuffle how = shuffle == text(kGiven) ? kGiven : dataset::parse_shuffle(shuffle);
            self.get().check_state({epoch, position, seed, how, size, fingerprint, std::move(settings)});
          },
          nb::kw_only(), nb::arg("epoch"), nb::arg("position"), nb::arg("seed"), nb::arg("shuffle"), nb::arg("size"),
          nb::arg("fingerprint"), nb::arg("settings"))
      .def(
          "keep_order",
          [](LoaderHandle& self, std::uint64_t epoch, std::uint64_t position, const std::string& shuffle) {
            if (shuffle == text(kGiven)) return false;
            loader::State state;
            state.epoch = epoch, state.position = position, state.shuffle = dataset::parse_shuffle(shuffle);
            return self.get().keep_order(state);
          },
          nb::arg("epoch"), nb::arg("position"), nb::arg("shuffle"),
          "shuffle=nodes: the rest of this epoch keeps the order of a state. Whether it differs from the loader's own.")
      .def("shuffle_of",
           [](const LoaderHandle& self, std::uint64_t epoch) { return shuffle_value(self.get().shuffle_of(epoch)); })
      .def(
          "set_num_workers",
          [](LoaderHandle& self, nb::handle workers) {
            loader::Request request;
            loader::set_option(request, loader::find_option("num_workers"), value_from(workers));
            wait_for([&, &loader = self.get()](const std::function<bool()>&) {
              loader.set_num_workers(request.loader.num_workers);
            });
          },
          nb::arg("workers"))
      .def("stats", [](const LoaderHandle& self) { return stats_dict(self.get().stats()); })
      .def("reset_stats", [](LoaderHandle& self) { self.get().reset_stats(); })
      .def("errors",
           [](const LoaderHandle& self) {
             nb::list out;
             for (const loader::SampleError& error : self.get().errors()) out.append(error_dict(error));
             return out;
           })
      .def("close", [](LoaderHandle& self) {
        if (!self.is_forked()) self.close();
      });

  module.def(
      "judge",
      [](double compute_s, double fetch_s, double prep_s, double handoff_s) {
        const auto ns = [](double s) { return static_cast<std::int64_t>(s * 1e9); };
        const meter::Verdict verdict = meter::judge(ns(compute_s), {ns(fetch_s), ns(prep_s), ns(handoff_s)});
        nb::dict out;
        out["bound"] = std::string(meter::name(verdict.bound));
        out["general"] = std::string(meter::general_name(verdict.bound));
        out["share"] = verdict.share;
        out["gain"] = verdict.gain;
        out["severity"] = std::string(verdict.severity);
        return out;
      },
      nb::kw_only(), nb::arg("compute_s"), nb::arg("fetch_s"), nb::arg("prep_s"), nb::arg("handoff_s"));
  module.def(
      "transform_text", [](const std::string& transform) { return transform::to_text(parse_transform(transform)); },
      nb::arg("transform"), "Checks a transform (JSON or short text) and gives its short text.");
  module.def(
      "default_memory_limit", [] { return loader::default_memory_limit(os::local_ranks().count); },
      "Bytes: what memory_limit is where it is not given.");
  module.def(
      "parse_bytes", [](const std::string& text) { return parse_bytes(text); }, nb::arg("text"));
  module.def("format_bytes", &format_bytes, nb::arg("bytes"));
  module.def("set_stream_provider", &set_stream_provider, nb::arg("provider").none());
  module.def("process_memory", [] {
    const os::ProcessMemory memory = os::process_memory();
    nb::dict out;
    out["anonymous_bytes"] = memory.anonymous_bytes;
    out["shared_bytes"] = memory.shared_bytes;
    out["file_bytes"] = memory.file_bytes;
    out["peak_bytes"] = memory.peak_bytes;
    return out;
  });
  module.attr("version") = kVersion;
}

}  // namespace stoker::bindings
