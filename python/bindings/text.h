// std::string to str and back, for every binding file: include this instead of nanobind/stl/string.h.
// Names of files are bytes. Bytes that are not UTF-8 become the lone surrogates U+DC80 to U+DCFF, as with os.fsdecode,
// and os.fsencode gives the bytes back.
#pragma once

#include <string>
#include <string_view>

#include <nanobind/nanobind.h>

namespace stoker::bindings {

inline nanobind::object to_str(std::string_view text) noexcept {
  return nanobind::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

}  // namespace stoker::bindings

namespace nanobind::detail {

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle from, std::uint32_t, cleanup_list*) noexcept {
    if (!PyUnicode_Check(from.ptr())) return false;
    Py_ssize_t size = 0;
    if (const char* const text = PyUnicode_AsUTF8AndSize(from.ptr(), &size); text != nullptr) {
      value.assign(text, static_cast<std::size_t>(size));
      return true;
    }
    PyErr_Clear();
    const object bytes = steal(PyUnicode_AsEncodedString(from.ptr(), "utf-8", "surrogateescape"));
    char* text = nullptr;
    if (!bytes.is_valid() || PyBytes_AsStringAndSize(bytes.ptr(), &text, &size) != 0) {
      PyErr_Clear();
      return false;
    }
    value.assign(text, static_cast<std::size_t>(size));
    return true;
  }

  static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
    return stoker::bindings::to_str(text).release();
  }
};

}  // namespace nanobind::detail
