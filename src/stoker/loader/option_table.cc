#include "stoker/loader/option_table.h"

#include <array>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/dataset/narrowing.h"
#include "stoker/loader/option_limits.h"
#include "stoker/storage/fetcher.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kMostInBatch = 100'000'000;
constexpr std::uint64_t kMostThreads = 1024;

constexpr std::array<std::string_view, 5> kStorageWords = {"buffered", "direct", "mmap", "ram", "auto"};
constexpr std::array<std::string_view, 6> kDTypeWords = {"uint8", "uint16", "float16", "bfloat16", "float32", "int16"};

std::uint64_t count(const Value& value) {
  return std::get<std::uint64_t>(value);
}
const std::string& word(const Value& value) {
  return std::get<std::string>(value);
}
bool is_auto(const Value& value) {
  return std::holds_alternative<std::string>(value) && word(value) == "auto";
}
Value none_if_zero(std::uint64_t number) {
  return number == 0 ? Value() : Value(number);
}
Value auto_if_zero(std::uint64_t number) {
  return number == 0 ? Value("auto") : Value(number);
}
Value auto_or_count(int number) {
  if (number == kAuto) return Value("auto");
  return number < 0 ? Value(Unknown{std::to_string(number)}) : Value(static_cast<std::uint64_t>(number));
}
int threads(const Value& value) {
  return is_auto(value) ? kAuto : static_cast<int>(count(value));
}
Value text_value(std::string_view text) {
  return std::string(text);
}

// A list in JSON, or the short text of the command line.
transform::Ops parse_transform(const std::string& text) {
  return text.starts_with('[') ? transform::ops_from_json(text) : transform::parse_ops(text);
}

Value shuffle_value(const dataset::Shuffle& shuffle) {
  if (!is_switch(shuffle)) return text(shuffle);
  return shuffle.how == dataset::Shuffle::How::full;
}

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) names.push_back(text.substr(begin, end - begin));
    if (end == text.size()) return names;
    begin = end + 1;
  }
}

std::string join_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

