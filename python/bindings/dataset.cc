// dataset::Dataset as stoker._engine.Dataset.
#include "bindings/dataset.h"

#include <functional>
#include <memory>

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "stoker/dataset/listing.h"
#include "stoker/dataset/numbers.h"
#include "stoker/dataset/volumes.h"
#include "stoker/storage/interruption.h"

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

dataset::Normalize::How how_of(const std::string& word) {
  using How = dataset::Normalize::How;
  return word == "zscore" ? How::zscore : word == "window" ? How::window : word == "scale" ? How::scale : How::none;
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
      "open_volumes",
      [](const std::vector<std::string>& images, const std::vector<std::string>& masks,
         const std::vector<double>& weights, const std::array<std::uint64_t, 3>& patch, std::uint64_t samples,
         bool is_grid, const std::array<std::uint64_t, 3>& overlap, double foreground, bool pad,
         const std::array<bool, 3>& flip, bool turn, const std::string& normalize, double first, double second,
         std::uint32_t level, const std::string& member, const std::string& mask_member, bool use_cache,
         const nb::dict& options) {
        std::vector<dataset::VolumeAddress> addresses(images.size());
        for (std::size_t i = 0; i < images.size(); ++i)
          addresses[i] = {images[i], masks.empty() ? std::string() : masks.at(i), weights.at(i)};
        dataset::VolumesOptions volumes;
        dataset::PatchOptions& patches = volumes.patches;
        patches.patch = patch;
        patches.samples = samples;
        patches.sampling = is_grid ? dataset::Sampling::grid : dataset::Sampling::uniform;
        patches.overlap = overlap;
        patches.foreground = foreground;
        patches.pad = pad;
        patches.flip = flip;
        patches.turn = turn;
        volumes.normalize = {how_of(normalize), first, second};
        volumes.level = level;
        volumes.member = member;
        volumes.mask_member = mask_member;
        dataset::OpenOptions opening = request_from(options).opening;
        opening.use_cache = use_cache;
        return wait_for([&](const std::function<bool()>& interrupted) {
          opening.progress = [&](std::uint64_t) { return !interrupted(); };
          return DatasetHandle{dataset::open_volumes(addresses, volumes, opening)};
        });
      },
      nb::arg("images"), nb::kw_only(), nb::arg("masks"), nb::arg("weights"), nb::arg("patch"), nb::arg("samples"),
      nb::arg("is_grid"), nb::arg("overlap"), nb::arg("foreground"), nb::arg("pad"), nb::arg("flip"), nb::arg("turn"),
      nb::arg("normalize"), nb::arg("first"), nb::arg("second"), nb::arg("level"), nb::arg("member"),
      nb::arg("mask_member"), nb::arg("use_cache"), nb::arg("options"),
      "Patches of volumes. `masks`: one for each image, or none; `normalize`: none, zscore, window or scale, with its "
      "two "
      "numbers.");
  module.def(
      "volume_info",
      [](const std::string& address, std::uint32_t level, const std::string& member) {
        dataset::VolumeOptions options;
        options.level = level;
        options.member = member;
        options.cache_dir = dataset::listing_folder("");
        const std::unique_ptr<dataset::Volume> volume = wait_for([&](const std::function<bool()>& interrupted) {
          storage::Interruption interruption(interrupted);
          const storage::InterruptionScope interruptible(&interruption);
          return dataset::open_volume(address, options);
        });
        const dataset::VolumeInfo& info = volume->info();
        const auto known = [](double spacing) { return spacing > 0 ? nb::cast(spacing) : nb::none(); };
        nb::dict out;
        out["shape"] = nb::make_tuple(info.extents[0], info.extents[1], info.extents[2]);
        out["dtype"] = std::string(name(info.dtype));
        out["channels"] = info.channels;
        out["spacing"] = nb::make_tuple(known(info.spacing[0]), known(info.spacing[1]), known(info.spacing[2]));
        out["chunk"] = volume->plain() ? nb::object(nb::none())
                                       : nb::object(nb::make_tuple(info.chunk[0], info.chunk[1], info.chunk[2]));
        out["slope"] = info.slope;
        out["intercept"] = info.intercept;
        out["stored_bytes"] = info.stored_bytes == 0 ? nb::object(nb::none()) : nb::cast(info.stored_bytes);
        out["format"] = info.format;
        return out;
      },
      nb::arg("address"), nb::kw_only(), nb::arg("level"), nb::arg("member"),
      "What one volume is, without reading its elements.");
  module.def("volumes_csv_of", &dataset::volumes_csv_of, nb::arg("address"),
             "The csv that names the volumes at an address; empty: the address is one volume.");
  module.def(
      "read_volumes_csv",
      [](const std::string& address, const std::string& where) {
        std::vector<std::string> images, masks;
        std::vector<double> weights;
        for (dataset::VolumeAddress& volume : dataset::read_volumes_csv(address, where)) {
          images.push_back(std::move(volume.image));
          masks.push_back(std::move(volume.mask));
          weights.push_back(volume.weight);
        }
        return std::tuple(std::move(images), std::move(masks), std::move(weights));
      },
      nb::arg("address"), nb::kw_only(), nb::arg("where"),
      "The columns image, mask and weight of a volumes.csv, of the rows that match `where`; empty: of all.");

  module.def(
      "dataset_from_list",
      [](std::vector<std::string> paths, const std::vector<std::int64_t>& integers, const std::vector<float>& reals,
         const std::string& label_kind, std::vector<std::string> classes, bool ids_are_places,
         const nb::dict& options) {
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
          return DatasetHandle{
              dataset::from_list(std::move(samples), kind, opening, std::move(classes), ids_are_places)};
        });
      },
      nb::arg("paths"), nb::kw_only(), nb::arg("integers"), nb::arg("reals"), nb::arg("label_kind"), nb::arg("classes"),
      nb::arg("ids_are_places"), nb::arg("options"),
      "`classes`: the names of the integer labels, sorted; none: they have none.");

  module.def(
      "dataset_of_numbers",
      [](std::uint64_t count, const std::string& name, const nb::dict& options) {
        return DatasetHandle{dataset::numbers(count, name, request_from(options).opening)};
      },
      nb::arg("count"), nb::kw_only(), nb::arg("name"), nb::arg("options"),
      "Samples that Python makes, by their number.");
}

}  // namespace stoker::bindings
