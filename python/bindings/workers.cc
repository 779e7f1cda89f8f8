// What Python worker processes share with the loader: os::SharedRegion and os::RowBoard.
#include "bindings/workers.h"

#include <chrono>
#include <memory>

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include "stoker/os/row_board.h"

namespace stoker::bindings {
namespace {

using os::RowBoard;
using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ClaimTuple = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

// A board, and the memory that it lies in.
struct BoardHandle {
  Bytes memory;
  RowBoard board;
};

std::optional<ClaimTuple> tuple_of(const std::optional<RowBoard::Claim>& claim) {
  if (!claim) return std::nullopt;
  return ClaimTuple{claim->slot, claim->row, claim->item};
}

}  // namespace

void bind_workers(nb::module_& module) {
  nb::class_<SharedHandle>(module, "SharedRegion", "Memory that worker processes may map.")
      .def(nb::init<>())
      .def_prop_ro("fd", [](const SharedHandle& self) { return self.memory->fd(); })
      .def(
          "take",
          [](SharedHandle& self, std::size_t bytes) {
            return self.memory->take(bytes, bytes >= kHugePage ? kHugePage : kPage);
          },
          nb::arg("bytes"), "The offset of a range of zeros.")
      .def(
          "give_back",
          [](SharedHandle& self, std::uint64_t offset, std::size_t bytes) { self.memory->give_back(offset, bytes); },
          nb::arg("offset"), nb::arg("bytes"));

  nb::class_<BoardHandle>(module, "RowBoard", "Rows that worker processes claim one by one.")
      .def(
          "__init__",
          [](BoardHandle* self, Bytes memory, std::uint32_t slots, std::uint32_t rows, std::uint32_t workers,
             std::uint32_t text_bytes) {
            const RowBoard::Size size{slots, rows, workers, text_bytes};
            const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(memory.data()), memory.size());
            if (bytes.size() < RowBoard::bytes_for(size)) throw nb::value_error("the board needs more memory");
            new (self) BoardHandle{std::move(memory), RowBoard(bytes, size)};
          },
          nb::arg("memory"), nb::kw_only(), nb::arg("slots"), nb::arg("rows"), nb::arg("workers"),
          nb::arg("text_bytes"))
      .def_static(
          "bytes_for",
          [](std::uint32_t slots, std::uint32_t rows, std::uint32_t workers, std::uint32_t text_bytes) {
            return RowBoard::bytes_for({slots, rows, workers, text_bytes});
          },
          nb::kw_only(), nb::arg("slots"), nb::arg("rows"), nb::arg("workers"), nb::arg("text_bytes"))
      .def(
          "publish",
          [](BoardHandle& self, std::uint32_t slot, std::uint64_t item, std::uint32_t first, std::uint32_t rows,
             const nb::bytes& text) {
            self.board.publish(slot, item, first, rows,
                               {reinterpret_cast<const std::byte*>(text.c_str()), text.size()});
          },
          nb::arg("slot"), nb::arg("item"), nb::arg("first"), nb::arg("rows"), nb::arg("text"))
      .def(
          "cancel", [](BoardHandle& self, std::uint32_t slot) { self.board.cancel(slot); }, nb::arg("slot"))
      .def(
          "is_finished", [](const BoardHandle& self, std::uint32_t slot) { return self.board.is_finished(slot); },
          nb::arg("slot"))
      .def(
          "wait",
          [](const BoardHandle& self, std::uint32_t slot, double timeout_s) {
            const WithoutGil no_gil;
            self.board.wait(slot, nanoseconds(timeout_s));
          },
          nb::arg("slot"), nb::arg("timeout_s"), "Until the item is finished, or time is up.")
      .def(
          "outcome",
          [](const BoardHandle& self, std::uint32_t slot, std::uint32_t row) { return self.board.outcome(slot, row); },
          nb::arg("slot"), nb::arg("row"))
      .def(
          "lose", [](BoardHandle& self, std::uint32_t worker) { return tuple_of(self.board.lose(worker)); },
          nb::arg("worker"), "The row that a dead worker had: slot, row, item.")
      .def(
          "work_of",
          [](const BoardHandle& self, std::uint32_t worker) {
            const RowBoard::Work work = self.board.work_of(worker);
            return std::tuple(work.rows, work.busy_ns);
          },
          nb::arg("worker"), "Rows, and nanoseconds in callables.")
      .def("close", [](BoardHandle& self) { self.board.close(); })
      .def_prop_ro("is_closed", [](const BoardHandle& self) { return self.board.is_closed(); })
      .def(
          "claim",
          [](BoardHandle& self, std::uint32_t worker, double timeout_s) {
            if (const auto claim = self.board.is_closed() ? std::nullopt : self.board.try_claim(worker))
              return tuple_of(claim);
            const WithoutGil no_gil;
            return tuple_of(self.board.claim(worker, nanoseconds(timeout_s)));
          },
          nb::arg("worker"), nb::arg("timeout_s"), "A row to work on: slot, row, item. None after close() or in time.")
      .def(
          "finish",
          [](BoardHandle& self, std::uint32_t worker, std::uint32_t slot, std::uint32_t row, std::uint64_t item,
             bool is_good, std::uint64_t busy_ns) {
            self.board.finish(worker, {slot, row, item}, is_good ? RowBoard::done : RowBoard::failed, busy_ns);
          },
          nb::arg("worker"), nb::arg("slot"), nb::arg("row"), nb::arg("item"), nb::arg("is_good"), nb::arg("busy_ns"))
      .def(
          "text",
          [](const BoardHandle& self, std::uint32_t slot) {
            const auto text = self.board.text(slot);
            return nb::bytes(text.data(), text.size());
          },
          nb::arg("slot"));
}

}  // namespace stoker::bindings
