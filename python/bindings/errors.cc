// stoker::Error becomes the Python exception that fits its kind; the classes are in stoker/errors.py.
#include <chrono>
#include <thread>

#include "bindings/bindings.h"

namespace stoker::bindings {

void Origin::check(const char* what) const {
  if (!is_forked()) return;
  throw Error(ErrorKind::unsupported,
              std::string("cannot use ") + what + " in a forked process: its threads stayed in the parent",
              "make the loader in the process that uses it; its workers are threads, so no worker processes are needed "
              "(multiprocessing: set_start_method(\"spawn\"))");
}

void WithoutGil::take() noexcept {
  try {
    PyEval_RestoreThread(thread_);
  } catch (...) {  // pthread_exit of a finalizing interpreter: leaving this handler would abort the process
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

void bind_errors(nb::module_& module) {
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      nb::object python_error = nb::module_::import_("stoker.errors")
                                    .attr("from_engine")(to_str(name(error.kind())), to_str(error.message()),
                                                         to_str(error.hint()), to_str(error.option()));
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(python_error.ptr())), python_error.ptr());
    }
  });
  module.def("fork_generation", &os::fork_generation, "A number that changes in every child made by fork().");
}

}  // namespace stoker::bindings
