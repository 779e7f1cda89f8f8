// What the binding files share: one function per file that fills the module, and the door into calls that may wait.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include <nanobind/nanobind.h>

#include "stoker/base/error.h"
#include "stoker/dataset/dataset.h"
#include "stoker/os/fork.h"
#include "stoker/storage/interruption.h"

#include "bindings/text.h"

namespace nb = nanobind;

namespace stoker::bindings {

void bind_errors(nb::module_& module);
void bind_dataset(nb::module_& module);
void bind_batch(nb::module_& module);
void bind_options(nb::module_& module);
void bind_loader(nb::module_& module);
void bind_measure(nb::module_& module);
void bind_builder(nb::module_& module);
void bind_transform(nb::module_& module);
void bind_workers(nb::module_& module);

// Remembers the process in which an object was made. A forked child has none of its threads.
class Origin {
 public:
  bool is_forked() const noexcept { return generation_ != os::fork_generation(); }
  void check(const char* what) const;  // throws Error(unsupported) with the remedy

 private:
  std::uint64_t generation_ = os::fork_generation();
};

// Lets other Python threads run while it lives. Unlike nanobind's, it bears the interpreter's end: up to Python 3.13 a
// daemon thread that asks for the GIL by then is unwound by force, which no destructor survives; it sleeps here
// instead.
class WithoutGil {
 public:
  WithoutGil() noexcept : thread_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() { take(); }

  void take() noexcept;  // the GIL, for a moment
  void leave() noexcept { thread_ = PyEval_SaveThread(); }

 private:
  PyThreadState* thread_;
};

// The one way from Python into a call that may wait. `call` runs without the GIL and is given a function to ask now and
// then: it lets Python's signal handlers run, and returns true when one of them raised (Ctrl-C). `call` then gives up
// by throwing, and what Python sees is the handler's exception. Handlers run only in the main thread; elsewhere the
// question costs a GIL hand-over and is always answered with false. Ask from the thread that called.
template <class Call>
auto wait_for(Call&& call) {
  std::optional<nb::python_error> raised;
  try {
    WithoutGil no_gil;
    const std::function<bool()> interrupted = [&raised, &no_gil]() -> bool {
      if (raised) return true;
      no_gil.take();
      if (PyErr_CheckSignals() != 0) raised.emplace();
      no_gil.leave();
      return raised.has_value();
    };
    storage::Interruption interruption(interrupted);  // also where it waits for a store
    const storage::InterruptionScope interruptible(&interruption);
    return std::forward<Call>(call)(interrupted);
  } catch (const Error&) {
    if (!raised) throw;
    nb::python_error error(std::move(*raised));
    raised.reset();
    throw error;
  }
}

}  // namespace stoker::bindings
