// What the binding files share: one function per file that fills the module, and the door into calls that may wait.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/dataset/dataset.h"
#include "stoker/os/fork.h"

namespace nb = nanobind;

namespace stoker::bindings {

void bind_errors(nb::module_& module);
void bind_dataset(nb::module_& module);
void bind_batch(nb::module_& module);
void bind_loader(nb::module_& module);

// Remembers the process in which an object was made. A forked child has none of its threads.
class Origin {
 public:
  bool is_forked() const noexcept { return generation_ != os::fork_generation(); }
  void check(const char* what) const;  // throws Error(unsupported) with the remedy

 private:
  std::uint64_t generation_ = os::fork_generation();
};

// The one way from Python into a call that may wait. `call` runs without the GIL and is given a function to ask now and
// then: it lets Python's signal handlers run, and returns true when one of them raised (Ctrl-C). `call` then gives up by
// throwing, and what Python sees is the handler's exception. Handlers run only in the main thread; elsewhere the
// question costs a GIL hand-over and is always answered with false.
template <class Call>
auto wait_for(Call&& call) {
  std::optional<nb::python_error> raised;
  const std::function<bool()> interrupted = [&raised]() -> bool {
    if (raised) return true;
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() == 0) return false;
    raised.emplace();
    return true;
  };
  try {
    nb::gil_scoped_release no_gil;
    return std::forward<Call>(call)(interrupted);
  } catch (const Error&) {
    if (!raised) throw;
    nb::python_error error(std::move(*raised));
    raised.reset();
    throw error;
  }
}

}  // namespace stoker::bindings
