// A folder of images, each one slice: what `stoker prepare dicom` writes, and stacks of single TIFF pages. A chunk is
// one slice.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/codec/tiff.h"
#include "stoker/dataset/files.h"
#include "stoker/dataset/volume_kinds.h"
#include "stoker/os/fd.h"
#include "stoker/os/file_facts.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/interruption.h"
#include "stoker/storage/read_whole.h"

namespace stoker::dataset {
namespace {

struct Slice {
  std::string name;
  std::uint64_t bytes = 0;
  std::string version;  // of an object
};

// 2 before 10: runs of digits count as numbers.
bool comes_before(std::string_view a, std::string_view b) noexcept {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i, ++j;
      continue;
    }
    const auto run = [&](std::string_view text, std::size_t& at) {
      while (at + 1 < text.size() && text[at] == '0' && is_digit(text[at + 1])) ++at;
      const std::size_t begin = at;
      while (at < text.size() && is_digit(text[at])) ++at;
      return text.substr(begin, at - begin);
    };
    const std::string_view x = run(a, i), y = run(b, j);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;  // 01 and 1
}

bool is_tiff_name(std::string_view name) {
  return ends_with_any_case(name, ".tif") || ends_with_any_case(name, ".tiff");
}
bool is_image_name(std::string_view name) {
  const codec::Media media = codec::media_of_name(name);
  return media.is_known() && codec::kind_of(media) == SampleKind::image;
}

// The slices are files of a folder, or objects of a store.
class SlicesVolume final : public Volume {
 public:
  explicit SlicesVolume(const std::string& address) : name_(address) {
    backend_ = storage::store_of(address);
    if (backend_ != nullptr) {
      list_store();
    } else {
      list_folder();
    }
    if (slices_.empty()) {
      throw Error(
          ErrorKind::not_found,
          fmt::format("cannot find slices in `{}`: by their names, none of its files is a TIFF or an image", name_),
          "a volume is an array file, a zarr folder, a TIFF file or a folder of slices");
    }
    is_tiff_ = is_tiff_name(slices_.front().name);
    for (const Slice& slice : slices_) {
      if (is_tiff_name(slice.name) != is_tiff_) {
        throw Error(ErrorKind::unsupported,
                    fmt::format("cannot read `{}` as a volume: `{}` and `{}` are of two formats", name_,
                                slices_.front().name, slice.name));
      }
      info_.stored_bytes += slice.bytes;
    }
    std::sort(slices_.begin(), slices_.end(),
              [](const Slice& a, const Slice& b) { return comes_before(a.name, b.name); });
    note_gaps();
    learn();
    add_series_facts(name_, info_);
  }

  const VolumeInfo& info() const noexcept override { return info_; }
  std::string_view name() const noexcept override { return name_; }

  storage::Location locate_chunk(std::uint64_t chunk, std::span<char> text) const noexcept override {
    const Slice& slice = slices_[chunk];
    if (backend_ == nullptr) {
      const std::size_t length = join(text, slice.name);
      return in_folder(folder_.get(), text, length, slice.bytes);
    }
    const std::size_t length = join(text, base_, slice.name);
    return storage::Location::whole_object(*backend_, length == 0 ? nullptr : text.data(),
                                           slice.version.empty() ? nullptr : slice.version.c_str(), slice.bytes);
  }

  Result decode_chunk(std::uint64_t, codec::Bytes encoded, std::byte* into, Scratch& scratch) const noexcept override {
    if (encoded.empty()) return failed(Code::truncated, "an empty file", 0);
    if (is_tiff_) return codec::decode_page(form_, encoded, into, scratch);
    const codec::Media media = codec::sniff(encoded);
    codec::ImageInfo image;
    if (const Result result = codec::probe_image(media, encoded, image); !result.ok()) return result;
    if (image.width != form_.width || image.height != form_.height) {
      return failed(Code::mismatch, "a slice of another size than the first");
    }
    if (image.bits != image_.bits || image.channels != image_.channels) {
      return failed(Code::mismatch, "a slice of another depth, or of other channels, than the first");
    }
    const std::uint64_t row = info_.extents[2] * info_.element_bytes();
    const Pixels pixels{into, row, form_.width, form_.height, static_cast<std::uint8_t>(info_.channels), info_.dtype};
    return codec::decode_image(media, encoded, options_, {0, 0, form_.width, form_.height}, pixels, scratch);
  }

