// prepare::PackBuilder as stoker._engine.PackBuilder.
#include "stoker/prepare/builder.h"

#include <memory>

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"

namespace stoker::bindings {
namespace {

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Reals = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class Builder {
 public:
  explicit Builder(prepare::BuilderOptions options)
      : builder_(std::make_unique<prepare::PackBuilder>(std::move(options))) {}
  ~Builder() {
    if (origin_.is_forked()) {
      (void)builder_.release();  // its thread stayed in the parent
    } else {
      const WithoutGil no_gil;
      builder_.reset();
    }
  }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  prepare::PackBuilder& checked() {
    origin_.check("pack writer");
    return *builder_;
  }

 private:
  Origin origin_;
  std::unique_ptr<prepare::PackBuilder> builder_;
};

std::uint64_t append(Builder& self, const Bytes& bytes, const std::string& dtype, std::vector<std::uint64_t> shape,
                     const Integers& ids, const Integers& integers, const Reals& reals, const std::string& label_kind,
                     const std::vector<std::string>& names) {
  prepare::PackBuilder& builder = self.checked();
  prepare::BuilderRows rows;
  const std::optional<DType> type = parse_dtype(dtype);
  if (!type) throw Error(ErrorKind::usage, "a pack cannot hold arrays of dtype " + dtype);
  rows.dtype = *type;
  rows.shape = std::move(shape);
  rows.bytes = {reinterpret_cast<const std::byte*>(bytes.data()), bytes.shape(0)};
  rows.ids = {ids.data(), ids.shape(0)};
  std::vector<dataset::Label> labels;
  if (label_kind == "integer") {
    rows.label_kind = dataset::LabelKind::integer;
    for (std::size_t i = 0; i < integers.shape(0); ++i) labels.push_back({integers(i), 0});
  } else if (label_kind == "real") {
    rows.label_kind = dataset::LabelKind::real;
    for (std::size_t i = 0; i < reals.shape(0); ++i) labels.push_back({-1, reals(i)});
  }
  rows.labels = labels;
  rows.names = names;
  return wait_for([&](const std::function<bool()>& interrupted) { return builder.append(rows, interrupted); });
}

nb::object has(Builder& self, const Integers& ids) {
  prepare::PackBuilder& builder = self.checked();
  nb::list answers;
  for (std::size_t i = 0; i < ids.shape(0); ++i) answers.append(builder.has(ids(i)));
  return answers;
}

}  // namespace

void bind_builder(nb::module_& module) {
  nb::class_<Builder>(module, "PackBuilder", "Writes a pack batch by batch. One thread calls.")
      .def(
          "__init__",
          [](Builder* self, const std::string& destination, std::vector<std::string> classes, std::uint64_t shard_size,
             std::uint64_t memory_limit, bool force) {
            prepare::BuilderOptions options;
            options.destination = destination;
            options.classes = std::move(classes);
            options.shard_size = shard_size;
            options.memory_limit = memory_limit;
            options.force = force;
            wait_for([&](const std::function<bool()>&) { return new (self) Builder(std::move(options)); });
          },
          nb::arg("destination"), nb::kw_only(), nb::arg("classes"), nb::arg("shard_size"), nb::arg("memory_limit"),
          nb::arg("force"))
      .def("append", &append, nb::arg("bytes"), nb::kw_only(), nb::arg("dtype"), nb::arg("shape"), nb::arg("ids"),
           nb::arg("integers"), nb::arg("reals"), nb::arg("label_kind"), nb::arg("names"))
      .def("has", &has, nb::arg("ids"))
      .def_prop_ro("count", [](Builder& self) { return self.checked().count(); })
      .def("flush",
           [](Builder& self) {
             prepare::PackBuilder& builder = self.checked();
             wait_for([&](const std::function<bool()>& interrupted) { builder.flush(interrupted); });
           })
      .def("close",
           [](Builder& self) {
             prepare::PackBuilder& builder = self.checked();
             wait_for([&](const std::function<bool()>& interrupted) { builder.close(interrupted); });
           })
      .def("abandon", [](Builder& self) {
        prepare::PackBuilder& builder = self.checked();
        wait_for([&](const std::function<bool()>&) { builder.abandon(); });
      });
}

}  // namespace stoker::bindings
