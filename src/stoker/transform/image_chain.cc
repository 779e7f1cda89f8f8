#include "stoker/transform/image_chain.h"

#include <algorithm>
#include <cassert>

#include "stoker/transform/apply_actions.h"
#include "stoker/transform/erasing.h"
#include "stoker/transform/image_rows.h"
#include "stoker/transform/values.h"

namespace stoker::transform {
namespace {

// Adds up what actions need, without doing them.
class Measuring final : public ActionSink {
 public:
  explicit Measuring(const ImageSize& size) noexcept : size_(size) { widen(); }

  void act(const Action& action) noexcept override {
    const std::uint64_t taken = action_bytes(action, size_);
    extra_ = std::max(extra_, held_ + taken);
    if (action.what == Act::mix_start) held_ = taken;
    if (action.what == Act::mix_chain && action.figures[1] != 0) held_ = 0;
    size_ = size_after(action, size_);
    widen();
  }

  std::uint64_t room() const noexcept { return room_; }    // of the largest image
  std::uint64_t extra() const noexcept { return extra_; }  // at the action before which and for which most is taken

 private:
  void widen() noexcept { room_ = std::max(room_, std::uint64_t{size_.width} * size_.height * size_.channels); }

  ImageSize size_;
  std::uint64_t room_ = 0, extra_ = 0, held_ = 0;
};

class Erasing final : public ActionSink {
 public:
  Erasing(const StoreShape& shape, std::byte* slot) noexcept : shape_(shape), slot_(slot) {}
  void act(const Action& action) noexcept override {
    action.what == Act::erase ? erase(action, shape_, slot_) : change_values(action, shape_, slot_);
  }