  std::string chunk_name(std::uint64_t chunk) const override {
    return fmt::format("slice `{}` of `{}`", slices_[chunk].name, name_);
  }
  std::span<const storage::Backend* const> backends() const noexcept override {
    return {&backend_, backend_ != nullptr ? 1u : 0u};
  }
  std::uint64_t memory_bytes() const noexcept override {
    std::uint64_t bytes = held_bytes(slices_);
    for (const Slice& slice : slices_) bytes += held_bytes(slice.name) + held_bytes(slice.version);
    return bytes;
  }

 private:
  // Numbers that are missing between those of the names, where the names differ in their last number alone.
  void note_gaps() {
    std::uint64_t missing = 0, first_missing = 0, before = 0;
    std::string_view stem;
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      const std::string_view name = std::string_view(slices_[i].name).substr(0, slices_[i].name.rfind('.'));
      std::size_t digits = name.size();
      while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
      std::uint64_t number = 0;
      const auto [end, problem] = std::from_chars(name.data() + digits, name.data() + name.size(), number);
      if (digits == name.size() || problem != std::errc() || (i > 0 && name.substr(0, digits) != stem)) return;
      stem = name.substr(0, digits);
      if (i > 0 && number > before + 1) {
        if (missing == 0) first_missing = before + 1;
        missing += number - before - 1;
      }
      before = number;
    }
    if (missing == 0) return;
    info_.note = fmt::format(
        "the numbers of the slices of `{}` have gaps: {} missing, the first is {}; the slices are "
        "taken as neighbours",
        name_, missing, first_missing);
  }

