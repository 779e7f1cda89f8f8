#include "inspect_volume.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/codec/png_writer.h"
#include "stoker/dataset/listing.h"
#include "stoker/dataset/volume_box.h"
#include "stoker/dataset/volume_pack.h"
#include "stoker/dataset/volumes.h"
#include "stoker/os/file.h"
#include "stoker/os/read_file.h"
#include "stoker/report/svg.h"
#include "stoker/transform/voxels.h"

#include "interrupt.h"

namespace stoker::cli {
namespace {

using dataset::Extents;
using dataset::VolumeInfo;

constexpr int kWidest = 64, kTallest = 48;        // of the picture, in pixels: two of them are one character
constexpr int kPageEdge = 384;                    // of the picture in a page
constexpr std::uint64_t kMostLookedUp = 1 << 20;  // chunks
constexpr std::string_view kPageStart =
    "<!doctype html><html lang=\"en\"><!-- stoker inspect --><head><meta "
    "charset=\"utf-8\"><title>Volumes</title><style>"
    "body{font-family:sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "th{text-align:left;padding-right:1.5rem;font-weight:normal;color:#666}section{margin-bottom:3rem}"
    "img{margin-top:1rem;image-rendering:pixelated}.bad{color:#b00}</style></head><body>\n";
constexpr std::string_view kRamp = " .:-=+*#%@";  // dark to bright, without colour
constexpr int kGrays = 24, kFirstGray = 232;      // of the terminal's 256 colours

struct Picture {
  int width = 0, height = 0;
  std::vector<float> pixels;  // 0 to 1
};

std::string extents_text(const Extents& extents) {
  return fmt::format("{} x {} x {}", extents[0], extents[1], extents[2]);
}

// The middle slice, made smaller: each pixel is the mean of its elements, and the darkest and brightest hundredth are
// clipped.
Picture middle_slice(const dataset::Volume& volume, int most_columns, int most_rows) {
  const VolumeInfo& info = volume.info();
  const std::vector<std::byte> plane = dataset::read_plane(volume, info.extents[0] / 2);
  const auto rows = static_cast<std::uint32_t>(info.extents[1]), columns = static_cast<std::uint32_t>(info.extents[2]);
  std::vector<float> values(std::size_t{rows} * columns);
  const transform::VoxelPlane voxels{plane.data(), columns * size_of(info.dtype), rows, columns, 1, info.dtype, false};
  transform::write_plane(voxels, {.scale = info.slope, .offset = info.intercept}, {}, rows, columns, values.data(),
                         nullptr, false);
  Picture picture;
  const double scale =
      std::max({1.0, static_cast<double>(columns) / most_columns, static_cast<double>(rows) / most_rows});
  picture.width = std::max(1, static_cast<int>(columns / scale));
  picture.height = std::max(1, static_cast<int>(rows / scale));
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      const auto from_y = static_cast<std::uint32_t>(std::uint64_t{rows} * static_cast<unsigned>(y) /
                                                     static_cast<unsigned>(picture.height));
      const auto to_y =
          std::max(from_y + 1, static_cast<std::uint32_t>(std::uint64_t{rows} * static_cast<unsigned>(y + 1) /
                                                          static_cast<unsigned>(picture.height)));
      const auto from_x = static_cast<std::uint32_t>(std::uint64_t{columns} * static_cast<unsigned>(x) /
                                                     static_cast<unsigned>(picture.width));
      const auto to_x =
          std::max(from_x + 1, static_cast<std::uint32_t>(std::uint64_t{columns} * static_cast<unsigned>(x + 1) /
                                                          static_cast<unsigned>(picture.width)));
      double sum = 0;
      for (std::uint32_t i = from_y; i < to_y; ++i)
        for (std::uint32_t j = from_x; j < to_x; ++j) sum += values[std::size_t{i} * columns + j];
      const double mean = sum / (static_cast<double>(to_y - from_y) * (to_x - from_x));
      picture.pixels.push_back(std::isfinite(mean) ? static_cast<float>(mean) : 0);
    }
  }
  std::vector<float> sorted = picture.pixels;
  std::sort(sorted.begin(), sorted.end());
  const float low = sorted[sorted.size() / 100], high = sorted[sorted.size() - 1 - sorted.size() / 100];
  for (float& pixel : picture.pixels) pixel = high > low ? std::clamp((pixel - low) / (high - low), 0.0F, 1.0F) : 0;
  return picture;
}

std::string drawn(const Picture& picture, bool in_color) {
  std::string out;
  const auto pixel = [&](int x, int y) {
    return y < picture.height ? picture.pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(picture.width) +
                                               static_cast<std::size_t>(x)]
                              : 0.0F;
  };
  for (int y = 0; y < picture.height; y += 2) {
    out += "  ";
    std::string line;
    for (int x = 0; x < picture.width; ++x) {
      if (in_color) {
        const auto gray = [](float value) { return kFirstGray + static_cast<int>(std::lround(value * (kGrays - 1))); };
        line += fmt::format("\x1b[38;5;{};48;5;{}m\u2580", gray(pixel(x, y)), gray(pixel(x, y + 1)));
      } else {
        const float mean = (pixel(x, y) + pixel(x, std::min(y + 1, picture.height - 1))) / 2;
        line += kRamp[static_cast<std::size_t>(std::lround(mean * static_cast<float>(kRamp.size() - 1)))];
      }
    }
    if (in_color) {
      line += "\x1b[0m";
    } else {
      line.erase(line.find_last_not_of(' ') + 1);
    }
    out += line + "\n";
  }
  return out;
}

