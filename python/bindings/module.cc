// The list of what stoker._engine holds.
#include "bindings/bindings.h"

NB_MODULE(_engine, module) {
  module.doc() = "The C++ engine of Stoker. Private: use the package stoker.";
  // Loaders and batches may outlive the interpreter; the exit handler in stoker/loader.py has stopped their threads by
  // then.
  nb::set_leak_warnings(false);
  stoker::bindings::bind_errors(module);
  stoker::bindings::bind_dataset(module);
  stoker::bindings::bind_batch(module);
  stoker::bindings::bind_options(module);
  stoker::bindings::bind_workers(module);
  stoker::bindings::bind_loader(module);
  stoker::bindings::bind_measure(module);
  stoker::bindings::bind_builder(module);
  stoker::bindings::bind_transform(module);
}