 private:
  const StoreShape& shape_;
  std::byte* slot_;
};

void interleave(const Planes& from, std::uint32_t y, std::uint8_t* row) noexcept {
  for (std::uint32_t c = 0; c < from.channels; ++c) {
    const std::uint8_t* const in = from.row(c, y);
    for (std::size_t x = 0; x < from.width; ++x) row[x * from.channels + c] = in[x];
  }
}

Result store_canvas(const ImageProgram& plan, const Planes& image, std::byte* slot, Scratch& scratch) noexcept {
  const StoreShape& shape = plan.store;
  if (image.width != shape.width || image.height != shape.height) return kOtherSize;
  assert(image.channels == shape.channels && "store_canvas: the compiler has counted other channels");
  const void* const table = plan.table.empty() ? nullptr : plan.table.data();
  if (shape.planar) {
    store_planes(shape, image.data, table, slot);
    return {};
  }
  std::uint8_t* const line = take<std::uint8_t>(scratch, std::size_t{shape.width} * shape.channels);
  if (line == nullptr) return kNoRoom;
  for (std::uint32_t y = 0; y < shape.height; ++y) {
    interleave(image, y, line);
    store_row(shape, line, y, false, table, slot);
  }
  return {};
}

}  // namespace

Result draw_all(const std::vector<Augment>& augments, std::uint64_t key, ImageSize& size, ActionSink& sink,
                std::size_t pass) noexcept {
  for (const Augment& augment : augments) {
    const PassTimer timer(pass == kNoPass ? pass : pass++);
    if (const Result result = draw_actions(augment, key, size, sink); !result.ok()) return result;
  }
  return {};
}

Result measure_chain(const ImageProgram& plan, std::uint64_t key, ImageSize& size, ChainRoom& room) noexcept {
  Measuring measuring(size);
  const Result result = draw_all(plan.augments, key, size, measuring);
  room = {measuring.room(), measuring.extra()};
  return result;
}

Result open_canvas(const ImageProgram& plan, std::uint64_t key, const ImageSize& size, Canvas& canvas,
                   Scratch& scratch) noexcept {
  ImageSize after = size;
  ChainRoom room;
  if (const Result result = measure_chain(plan, key, after, room); !result.ok()) return result;
  if (!canvas.take_from(scratch, room.elements)) return kNoRoom;
  canvas.shape(size.width, size.height, size.channels);
  return {};
}

Result finish_chain(const ImageProgram& plan, std::uint64_t key, std::size_t pass, Canvas& canvas, std::byte* slot,
                    Scratch& scratch) noexcept {
  ActionRunner runner(canvas, scratch);
  ImageSize size{canvas.image().width, canvas.image().height, canvas.image().channels};
  if (const Result result = draw_all(plan.augments, key, size, runner, pass); !result.ok()) return result;
  pass += plan.augments.size();
  const Planes& image = canvas.image();
  if (plan.next == nullptr) {
    const auto store = [&] {
      const PassTimer timer(pass);
      const Result finished = runner.finish();
      return finished.ok() ? store_canvas(plan, image, slot, scratch) : finished;
    };
    const Result result = store();
    return result.ok() ? erase_view(plan, key, pass + 1, slot) : result;
  }
  if (const Result result = runner.finish(); !result.ok()) return result;

  const ImageProgram& next = *plan.next;
  Draw draw;
  if (const Result result = draw_geometry(next, key, image.width, image.height, draw); !result.ok()) return result;
  if (!next.is_chain() && (draw.width != next.store.width || draw.height != next.store.height)) return kOtherSize;
  const std::size_t row_bytes = std::size_t{image.width} * image.channels;
  std::uint8_t* const pixels = take<std::uint8_t>(scratch, row_bytes * image.height);
  if (pixels == nullptr) return kNoRoom;
  for (std::uint32_t y = 0; y < image.height; ++y) interleave(image, y, pixels + y * row_bytes);
  const Part<std::uint8_t> part{pixels, row_bytes, 0, 0, image.width, image.height, image.channels};
  const Needs needs = needs_of(next, draw);
  return make_view(next, draw, pass, slot, scratch, [&](const StoreShape& shape, const auto& store) {
    return run_padded(draw, shape, std::uint8_t{0}, scratch, store,
                      [&](const auto& rows) { return run_resizes(next, draw, needs, 0, part, scratch, rows); });
  });
}

Result erase_view(const ImageProgram& last, std::uint64_t key, std::size_t pass, std::byte* slot) noexcept {
  if (last.erasings.empty()) return {};
  const PassTimer timer(pass);
  ImageSize size{last.store.width, last.store.height, last.store.channels};
  Erasing erasing(last.store, slot);
  return draw_all(last.erasings, key, size, erasing);
}

std::uint64_t chain_bytes(const ImageProgram& plan, const Draw& draw) noexcept {
  if (!plan.is_chain()) return 0;
  ImageSize size{draw.width, draw.height, plan.channels};
  ChainRoom room;
  if (!measure_chain(plan, draw.key, size, room).ok()) return 0;
  const std::uint64_t element = plan.deep ? sizeof(float) : 1, row = std::uint64_t{size.width} * size.channels;
  const std::uint64_t bytes =
      (plan.deep ? FloatCanvas::bytes_for(room.elements) : Canvas::bytes_for(room.elements)) + room.extra;
  if (plan.next == nullptr) return bytes + Scratch::rounded(row * element);
  Draw after;
  if (!draw_geometry(*plan.next, draw.key, size.width, size.height, after).ok()) return bytes;
  const bool is_interleaved = !plan.deep || size.channels > 1;
  return bytes + (is_interleaved ? Scratch::rounded(row * size.height * element) : 0) +
         geometry_bytes(*plan.next, after, 1) + chain_bytes(*plan.next, after);
}

Result ImagePlan::list_actions(std::uint32_t view, const Draw& draw, ActionSink& sink) const noexcept {
  const ImageProgram* program = &program_of(view);
  Draw drawn = draw;
  for (;;) {
    ImageSize size{drawn.width, drawn.height, program->channels};
    if (const Result result = draw_all(program->augments, draw.key, size, sink); !result.ok()) return result;
    if (program->next == nullptr) return draw_all(program->erasings, draw.key, size, sink);
    program = program->next.get();
    const Result result = draw_geometry(*program, draw.key, size.width, size.height, drawn);
    if (!result.ok()) return result;
  }
}

}  // namespace stoker::transform
