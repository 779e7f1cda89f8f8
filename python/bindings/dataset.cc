// dataset::Dataset as stoker._engine.Dataset.
#include "bindings/dataset.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bindings/options.h"

namespace stoker::bindings {
namespace {

const char* name_of(dataset::LabelKind kind) noexcept {
  switch (kind) {
    case dataset::LabelKind::none:
      return "none";
    case dataset::LabelKind::integer:
      return "integer";
    case dataset::LabelKind::real:
      return "real";
  }
  return "none";
}

dataset::LabelKind parse_label_kind(const std::string& text) {
  for (const auto kind : {dataset::LabelKind::none, dataset::LabelKind::integer, dataset::LabelKind::real}) {
    if (text == name_of(kind)) return kind;
  }
  throw Error(ErrorKind::usage, "label kind is none, integer or real, not `" + text + "`");
}

std::string name_at(const DatasetHandle& self, std::uint64_t index) {
  if (index >= self.dataset->size()) throw nb::index_error("sample index out of range");
  return self.dataset->name(index);
}

using Indices = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::vector<std::string> names_at(const DatasetHandle& self, const Indices& indices) {
  std::vector<std::string> names;
  names.reserve(indices.shape(0));
  for (std::size_t i = 0; i < indices.shape(0); ++i) {
    names.push_back(name_at(self, static_cast<std::uint64_t>(indices(i))));
  }
  return names;
}

}  // namespace

void bind_dataset(nb::module_& module) {
  nb::class_<DatasetHandle>(module, "Dataset", "Which samples exist. Immutable; safe from any thread.")
      .def("__len__", [](const DatasetHandle& self) { return self.dataset->size(); })
      .def_prop_ro("address", [](const DatasetHandle& self) { return self.dataset->facts().address; })
      .def_prop_ro("kind", [](const DatasetHandle& self) { return self.dataset->facts().kind; })
      .def_prop_ro("fingerprint", [](const DatasetHandle& self) { return self.dataset->facts().fingerprint; })
      .def_prop_ro("total_bytes", [](const DatasetHandle& self) { return self.dataset->facts().total_bytes; })
      .def_prop_ro("largest_bytes", [](const DatasetHandle& self) { return self.dataset->facts().largest_bytes; })
      .def_prop_ro("label_kind", [](const DatasetHandle& self) { return name_of(self.dataset->facts().label_kind); })
      .def_prop_ro("classes", [](const DatasetHandle& self) { return self.dataset->facts().classes; })
      .def_prop_ro("columns", [](const DatasetHandle& self) { return self.dataset->facts().columns; })
      .def_prop_ro("notes", [](const DatasetHandle& self) { return self.dataset->facts().notes; })
      .def("name", &name_at, nb::arg("index"))
      .def("names", &names_at, nb::arg("indices"));

  module.def(
      "open_dataset",
      [](const std::string& address, const std::vector<std::string>& label, bool use_cache, const nb::dict& options) {
        dataset::OpenOptions opening = request_from(options).opening;
        if (label.size() == 1) opening.label = label.front();
        if (label.size() > 1) opening.label_columns = label;
        opening.use_cache = use_cache;
        return wait_for([&](const std::function<bool()>& interrupted) {
          opening.progress = [&](std::uint64_t) { return !interrupted(); };
          return DatasetHandle{dataset::open(address, opening)};
        });
      },
      nb::arg("address"), nb::kw_only(), nb::arg("label"), nb::arg("use_cache"), nb::arg("options"),
      "`options`: names and values, as in loader_options().");

  module.def(
      "dataset_from_list",
      [](std::vector<std::string> paths, const std::vector<std::int64_t>& integers, const std::vector<float>& reals,
         const std::string& label_kind, std::vector<std::string> classes, const nb::dict& options) {
        const dataset::LabelKind kind = parse_label_kind(label_kind);
        dataset::OpenOptions opening = request_from(options).opening;
        opening.use_cache = false;
        std::vector<std::pair<std::string, dataset::Label>> samples;
        samples.reserve(paths.size());
        for (std::size_t i = 0; i < paths.size(); ++i) {
          dataset::Label label;
          if (kind == dataset::LabelKind::integer) label.integer = integers.at(i);
          if (kind == dataset::LabelKind::real) label.real = reals.at(i);
          samples.emplace_back(std::move(paths[i]), label);
        }
        return wait_for([&](const std::function<bool()>& interrupted) {
          opening.progress = [&](std::uint64_t) { return !interrupted(); };
          return DatasetHandle{dataset::from_list(std::move(samples), kind, opening, std::move(classes))};
        });
      },
      nb::arg("paths"), nb::kw_only(), nb::arg("integers"), nb::arg("reals"), nb::arg("label_kind"), nb::arg("classes"),
      nb::arg("options"), "`classes`: the names of the integer labels, sorted; none: they have none.");
}

}  // namespace stoker::bindings