  void list_folder() {
    folder_ = os::open_file(name_, O_RDONLY | O_DIRECTORY);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(name_, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with('.') || (!is_tiff_name(name) && !is_image_name(name))) continue;
      const os::FileFacts facts = os::facts_of(folder_.get(), name.c_str());
      if (facts.is_found() && facts.kind == os::FileKind::regular) slices_.push_back({name, facts.bytes, {}});
    }
    if (error) throw system_error(error.value(), "list", name_);
  }

  void list_store() {
    base_ = storage::split_address(name_).name;
    if (!base_.ends_with('/')) base_ += '/';
    backend_->list(base_, [this](const storage::Backend::Object& object) {
      const std::string_view name = object.name.substr(std::min(base_.size(), object.name.size()));
      const bool is_slice = name.find('/') == std::string_view::npos && !name.starts_with('.') &&
                            (is_tiff_name(name) || is_image_name(name));
      if (is_slice) slices_.push_back({std::string(name), object.bytes, std::string(object.version)});
      return true;
    });
  }

  std::vector<std::byte> read_slice(std::uint64_t slice) const {
    std::vector<std::byte> bytes;
    std::vector<char> text(storage::kLocationText);
    const storage::WholeRead read = storage::read_whole(locate_chunk(slice, text), bytes);
    if (!read.ok()) {
      throw Error(read.failure.kind, fmt::format("cannot read {}: {}", chunk_name(slice), read.failure.text),
                  read.failure.hint);
    }
    return {read.bytes.begin(), read.bytes.end()};
  }

  // What the first slice says holds for all of them. Slices of a folder are compared with it now, others when they are
  // decoded.
  void learn() {
    const std::vector<std::byte> first = read_slice(0);
    if (is_tiff_) {
      form_ = form_of(first, 0);
      info_.dtype = form_.dtype;
      info_.channels = form_.samples;
      info_.working_bytes = codec::page_working_bytes(form_);
      info_.format = fmt::format("{} TIFF files, {}", slices_.size(), codec::name(form_.packing));
      if (backend_ == nullptr) compare_pages();
    } else {
      const codec::Media media = codec::sniff(first);
      if (const Result result = codec::probe_image(media, first, image_); !result.ok()) {
        refuse_volume(fmt::format("{}/{}", name_, slices_[0].name), result);
      }
      options_.color = codec::Color::keep;
      options_.deep = image_.bits == 16;
      form_.width = image_.width;
      form_.height = image_.height;
      info_.dtype = options_.deep ? DType::u16 : DType::u8;
      info_.channels = codec::output_channels(image_, options_);
      info_.working_bytes = image_.working_bytes;
      info_.format = fmt::format("{} {} files", slices_.size(), codec::name(media));
    }
    info_.extents = {slices_.size(), form_.height, form_.width};
    info_.chunk = {1, form_.height, form_.width};
    if (info_.chunk_bytes() > codec::kMaxSegmentBytes) {
      refuse_volume(fmt::format("{}/{}", name_, slices_[0].name), failed(Code::too_large, "a slice above 1 GiB"));
    }
  }

  codec::TiffForm form_of(codec::Bytes file, std::uint64_t slice) const {
    codec::TiffBytes input(file);
    return form_of(input, slice);
  }
  codec::TiffForm form_of(codec::TiffInput& input, std::uint64_t slice) const {
    Scratch scratch;
    codec::TiffHeader header;
    codec::TiffPage page;
    Result result = codec::read_tiff_header(input, header);
    if (result.ok()) result = codec::read_tiff_page(input, header, header.first, page, scratch);
    const std::string path = fmt::format("{}/{}", name_, slices_[slice].name);
    if (!result.ok()) refuse_volume(path, result);
    if (page.next != 0 && slices_.size() > 1) {
      refuse_volume(path, failed(Code::unsupported, "a file of several pages among the slices of a folder"));
    }
    page.form.swap_bytes = false;
    return page.form;
  }

  // Reads the headers of all pages, which costs a few system calls each.
  void compare_pages() {
    for (std::uint64_t i = 1; i < slices_.size(); ++i) {
      storage::check_interruption();
      FolderInput input(folder_.get(), slices_[i]);
      const codec::TiffForm form = form_of(input, i);
      if (form.width == form_.width && form.height == form_.height && form.dtype == form_.dtype &&
          form.samples == form_.samples) {
        continue;
      }
      const auto describe = [](const codec::TiffForm& one) {
        return fmt::format("{} x {} {}{}", one.height, one.width, stoker::name(one.dtype),
                           one.samples > 1 ? fmt::format(" x {}", one.samples) : std::string());
      };
      throw Error(ErrorKind::unsupported,
                  fmt::format("cannot read `{}` as a volume: `{}` is {}, and `{}` is {}", name_, slices_[0].name,
                              describe(form_), slices_[i].name, describe(form)),
                  "all slices of a volume have one size and one element type");
    }
  }

  class FolderInput final : public codec::TiffInput {
   public:
    FolderInput(int folder, const Slice& slice) noexcept : bytes_(slice.bytes) {
      int error_number = 0;
      fd_ = os::try_open(folder, slice.name.c_str(), O_RDONLY, error_number);
    }
    std::uint64_t size_bytes() const noexcept override { return bytes_; }
    bool read(std::uint64_t offset, std::span<std::byte> into) noexcept override {
      while (!into.empty()) {
        const std::int64_t count = fd_ ? os::read_some(fd_.get(), into, offset) : -1;
        if (count <= 0) return false;
        offset += static_cast<std::uint64_t>(count);
        into = into.subspan(static_cast<std::size_t>(count));
      }
      return true;
    }

   private:
    os::Fd fd_;
    std::uint64_t bytes_;
  };

  std::string name_, base_;
  const storage::Backend* backend_ = nullptr;
  os::Fd folder_;
  std::vector<Slice> slices_;
  bool is_tiff_ = false;
  codec::TiffForm form_;  // of an image: only its size
  codec::ImageInfo image_;
  codec::ImageOptions options_;
  VolumeInfo info_;
};

}  // namespace

std::unique_ptr<Volume> open_slices_volume(const std::string& address) {
  return std::make_unique<SlicesVolume>(address);
}

}  // namespace stoker::dataset