std::uint64_t bytes_of(const VolumeInfo& info) {
  return info.extents[0] * info.extents[1] * info.extents[2] * info.element_bytes();
}

// On disk. Where the chunks are files of their own they are looked up; 0: they are too many, or cannot be looked up.
std::uint64_t stored_bytes_of(const dataset::Volume& volume) {
  const VolumeInfo& info = volume.info();
  if (info.stored_bytes != 0 || volume.plain() || info.chunks() > kMostLookedUp) return info.stored_bytes;
  std::vector<char> text(storage::kLocationText);
  std::uint64_t sum = 0;
  for (std::uint64_t chunk = 0; chunk < info.chunks(); ++chunk) {
    if (chunk % 1024 == 0 && interrupted()) throw Error(ErrorKind::unavailable, "interrupted");
    sum += volume.locate_chunk(chunk, text).bytes;
  }
  return sum;
}

using Row = std::pair<std::string_view, std::string>;

std::vector<Row> rows_of(const dataset::Volume& volume) {
  const VolumeInfo& info = volume.info();
  std::vector<Row> rows;
  rows.emplace_back("shape", fmt::format("{} (z, y, x) {}{}", extents_text(info.extents), name(info.dtype),
                                         info.channels > 1 ? fmt::format(", {} channels", info.channels) : ""));
  const bool has_spacing = info.spacing[0] > 0 || info.spacing[1] > 0 || info.spacing[2] > 0;
  rows.emplace_back("spacing", has_spacing ? fmt::format("{:.4g} x {:.4g} x {:.4g} mm", info.spacing[0],
                                                         info.spacing[1], info.spacing[2])
                                           : std::string("not known"));
  if (info.slope != 1 || info.intercept != 0)
    rows.emplace_back("values", fmt::format("{} * element + {}", info.slope, info.intercept));
  const std::uint64_t bytes = bytes_of(info), stored = stored_bytes_of(volume);
  const bool is_inflated = volume.plain() && stored != 0 && stored < bytes;
  rows.emplace_back("chunks", is_inflated ? std::string("none: the whole file is inflated when it is opened")
                              : volume.plain()
                                  ? std::string("none: elements lie uncompressed, one after another")
                                  : fmt::format("{} of {}, {} each", format_count(info.chunks()),
                                                extents_text(info.chunk), format_bytes(info.chunk_bytes())));
  rows.emplace_back(
      "size", stored == 0 ? fmt::format("{} in memory", format_bytes(bytes))
                          : fmt::format("{} on disk, {} in memory: {:.2f} to 1", format_bytes(stored),
                                        format_bytes(bytes), static_cast<double>(bytes) / static_cast<double>(stored)));
  if (!info.note.empty()) rows.emplace_back("note", info.note);
  rows.emplace_back("slice", fmt::format("{} of {}", info.extents[0] / 2, info.extents[0]));
  return rows;
}

std::string to_text(const dataset::Volume& volume, const Terminal& terminal) {
  std::string out =
      fmt::format("{}: a volume, {}\n\n", terminal.paint(Paint::bold, printable(std::string(volume.name()))),
                  printable(volume.info().format));
  for (const auto& [label, text] : rows_of(volume)) out += labelled(terminal, label, 11, printable(text));
  out += drawn(middle_slice(volume, std::min(kWidest, std::max(8, terminal.width - 4)), kTallest),
               terminal.color && terminal.unicode);
  return out;
}

// ---- the page

