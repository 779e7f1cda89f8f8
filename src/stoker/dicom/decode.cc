#include "stoker/dicom/decode.h"

#include <exception>

#include <fcntl.h>
#include <fmt/format.h>
#include <gdcmImageReader.h>
#include <gdcmTrace.h>
#include <gdcmVersion.h>

#include "stoker/base/error.h"
#include "stoker/base/utf8.h"

namespace stoker::dicom {

std::string gdcm_version() {
  return gdcm::Version::GetVersion();
}

PixelFile::PixelFile(const std::string& path) : path_(path), file_(os::open_file(path, O_RDONLY)) {
  const std::uint64_t bytes = os::file_size(file_.get(), path);
  const Result result = read_file_header(file_.get(), bytes, path, header_, pixels_);
  if (!result.ok()) {
    error_ = fmt::format("it is {}: {}", name(result.code), result.cause);
    return;
  }
  Verdict verdict = judge(header_, bytes, true);
  if (verdict.found != Found::image) error_ = std::move(verdict.cause);
  as_ = stored_as(header_);
}

PixelFile::~PixelFile() = default;

// GDCM has no messages of its own in release builds; what it throws is text for programmers.
std::string PixelFile::decode_all() {
  const std::string failed = fmt::format("its pixel data ({}) cannot be decoded", header_.syntax.name);
  try {
    gdcm::Trace::WarningOff();
    gdcm::Trace::ErrorOff();
    gdcm::ImageReader reader;
    reader.SetFileName(path_.c_str());
    if (!reader.Read()) return failed;
    const gdcm::Image& image = reader.GetImage();
    const gdcm::PixelFormat format = image.GetPixelFormat();
    const unsigned frames = image.GetNumberOfDimensions() > 2 ? image.GetDimension(2) : 1;
    if (image.GetDimension(0) != header_.columns || image.GetDimension(1) != header_.rows || frames != header_.frames) {
      return fmt::format("{}: they hold {} frames of {}x{}, the header says {} of {}x{}", failed, frames,
                         image.GetDimension(0), image.GetDimension(1), header_.frames, header_.columns, header_.rows);
    }
    if (format.GetSamplesPerPixel() != 1 || (format.GetBitsAllocated() != 8 && format.GetBitsAllocated() != 16)) {
      return fmt::format("{}: they hold {} samples of {} bits", failed, format.GetSamplesPerPixel(),
                         format.GetBitsAllocated());
    }
    as_.bits_allocated = format.GetBitsAllocated();
    as_.bits_stored = std::min<std::uint32_t>(header_.bits_stored, as_.bits_allocated);
    as_.is_signed = format.GetPixelRepresentation() == 1;
    pixels_.resize(image.GetBufferLength());
    const std::uint64_t wanted =
        std::uint64_t{header_.rows} * header_.columns * header_.frames * as_.bits_allocated / 8;
    if (pixels_.size() != wanted) return fmt::format("{}: {} of {} bytes", failed, pixels_.size(), wanted);
    if (!image.GetBuffer(reinterpret_cast<char*>(pixels_.data()))) return failed;
    return "";
  } catch (const std::bad_alloc&) {
    return fmt::format("{}: there is not enough memory", failed);
  } catch (const std::exception& error) {
    return fmt::format("{}: {}", failed, one_line(error.what()));
  } catch (...) {  // GDCM throws texts in places
    return failed;
  }
}

std::string PixelFile::read_frame(std::uint32_t frame, std::vector<std::uint16_t>& out) {
  if (!error_.empty()) return error_;
  if (frame >= header_.frames) return fmt::format("it has {} frames, no frame {}", header_.frames, frame + 1);
  const std::size_t count = std::size_t{header_.rows} * header_.columns;
  out.resize(count);
  Bytes stored;
  if (header_.syntax.packing == Packing::encapsulated) {
    if (!is_decoded_) {
      error_ = decode_all();
      is_decoded_ = true;
      if (!error_.empty()) return error_;
    }
    const std::size_t bytes = count * as_.bits_allocated / 8;
    stored = Bytes(pixels_).subspan(bytes * frame, bytes);
  } else if (header_.syntax.is_deflated) {
    const std::uint64_t at = header_.pixels_at + header_.frame_bytes() * frame;
    if (at > pixels_.size() || header_.frame_bytes() > pixels_.size() - at) return "it is truncated";
    stored = Bytes(pixels_).subspan(at, header_.frame_bytes());
  } else {
    // One byte more where 8-bit pixels lie in words.
    pixels_.resize(header_.frame_bytes() + (as_.are_pairs_swapped ? header_.frame_bytes() % 2 : 0));
    os::read_exactly(file_.get(), pixels_, header_.pixels_at + header_.frame_bytes() * frame, path_);
    stored = pixels_;
  }
  const FrameFacts& facts = header_.facts_of(frame);
  return rescale(stored, as_, facts.slope.value_or(1), facts.intercept.value_or(0), out.data(), count);
}

}  // namespace stoker::dicom