constexpr std::array kTable = {
    Option{.name = "label",
           .heading = Heading::samples,
           .type = ValueType::text,
           .placeholder = "COLUMN",
           .unset = "`label`, where there is such a column",
           .meaning = "label column of an index.csv",
           .set = [](Request& to, const Value& value) { to.opening.label = word(value); },
           .get = [](const Request& of) { return of.opening.label.empty() ? Value() : Value(of.opening.label); },
           .takes_none = true},
    Option{.name = "where",
           .heading = Heading::samples,
           .type = ValueType::text,
           .placeholder = "EXPRESSION",
           .unset = "all",
           .meaning = "only rows of an index.csv whose columns match, such as 'slice_spacing<3 and rows==512'",
           .set = [](Request& to, const Value& value) { to.opening.where = word(value); },
           .get = [](const Request& of) { return of.opening.where.empty() ? Value() : Value(of.opening.where); },
           .takes_none = true},
    Option{
        .name = "class_list",
        .heading = Heading::samples,
        .type = ValueType::names,
        .placeholder = "FILE",
        .unset = "all",
        .meaning = "only the classes of these names; a file has one on each line",
        .set =
            [](Request& to, const Value& value) {
              const auto* const names = std::get_if<Names>(&value);
              to.opening.class_list = names != nullptr ? *names : dataset::read_class_list(word(value));
            },
        .get = [](const Request& of) { return of.opening.class_list.empty() ? Value() : Value(of.opening.class_list); },
        .takes_none = true},
    Option{.name = "class_subset",
           .heading = Heading::samples,
           .type = ValueType::count,
           .placeholder = "N",
           .unset = "all",
           .meaning = "number of classes to draw at random; the others are left out and labels are renumbered",
           .set = [](Request& to, const Value& value) { to.opening.class_subset = count(value); },
           .get = [](const Request& of) { return none_if_zero(of.opening.class_subset); },
           .least = 1,
           .most = kMostSamples,
           .takes_none = true},
    Option{.name = "class_subset_seed",
           .heading = Heading::samples,
           .type = ValueType::count,
           .placeholder = "N",
           .meaning = "seed that draws the classes",
           .set = [](Request& to, const Value& value) { to.opening.class_subset_seed = count(value); },
           .get = [](const Request& of) { return Value(of.opening.class_subset_seed); },
           .most = kMostSeed},
    Option{.name = "subset",
           .heading = Heading::samples,
           .type = ValueType::count,
           .placeholder = "N",
           .unset = "all",
           .meaning = "number of samples to draw at random; the others are left out",
           .set = [](Request& to, const Value& value) { to.opening.subset = count(value); },
           .get = [](const Request& of) { return none_if_zero(of.opening.subset); },
           .least = 1,
           .most = kMostSamples,
           .takes_none = true},
    Option{.name = "subset_seed",
           .heading = Heading::samples,
           .type = ValueType::count,
           .placeholder = "N",
           .meaning = "seed that draws the samples",
           .set = [](Request& to, const Value& value) { to.opening.subset_seed = count(value); },
           .get = [](const Request& of) { return Value(of.opening.subset_seed); },
           .most = kMostSeed},
    Option{.name = "inflate",
           .heading = Heading::samples,
           .type = ValueType::count,
           .placeholder = "N",
           .meaning = "repeat the data set N times without copying it; each copy has its own ids",
           .set = [](Request& to, const Value& value) { to.opening.inflate = count(value); },
           .get = [](const Request& of) { return Value(of.opening.inflate); },
           .least = 1,
           .most = kMostSamples},
    Option{.name = "listing",
           .heading = Heading::samples,
           .type = ValueType::word,
           .placeholder = "HOW",
           .meaning =
               "where the list of objects of a store comes from; fresh asks the store at each start, kept asks it "
               "once and keeps the answer in cache_dir",
           .set =
               [](Request& to, const Value& value) {
                 to.opening.listing = word(value) == "kept" ? dataset::UseListing::kept : dataset::UseListing::fresh;
               },
           .get =
               [](const Request& of) {
                 return text_value(dataset::kListingWords[static_cast<std::size_t>(of.opening.listing)]);
               },
           .words = dataset::kListingWords},
    Option{.name = "cache_dir",
           .heading = Heading::samples,
           .type = ValueType::text,
           .placeholder = "FOLDER",
           .unset = "$XDG_CACHE_HOME/stoker or ~/.cache/stoker",
           .meaning = "where listings, seek indexes and objects of a store are kept",
           .set = [](Request& to, const Value& value) { to.loader.cache_dir = to.opening.cache_dir = word(value); },
           .get = [](const Request& of) { return of.loader.cache_dir.empty() ? Value() : Value(of.loader.cache_dir); },
           .takes_none = true},

    Option{.name = "batch_size",
           .heading = Heading::order,
           .type = ValueType::count,
           .placeholder = "N",
           .meaning = "samples per batch, on each rank",
           .set = [](Request& to, const Value& value) { to.loader.batch_size = count(value); },
           .get = [](const Request& of) { return Value(of.loader.batch_size); },
           .least = 1,
           .most = kMostInBatch,
           .is_knob = true,
           .is_brief = true},
    Option{.name = "shuffle",
           .heading = Heading::order,
           .type = ValueType::shuffle,
           .placeholder = "HOW",
           .meaning = "draw a new order every epoch; blocks mixes blocks of neighbours, for disks that are fast in "
                      "order; blocks:N:M keeps N neighbours together and mixes M samples; nodes keeps samples on "
                      "their node in every epoch, for caches there",
           .set = [](Request& to, const Value& value) { to.loader.shuffle = dataset::parse_shuffle(word(value)); },
           .get = [](const Request& of) { return shuffle_value(of.loader.shuffle); },
           .takes_none = true,
           .is_knob = true,
           .is_brief = true},
    Option{.name = "seed",
           .heading = Heading::order,
           .type = ValueType::count,
           .placeholder = "N",
           .meaning = "seed of the order and of the random transforms",
           .set = [](Request& to, const Value& value) { to.loader.seed = count(value); },
           .get = [](const Request& of) { return Value(of.loader.seed); },
           .most = kMostSeed},
    Option{
        .name = "drop_last",
        .heading = Heading::order,
        .type = ValueType::on_off,
        .meaning = "leave out a short last batch",
        .set =
            [](Request& to, const Value& value) {
              if (std::get<bool>(value)) to.loader.last_batch = dataset::LastBatch::drop;
            },
        .get = [](const Request& of) { return Value(of.loader.last_batch == dataset::LastBatch::drop); }},
    Option{.name = "last_batch",
           .heading = Heading::order,
           .type = ValueType::word,
           .placeholder = "HOW",
           .meaning = "what becomes of a short last batch; pad fills it from the start of the epoch",
           .set = [](Request& to, const Value& value) { to.loader.last_batch = parse_last_batch(word(value)); },
           .get = [](const Request& of) { return text_value(name(of.loader.last_batch)); },
           .words = kLastBatchWords,
           .takes_none = true},
    Option{.name = "rank",
           .heading = Heading::order,
           .type = ValueType::count,
           .placeholder = "N",
           .meaning = "which of the equal parts of each step this process gets",
           .set = [](Request& to, const Value& value) { to.loader.rank = count(value); },
           .get = [](const Request& of) { return Value(of.loader.rank); },
           .most = kMostInBatch,
           .takes_none = true},
    Option{.name = "world_size",
           .heading = Heading::order,
           .type = ValueType::count,
           .placeholder = "N",
           .meaning = "number of processes that share each step",
           .set = [](Request& to, const Value& value) { to.loader.world_size = count(value); },
           .get = [](const Request& of) { return Value(of.loader.world_size); },
           .least = 1,
           .most = kMostInBatch,
           .takes_none = true},
    Option{.name = "epochs",
           .heading = Heading::order,
           .type = ValueType::count,
           .placeholder = "N",
           .unset = "not known",
           .meaning = "how many epochs the whole run has, from epoch 0 on; nothing is read ahead of the last",
           .set = [](Request& to, const Value& value) { to.loader.epochs = count(value); },
           .get = [](const Request& of) { return none_if_zero(of.loader.epochs); },
           .least = 1,
           .most = kMostSamples,
           .takes_none = true},

    Option{
        .name = "transform",
        .heading = Heading::output,
        .type = ValueType::text,
        .placeholder = "TEXT",
        .unset = "none",
        .meaning = "operations on each sample, such as rrc:224,flip",
        .set = [](Request& to, const Value& value) { to.loader.transform = parse_transform(word(value)); },
        .get =
            [](const Request& of) {
              return of.loader.transform.empty() ? Value() : Value(transform::to_text(of.loader.transform));
            },
        .takes_none = true,
        .is_brief = true},
    Option{.name = "decode",
           .heading = Heading::output,
           .type = ValueType::word,
           .placeholder = "HOW",
           .meaning = "how files become arrays; exact gives Pillow's pixels, fast gives pixels close to them, none "
                      "gives the encoded bytes",
           .set = [](Request& to, const Value& value) { to.loader.decode = parse_decode(word(value)); },
           .get = [](const Request& of) { return text_value(name(of.loader.decode)); },
           .words = kDecodeWords,
           .is_knob = true},
    Option{
        .name = "arrays",
        .heading = Heading::output,
        .type = ValueType::text,
        .placeholder = "NAMES",
        .unset = "the only one",
        .meaning = "arrays of .npz files to load, by name, with commas between them",
        .set = [](Request& to, const Value& value) { to.loader.arrays = split_names(word(value)); },
        .get =
            [](const Request& of) { return of.loader.arrays.empty() ? Value() : Value(join_names(of.loader.arrays)); },
        .takes_none = true},
    Option{.name = "shapes",
           .heading = Heading::output,
           .type = ValueType::word,
           .placeholder = "HOW",
           .meaning = "files of arrays whose shapes differ; equal refuses them, pad fills them up with zeros to the "
                      "largest of the batch, list gives a list of arrays",
           .set = [](Request& to, const Value& value) { to.loader.shapes = parse_shapes(word(value)); },
           .get = [](const Request& of) { return text_value(name(of.loader.shapes)); },
           .words = kShapesWords},
    Option{.name = "seek_index",
           .heading = Heading::output,
           .type = ValueType::word,
           .placeholder = "HOW",
           .meaning =
               "note places inside JPEG files, so that later crops decode only what they touch; auto saves them, "
               "memory does not",
           .set = [](Request& to, const Value& value) { to.loader.seek_index = parse_seek_index(word(value)); },
           .get = [](const Request& of) { return text_value(name(of.loader.seek_index)); },
           .words = kSeekIndexWords,
           .is_knob = true},
    Option{.name = "exif_orientation",
           .heading = Heading::output,
           .type = ValueType::on_off,
           .meaning = "turn images as their Exif orientation says, before anything else",
           .set = [](Request& to, const Value& value) { to.loader.exif_orientation = std::get<bool>(value); },
           .get = [](const Request& of) { return Value(of.loader.exif_orientation); }},
    Option{.name = "color",
           .heading = Heading::output,
           .type = ValueType::word,
           .placeholder = "NAME",
           .meaning = "channels of images; keep takes the channels of the file and its 16 bits",
           .set = [](Request& to, const Value& value) { to.loader.color = parse_color(word(value)); },
           .get = [](const Request& of) { return text_value(name(of.loader.color)); },
           .words = kColorWords},
    Option{
        .name = "dtype",
        .heading = Heading::output,
        .type = ValueType::word,
        .placeholder = "NAME",
        .unset = "what the transform gives",
        .meaning = "type of the batch; uint16 is for 16-bit images, int16 for audio",
        .set = [](Request& to, const Value& value) { to.loader.output.dtype = parse_dtype(word(value)); },
        .get =
            [](const Request& of) {
              return of.loader.output.dtype ? text_value(name(*of.loader.output.dtype)) : Value();
            },
        .words = kDTypeWords,
        .takes_none = true,
        .is_knob = true},
    Option{.name = "layout",
           .heading = Heading::output,
           .type = ValueType::word,
           .placeholder = "NAME",
           .meaning = "order of the axes of image batches; channels_last has the shape of NCHW and the strides of NHWC",
           .set = [](Request& to, const Value& value) { to.loader.output.layout = parse_layout(word(value)); },
           .get = [](const Request& of) { return text_value(name(of.loader.output.layout)); },
           .words = kLayoutWords},
    Option{.name = "pin_memory",
           .heading = Heading::output,
           .type = ValueType::on_off,
           .meaning = "page-lock the batches, where a device runtime is found",
           .set = [](Request& to, const Value& value) { to.loader.pin_memory = std::get<bool>(value); },
           .get = [](const Request& of) { return Value(of.loader.pin_memory); },
           .takes_none = true,
           .is_knob = true},

    Option{.name = "num_workers",
           .heading = Heading::resources,
           .type = ValueType::count,
           .placeholder = "N",
           .meaning = "threads that decode and transform; auto takes the cores of this process, 0 works in the calling "
                      "thread",
           .set = [](Request& to, const Value& value) { to.loader.num_workers = threads(value); },
           .get = [](const Request& of) { return auto_or_count(of.loader.num_workers); },
           .most = kMostThreads,
           .takes_auto = true,
           .is_knob = true,
           .is_brief = true},
    Option{.name = "prefetch_factor",
           .heading = Heading::resources,
           .type = ValueType::count,
           .placeholder = "N",
           .meaning = "ready batches beyond the one in use, in total",
           .set = [](Request& to, const Value& value) { to.loader.prefetch_factor = count(value); },
           .get = [](const Request& of) { return Value(of.loader.prefetch_factor); },
           .most = kMostInBatch,
           .takes_none = true,
           .is_knob = true},
    Option{.name = "memory_limit",
           .heading = Heading::resources,
           .type = ValueType::bytes,
           .placeholder = "SIZE",
           .unset = "25 % of RAM, at most 8 GB",
           .meaning = "hard bound on memory; it covers all that the loader holds",
           .set = [](Request& to, const Value& value) { to.loader.memory_limit = count(value); },
           .get = [](const Request& of) { return none_if_zero(of.loader.memory_limit); },
           .least = 1,
           .most = kMostSamples,
           .takes_none = true,
           .is_knob = true,
           .is_brief = true},
    Option{
        .name = "storage",
        .heading = Heading::resources,
        .type = ValueType::word,
        .placeholder = "HOW",
        .meaning = "how bytes are read; direct goes past the page cache, mmap maps packs and arrays, ram keeps what "
                   "was read, auto decides by size",
        .set = [](Request& to,
                  const Value& value) { to.loader.storage = to.opening.storage = storage::parse_storage(word(value)); },
        .get = [](const Request& of) { return text_value(storage::name(of.loader.storage)); },
        .words = kStorageWords,
        .is_knob = true},
    Option{.name = "io_threads",
           .heading = Heading::resources,
           .type = ValueType::count,
           .placeholder = "N",
           .meaning = "threads that read; they are not counted as workers",
           .set = [](Request& to, const Value& value) { to.loader.io_threads = threads(value); },
           .get = [](const Request& of) { return auto_or_count(of.loader.io_threads); },
           .least = 1,
           .most = kMostThreads,
           .takes_auto = true,
           .is_knob = true},
    Option{.name = "io_depth",
           .heading = Heading::resources,
           .type = ValueType::count,
           .placeholder = "N",
           .meaning = "requests in flight per I/O thread; those to a store are shared by all threads",
           .set = [](Request& to, const Value& value) { to.loader.io_depth = is_auto(value) ? 0 : count(value); },
           .get = [](const Request& of) { return auto_if_zero(of.loader.io_depth); },
           .least = 1,
           .most = storage::kMaxDepth,
           .takes_auto = true,
           .is_knob = true},
    Option{.name = "io_batch",
           .heading = Heading::resources,
           .type = ValueType::count,
           .placeholder = "N",
           .meaning = "requests per submission to the kernel",
           .set = [](Request& to, const Value& value) { to.loader.io_batch = is_auto(value) ? 0 : count(value); },
           .get = [](const Request& of) { return auto_if_zero(of.loader.io_batch); },
           .least = 1,
           .most = storage::kMaxDepth,
           .takes_auto = true,
           .is_knob = true},
    Option{.name = "read_ahead",
           .heading = Heading::resources,
           .type = ValueType::bytes,
           .placeholder = "SIZE",
           .meaning = "bytes fetched beyond the ready batches",
           .set = [](Request& to, const Value& value) { to.loader.read_ahead = is_auto(value) ? 0 : count(value); },
           .get = [](const Request& of) { return auto_if_zero(of.loader.read_ahead); },
           .least = 1,
           .most = kMostSamples,
           .takes_auto = true,
           .takes_none = true,
           .is_knob = true},
    Option{
        .name = "cache_limit",
        .heading = Heading::resources,
        .type = ValueType::bytes,
        .placeholder = "SIZE",
        .unset = "objects are not kept",
        .meaning = "keep objects of a store on disk, up to this size; all processes of a machine share them",
        .set = [](Request& to, const Value& value) { to.loader.cache_limit = to.opening.cache_limit = count(value); },
        .get = [](const Request& of) { return none_if_zero(of.loader.cache_limit); },
        .least = 1,
        .most = kMostSamples,
        .takes_none = true},
    Option{
        .name = "timeout",
        .heading = Heading::resources,
        .type = ValueType::duration,
        .placeholder = "TIME",
        .unset = "5 minutes",
        .meaning = "time without any progress that ends the run with an error naming the sample; 0 waits for ever",
        .set =
            [](Request& to, const Value& value) {
              to.loader.timeout = std::chrono::nanoseconds(std::llround(std::get<double>(value) * 1e9));
            },
        .get = [](const Request& of) { return Value(std::chrono::duration<double>(of.loader.timeout).count()); },
        .takes_none = true},

    Option{
        .name = "on_error",
        .heading = Heading::bad_samples,
        .type = ValueType::word,
        .placeholder = "HOW",
        .meaning = "what becomes of a bad sample; replace puts another one in its place, zero a row of zeros",
        .set =
            [](Request& to, const Value& value) {
              to.loader.on_error = parse_on_error(word(value));
              to.opening.skip_losses = to.loader.on_error != OnError::raise;
            },
        .get = [](const Request& of) { return text_value(name(of.loader.on_error)); },
        .words = kOnErrorWords,
        .is_brief = true},
    Option{.name = "max_errors",
           .heading = Heading::bad_samples,
           .type = ValueType::real,
           .placeholder = "N",
           .unset = "no limit",
           .meaning = "more bad samples than this in one epoch end the run; below 1 it is a share of the data set",
           .set = [](Request& to, const Value& value) { to.loader.max_errors = std::get<double>(value); },
           .get = [](const Request& of) { return of.loader.max_errors == 0 ? Value() : Value(of.loader.max_errors); },
           .takes_none = true},
};

}  // namespace

std::span<const Option> option_table() noexcept {
  return kTable;
}

const Option& find_option(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Option& row : kTable) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  const std::string near = nearest(name, names.data(), names.size());
  throw Error(
      ErrorKind::usage, fmt::format("the loader has no option `{}`", name),
      near.empty() ? Text("docs/reference/loader.md lists its options") : format_text("did you mean {}?", option(near)))
      .about(name);
}

}  // namespace stoker::loader
