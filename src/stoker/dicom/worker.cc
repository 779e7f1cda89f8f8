#include "stoker/dicom/worker.h"

#include <iostream>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/dicom/decode.h"
#include "stoker/os/fd.h"
#include "stoker/os/sync.h"
#include "stoker/os/worker_process.h"
#include "stoker/os/write_all.h"

namespace stoker::dicom {
namespace {

Json failure(std::string text) {
  return {{"error", std::move(text)}};
}

// What is written cannot be written. That concerns every slice, so it ends the run; a bad source is left out.
struct OutputFailure {
  std::string text;
};

void check_output(int error_number, const std::string& path) {
  if (error_number != 0) throw OutputFailure{system_error(error_number, "write", path).message()};
}

os::Fd open_output(const std::string& path, int flags) {
  int error_number = 0;
  os::Fd file = os::try_open(AT_FDCWD, path.c_str(), flags, error_number);
  check_output(error_number, path);
  return file;
}

// Not on the disk yet: a later "sync" takes care of all files of a series at once.
void write_new(const std::string& path, Bytes bytes) {
  os::Fd file = open_output(path, O_WRONLY | O_CREAT | O_TRUNC);
  check_output(os::write_all(file.get(), bytes), path);
  check_output(file.reset(), path);
}

}  // namespace

Json SliceWorker::write_slices(const Json& request) {
  PixelFile source(request.at("path").text());
  const auto frames = request.at("frames").get<std::vector<std::uint32_t>>();
  const bool is_array = request.contains("array");
  const Json& places = request.at(is_array ? "at" : "to");
  if (places.size() != frames.size()) return failure("the request has more frames than places");
  if (source.error().empty() && (source.header().rows != request.at("rows").get<std::uint32_t>() ||
                                 source.header().columns != request.at("columns").get<std::uint32_t>())) {
    return failure("it has changed since its header was read");
  }
  const os::Fd array = is_array ? open_output(request.at("array").text(), O_WRONLY) : os::Fd();
  Json bytes = Json::array(), errors = Json::array();
  std::vector<std::uint16_t> pixels;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    std::string error = source.read_frame(frames[i], pixels);
    std::uint64_t written = 0;
    if (error.empty() && is_array) {
      const auto raw = std::as_bytes(std::span(pixels));
      check_output(os::write_all_at(array.get(), raw, places[i].get<std::uint64_t>()), request.at("array").text());
      written = raw.size();
    } else if (error.empty()) {
      codec::Bytes file;
      const Result result = png_.encode_gray16(pixels.data(), source.header().columns, source.header().rows, file);
      if (!result.ok()) error = result.cause;
      if (result.ok()) write_new(places[i].text(), file);
      written = file.size();
    }
    bytes.push_back(written);
    errors.push_back(std::move(error));
  }
  return {{"bytes", std::move(bytes)}, {"errors", std::move(errors)}};
}

Json SliceWorker::answer(const Json& request) noexcept {
  try {
    const std::string what = request.at("do").text();
    if (what == "slices") return write_slices(request);
    if (what != "sync") return failure("there is no such request");
    const std::string& folder = request.at("folder").text();
    const os::Fd open = open_output(folder, O_RDONLY | O_DIRECTORY);
    check_output(os::sync_file_system(open.get()), folder);
    return Json::object();
  } catch (const OutputFailure& output) {
    return {{"stop", output.text}};
  } catch (const Error& error) {
    return failure(fmt::format("it cannot be read: {}", error.cause()));
  } catch (const std::bad_alloc&) {
    return failure("there is not enough memory to decode it");
  } catch (const std::exception& error) {
    return failure(error.what());
  }
}

int serve_slices(std::uint64_t memory_limit) {
  os::end_with_parent();
  if (memory_limit > 0) os::limit_address_space(memory_limit);
  std::ios::sync_with_stdio(false);
  SliceWorker worker;
  for (std::string line; std::getline(std::cin, line);) {
    const Json answer = worker.answer(Json::parse_or_null(line));
    std::cout << answer.dump() << '\n' << std::flush;
  }
  return 0;
}

}  // namespace stoker::dicom
