// The table of loader options as stoker._engine.loader_options, and values of Python checked by it.
#include "bindings/options.h"

#include <string>
#include <vector>

namespace stoker::bindings {
namespace {

using loader::Option;
using loader::Value;

constexpr std::size_t kLongestShown = 200;

bool is_instance(nb::handle object, const char* number_class) {
  return nb::isinstance(object, nb::module_::import_("numbers").attr(number_class));
}

std::string shown(nb::handle object) {
  std::string text = nb::cast<std::string>(nb::object(nb::repr(object)));
  if (text.size() > kLongestShown) text = text.substr(0, kLongestShown) + "...";
  return text;
}

bool is_list_of_texts(nb::handle object) {
  if (!PyList_Check(object.ptr()) && !PyTuple_Check(object.ptr())) return false;
  for (const nb::handle item : object) {
    if (!PyUnicode_Check(item.ptr())) return false;
  }
  return true;
}

const char* name_of(loader::Heading heading) noexcept {
  switch (heading) {
    case loader::Heading::samples:
      return "samples";
    case loader::Heading::order:
      return "order";
    case loader::Heading::output:
      return "output";
    case loader::Heading::resources:
      return "resources";
    case loader::Heading::bad_samples:
      return "bad_samples";
  }
  return "";
}

nb::dict describe(const Option& option) {
  nb::list words;
  for (const std::string_view word : option.words) words.append(to_str(word));
  nb::dict out;
  out["name"] = to_str(option.name);
  out["flag"] = to_str(flag_of(option.name));
  out["heading"] = name_of(option.heading);
  out["values"] = to_str(loader::values_text(option));
  out["words"] = words;
  out["default"] = value_to(option.get(loader::Request{}));
  out["default_text"] = to_str(loader::default_text(option));
  out["meaning"] = to_str(option.meaning);
  out["takes_none"] = option.takes_none;
  out["is_knob"] = option.is_knob;
  return out;
}

}  // namespace

Value value_from(nb::handle object) {
  if (object.is_none()) return {};
  if (is_list_of_texts(object)) {
    loader::Names names;
    for (const nb::handle name : object) names.push_back(nb::cast<std::string>(name));
    return names;
  }
  if (PyBool_Check(object.ptr())) return object.ptr() == Py_True;
  if (PyUnicode_Check(object.ptr())) return nb::cast<std::string>(object);
  if (is_instance(object, "Integral")) {
    const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
    const std::uint64_t value = number.is_valid() ? PyLong_AsUnsignedLongLong(number.ptr()) : 0;
    if (PyErr_Occurred() == nullptr) return value;
    PyErr_Clear();  // negative, or above 64 bits
    return loader::Unknown{shown(object)};
  }
  if (is_instance(object, "Real")) return nb::cast<double>(nb::object(nb::float_(object)));
  return loader::Unknown{shown(object)};
}

nb::object value_to(const Value& value) {
  struct Convert {
    nb::object operator()(std::monostate) const { return nb::none(); }
    nb::object operator()(bool on) const { return nb::bool_(on); }
    nb::object operator()(std::uint64_t number) const { return nb::int_(number); }
    nb::object operator()(double number) const { return nb::float_(number); }
    nb::object operator()(const std::string& text) const { return to_str(text); }
    nb::object operator()(const loader::Names& names) const {
      nb::list out;
      for (const std::string& name : names) out.append(to_str(name));
      return out;
    }
    nb::object operator()(const loader::Unknown& other) const { return to_str(other.text); }
  };
  return std::visit(Convert{}, value);
}

loader::Request request_from(const nb::dict& options) {
  std::vector<loader::Given> given;
  for (const auto& [name, value] : options) given.push_back({nb::cast<std::string>(name), value_from(value)});
  return loader::make_request(given);
}

void bind_options(nb::module_& module) {
  module.def(
      "loader_options",
      [] {
        nb::list out;
        for (const Option& option : loader::option_table()) out.append(describe(option));
        return out;
      },
      "The table of loader options: a dict for each, in the order of the docs.");
  module.def(
      "checked_option",
      [](const std::string& name, nb::handle value) {
        loader::Request request;
        const Option& option = loader::find_option(name);
        loader::set_option(request, option, value_from(value));
        return value_to(option.get(request));
      },
      nb::arg("name"), nb::arg("value").none(),
      nb::sig("def checked_option(name: str, value: typing.Any) -> typing.Any"),
      "The value as the loader takes it; a wrong one lists the right ones.");
}

}  // namespace stoker::bindings
