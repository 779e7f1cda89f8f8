// Options as Python gives them: a dict from names to values, checked by loader/option_table.h.
#pragma once

#include "stoker/loader/option_table.h"

#include "bindings/bindings.h"

namespace stoker::bindings {

loader::Value value_from(nb::handle object);      // of any object: one that no option takes becomes loader::Unknown
nb::object value_to(const loader::Value& value);  // None, bool, int, float or str

loader::Request request_from(const nb::dict& options);  // throws Error(usage), naming the option

}  // namespace stoker::bindings