std::string base64(codec::Bytes bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 3; ++i) word = word << 8 | (i < count ? static_cast<std::uint32_t>(bytes[at + i]) : 0);
    for (std::size_t i = 0; i < 4; ++i) out += i <= count ? kDigits[word >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

std::string image_of(const Picture& picture) {
  std::vector<std::uint16_t> pixels;
  for (const float pixel : picture.pixels) pixels.push_back(static_cast<std::uint16_t>(std::lround(pixel * 65535)));
  codec::PngWriter writer;
  codec::Bytes file;
  if (!writer
           .encode_gray16(pixels.data(), static_cast<std::uint32_t>(picture.width),
                          static_cast<std::uint32_t>(picture.height), file)
           .ok()) {
    throw Error(ErrorKind::unavailable, "no memory for the picture of a slice");
  }
  return fmt::format("<img src=\"data:image/png;base64,{}\" width=\"{}\" height=\"{}\" alt=\"the middle slice\">",
                     base64(file), picture.width, picture.height);
}

std::string to_html(const dataset::Volume& volume) {
  std::string out = fmt::format("<section><h2>{}</h2><p>{}</p><table>", report::escaped(volume.name()),
                                report::escaped(volume.info().format));
  for (const auto& [label, text] : rows_of(volume))
    out += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", label, report::escaped(text));
  return out + "</table>" + image_of(middle_slice(volume, kPageEdge, kPageEdge)) + "</section>\n";
}

// Written over only if it is such a page already.
void write_page(const std::string& path, const std::string& body) {
  if (os::exists(path) && !os::read_text(path).starts_with(kPageStart)) {
    throw Error(ErrorKind::usage, fmt::format("cannot write `{}`: something else is there", path), "name a new file");
  }
  os::write_file(path, std::string(kPageStart) + body + "</body></html>\n");
}

Json to_json(const dataset::Volume& volume) {
  const VolumeInfo& info = volume.info();
  const std::uint64_t stored = stored_bytes_of(volume);
  Json json = {{"address", std::string(volume.name())},
               {"format", info.format},
               {"dtype", std::string(name(info.dtype))},
               {"channels", info.channels},
               {"stored_bytes", stored == 0 ? Json() : Json(stored)},
               {"bytes", bytes_of(info)},
               {"slope", info.slope},
               {"intercept", info.intercept},
               {"is_plain", volume.plain().has_value()}};
  json["shape"] = Json::array();
  json["chunk"] = Json::array();
  json["spacing"] = Json::array();
  for (std::size_t axis = 0; axis < 3; ++axis) {
    json["shape"].push_back(info.extents[axis]);
    json["chunk"].push_back(info.chunk[axis]);
    json["spacing"].push_back(info.spacing[axis]);
  }
  if (!info.note.empty()) json["note"] = info.note;
  return json;
}

}  // namespace

bool is_volumes(const std::string& given) {
  std::string address = given;
  while (address.size() > 1 && address.ends_with('/')) address.pop_back();
  const std::string name = address.substr(address.rfind('/') + 1);
  for (const char* const extension : {".nii", ".nii.gz", ".tif", ".tiff", ".zarr"}) {
    if (ends_with_any_case(name, extension)) return true;
  }
  if (name == "volumes.csv" || dataset::find_volume_pack(address)) return true;
  for (const char* const file : {".zarray", ".zgroup", "zarr.json"}) {
    if (os::exists(address + "/" + file)) return true;
  }
  return false;
}

int inspect_volumes(const Face& face, const std::string& address, const std::string& html) {
  std::vector<std::string> names;
  if (const std::string csv = dataset::volumes_csv_of(address); !csv.empty()) {
    for (const dataset::VolumeAddress& volume : dataset::read_volumes_csv(csv)) {
      names.push_back(volume.image);
      if (!volume.mask.empty()) names.push_back(volume.mask);
    }
  } else {
    names.push_back(address);
  }
  Json json = {{"schema", "stoker.inspect/2"}, {"stoker_version", kVersion}};
  json["kind"] = "volumes";
  json["address"] = address;
  json["volumes"] = Json::array();
  json["bad_files"] = Json::array();
  std::string text, page;
  std::size_t bad = 0;
  for (const std::string& name : names) {
    if (interrupted()) throw Error(ErrorKind::unavailable, "interrupted");
    try {
      dataset::VolumeOptions options;
      options.cache_dir = dataset::listing_folder("");
      const std::unique_ptr<dataset::Volume> volume = dataset::open_volume(name, options);
      if (!html.empty()) page += to_html(*volume);
      if (!text.empty()) text += "\n";
      if (face.json) {
        json["volumes"].push_back(to_json(*volume));
      } else {
        text += to_text(*volume, face.out);
      }
    } catch (const Error& error) {
      if (names.size() == 1 || interrupted()) throw;
      ++bad;
      json["bad_files"].push_back({{"name", name}, {"cause", error.message()}});
      page += fmt::format("<p class=\"bad\">{}</p>\n", report::escaped(error.message()));
      text += fmt::format("{}{}\n", text.empty() ? "" : "\n", face.out.paint(Paint::red, printable(error.message())));
    }
  }
  if (!html.empty()) {
    write_page(html, page);
    json["html"] = html;
    text += fmt::format("\nwritten: {}\n", printable(html));
  }
  answer(face.json ? json.dump(2) + "\n" : text);
  return bad == 0 ? 0 : 1;
}

}  // namespace stoker::cli
