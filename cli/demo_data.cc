#include "demo_data.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <numbers>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <jpeglib.h>

#include "stoker/base/error.h"
#include "stoker/base/random.h"
#include "stoker/os/cpu.h"
#include "stoker/os/file.h"

#include "files.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSeed = 42;
constexpr std::string_view kMarker = ".stoker-demo";  // written last: the folder is whole
constexpr std::string_view kMarkerText = "made by stoker demo, version 1\n";

using Colour = std::array<float, 3>;
struct Scene {
  std::string_view name;
  std::array<Colour, 4> palette;  // from low to high
  double roughness;
};
constexpr std::array<Scene, 8> kScenes = {{
    {"clouds", {{{70, 120, 190}, {130, 170, 220}, {220, 228, 238}, {252, 252, 255}}}, 0.45},
    {"dunes", {{{110, 70, 35}, {190, 140, 85}, {225, 185, 125}, {250, 225, 180}}}, 0.40},
    {"forest", {{{15, 28, 14}, {40, 72, 30}, {86, 120, 48}, {160, 175, 95}}}, 0.62},
    {"lava", {{{18, 12, 14}, {70, 20, 14}, {210, 70, 18}, {255, 215, 110}}}, 0.55},
    {"marble", {{{90, 90, 98}, {170, 168, 172}, {215, 212, 210}, {245, 244, 240}}}, 0.52},
    {"reef", {{{8, 52, 84}, {20, 120, 140}, {215, 120, 96}, {250, 210, 150}}}, 0.58},
    {"sea", {{{6, 30, 60}, {14, 70, 110}, {60, 140, 165}, {210, 235, 240}}}, 0.50},
    {"snow", {{{120, 135, 165}, {190, 202, 222}, {232, 238, 246}, {255, 255, 255}}}, 0.48},
}};
constexpr std::uint64_t kImagesPerScene = 40;
constexpr std::array<std::string_view, 4> kVoices = {"chirp", "hum", "noise", "pluck"};
constexpr std::uint64_t kClipsPerVoice = 60;
static_assert(kScenes.size() * kImagesPerScene + kVoices.size() * kClipsPerVoice == kDemoFiles);

// Fractal value noise on a torus, in [0, 1]: the terrain that a scene's images are cut from.
class Terrain {
 public:
  static constexpr std::uint32_t kSide = 512;

  Terrain(std::uint64_t seed, double roughness) : heights_(std::size_t{kSide} * kSide) {
    double weight = 1, total = 0;
    std::vector<float> lattice;
    for (std::uint32_t cells = 4; cells <= 256; cells *= 2) {
      Random random(seed, 0, cells);
      lattice.resize(std::size_t{cells} * cells);
      for (float& value : lattice) value = static_cast<float>(random.uniform());
      const std::uint32_t step = kSide / cells;
      for (std::uint32_t y = 0; y < kSide; ++y) {
        const float fy = smooth(static_cast<float>(y % step) / static_cast<float>(step));
        const std::size_t row = std::size_t{y / step} * cells, below = std::size_t{(y / step + 1) % cells} * cells;
        for (std::uint32_t x = 0; x < kSide; ++x) {
          const float fx = smooth(static_cast<float>(x % step) / static_cast<float>(step));
          const std::uint32_t left = x / step, right = (left + 1) % cells;
          const float top = std::lerp(lattice[row + left], lattice[row + right], fx);
          const float bottom = std::lerp(lattice[below + left], lattice[below + right], fx);
          heights_[std::size_t{y} * kSide + x] += static_cast<float>(weight) * std::lerp(top, bottom, fy);
        }
      }
      total += weight;
      weight *= roughness;
    }
    for (float& height : heights_)
      height = std::clamp((height / static_cast<float>(total) - 0.5f) * 1.9f + 0.5f, 0.f, 1.f);
  }

  float at(float x, float y) const {
    const auto ix = static_cast<std::uint32_t>(x), iy = static_cast<std::uint32_t>(y);
    const float fx = x - static_cast<float>(ix), fy = y - static_cast<float>(iy);
    const std::uint32_t x0 = ix % kSide, x1 = (ix + 1) % kSide;
    const std::size_t y0 = std::size_t{iy % kSide} * kSide, y1 = std::size_t{(iy + 1) % kSide} * kSide;
    const float top = heights_[y0 + x0] + (heights_[y0 + x1] - heights_[y0 + x0]) * fx;
    const float bottom = heights_[y1 + x0] + (heights_[y1 + x1] - heights_[y1 + x0]) * fx;
    return top + (bottom - top) * fy;
  }

 private:
  static float smooth(float t) { return t * t * (3 - 2 * t); }
  std::vector<float> heights_;
};

struct Image {
  std::uint32_t width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
};

// A view of the terrain lit from the upper left, with vignetting and the grain of a sensor.
Image paint(const Scene& scene, const Terrain& terrain, Random& random) {
  Image image;
  constexpr std::array<std::array<std::uint32_t, 2>, 4> aspects = {{{4, 3}, {3, 4}, {3, 2}, {1, 1}}};
  const auto& aspect = aspects[random.below(4)];
  const double longest = 240 * std::exp(random.uniform(0, std::log(900.0 / 240)));
  const double unit = longest / std::max(aspect[0], aspect[1]);
  image.width = static_cast<std::uint32_t>(unit * aspect[0]);
  image.height = static_cast<std::uint32_t>(unit * aspect[1]);
  image.rgb.resize(std::size_t{3} * image.width * image.height);
  const auto scale = static_cast<float>(random.uniform(0.25, 1.2) * 300 / longest);
  const auto x0 = static_cast<float>(random.uniform(0, 512)), y0 = static_cast<float>(random.uniform(0, 512));
  const auto gain = static_cast<float>(random.uniform(0.8, 1.15)),
             warm = static_cast<float>(random.uniform(-0.06, 0.06));
  const auto grain = static_cast<float>(random.uniform(3, 9));
  std::uint32_t noise = random.next() | 1;
  std::uint8_t* out = image.rgb.data();
  for (std::uint32_t y = 0; y < image.height; ++y) {
    const float v = static_cast<float>(y) / static_cast<float>(image.height) - 0.5f;
    for (std::uint32_t x = 0; x < image.width; ++x) {
      const float u = static_cast<float>(x) / static_cast<float>(image.width) - 0.5f;
      const float tx = x0 + static_cast<float>(x) * scale, ty = y0 + static_cast<float>(y) * scale;
      const float h = terrain.at(tx, ty);
      const float slope = (h - terrain.at(tx + 1.5f, ty + 1.5f)) * 2.2f;
      const float light = gain * (1 + slope) * (1.08f - 0.6f * (u * u + v * v));
      const float position = h * 2.999f;
      const auto k = static_cast<std::size_t>(position);
      const float f = position - static_cast<float>(k);
      noise ^= noise << 13, noise ^= noise >> 17, noise ^= noise << 5;
      const float speck = (static_cast<float>(noise & 255) + static_cast<float>(noise >> 8 & 255) - 255) / 255 * grain;
      for (std::size_t c = 0; c < 3; ++c) {
        const float base = scene.palette[k][c] + (scene.palette[k + 1][c] - scene.palette[k][c]) * f;
        const float tint = c == 0 ? 1 + warm : c == 2 ? 1 - warm : 1;
        *out++ = static_cast<std::uint8_t>(std::clamp(base * light * tint + speck, 0.f, 255.f));
      }
    }
  }
  return image;
}

struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf back;
};

void on_jpeg_error(j_common_ptr info) {
  std::longjmp(reinterpret_cast<JpegErrors*>(info->err)->back, 1);
}

// Nothing with a destructor lives in this frame: libjpeg leaves it by longjmp.
bool compress(const Image& image, int quality, unsigned char** data, unsigned long* size) {
  jpeg_compress_struct info;
  JpegErrors errors;
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = on_jpeg_error;
  if (setjmp(errors.back)) {
    jpeg_destroy_compress(&info);
    return false;
  }
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, data, size);
  info.image_width = image.width;
  info.image_height = image.height;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(image.rgb.data() + std::size_t{3} * image.width * info.next_scanline);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

std::string jpeg_of(const Image& image, int quality) {
  unsigned char* data = nullptr;
  unsigned long size = 0;
  const bool ok = compress(image, quality, &data, &size);
  const std::unique_ptr<unsigned char, decltype(&std::free)> owner(data, &std::free);
  if (!ok) throw Error(ErrorKind::internal, "cannot encode a demo image: libjpeg refused");
  return {reinterpret_cast<const char*>(data), size};
}

std::string audio_of(std::string_view voice, Random& random) {
  constexpr std::uint32_t kRate = 16000;
  const auto frames = static_cast<std::uint32_t>(random.uniform(0.5, 1.5) * kRate);
  const double pitch = 110 * std::exp2(random.uniform(0, 3)), decay = random.uniform(3, 9);
  std::string wav(44 + std::size_t{2} * frames, '\0');
  const auto put = [&](std::size_t at, std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) wav[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
  };
  std::memcpy(wav.data(), "RIFF", 4);
  put(4, 36 + 2 * frames, 4);
  std::memcpy(wav.data() + 8, "WAVEfmt ", 8);
  put(16, 16, 4), put(20, 1, 2), put(22, 1, 2), put(24, kRate, 4), put(28, 2 * kRate, 4), put(32, 2, 2), put(34, 16, 2);
  std::memcpy(wav.data() + 36, "data", 4);
  put(40, 2 * frames, 4);
  for (std::uint32_t i = 0; i < frames; ++i) {
    const double t = static_cast<double>(i) / kRate, turn = 2 * std::numbers::pi * pitch * t;
    double value = 0;
    if (voice == "chirp") {
      value = 0.5 * std::sin(turn * (1 + t));
    } else if (voice == "hum") {
      value = 0.3 * (std::sin(turn) + 0.5 * std::sin(2 * turn) + 0.25 * std::sin(3 * turn));
    } else if (voice == "pluck") {
      value = 0.6 * std::exp(-decay * t) * (std::sin(turn) + 0.4 * std::sin(2.01 * turn));
    }
    value += (voice == "noise" ? 0.4 : 0.01) * random.uniform(-1, 1);
    put(44 + std::size_t{2} * i,
        static_cast<std::uint32_t>(static_cast<std::int32_t>(std::clamp(value, -1.0, 1.0) * 32767)), 2);
  }
  return wav;
}

void write_new(const std::string& path, const std::string& bytes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wbx"), &std::fclose);
  if (!file || std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size() || std::fflush(file.get()) != 0) {
    throw system_error(errno, "write", path);
  }
}

void make_folder(const std::string& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) throw system_error(code.value(), "make the folder", path);
}

// Runs job(0) .. job(count - 1) on every core; the first failure is thrown.
template <typename Job>
void on_every_core(std::uint64_t count, const Job& job) {
  std::atomic<std::uint64_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  std::vector<std::thread> crew;
  for (int i = 0; i < os::effective_cores().whole(); ++i) {
    crew.emplace_back([&] {
      try {
        for (std::uint64_t at = next++; at < count; at = next++) job(at);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    });
  }
  for (std::thread& thread : crew) thread.join();
  if (failure) std::rethrow_exception(failure);
}

void measure_folder(const std::string& folder, std::uint64_t& count, std::uint64_t& bytes) {
  count = bytes = 0;
  std::error_code code;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, code)) {
    if (entry.is_regular_file()) ++count, bytes += entry.file_size();
  }
  if (code) throw system_error(code.value(), "look into", folder);
}

}  // namespace

DemoData make_demo_data(const std::string& folder, const std::function<bool(std::uint64_t)>& progress) {
  DemoData data;
  data.images = folder + "/images";
  data.audio = folder + "/audio";
  const std::string marker = fmt::format("{}/{}", folder, kMarker);
  make_folder(folder);
  if (exists(marker) && read_text(marker) == kMarkerText) {
    data.was_there = true;
  } else {
    std::error_code code;
    const bool is_empty = fs::is_empty(folder, code);
    if (code) throw system_error(code.value(), "look into", folder);
    if (!is_empty) {
      throw Error(ErrorKind::usage, fmt::format("cannot make the demo data in `{}`: the folder is not empty", folder),
                  "name a folder that does not exist yet: `stoker demo --dir demo-data`");
    }
    for (const Scene& scene : kScenes) make_folder(fmt::format("{}/{}", data.images, scene.name));
    for (const std::string_view voice : kVoices) make_folder(fmt::format("{}/{}", data.audio, voice));
    std::vector<std::unique_ptr<Terrain>> terrains(kScenes.size());
    on_every_core(kScenes.size(), [&](std::uint64_t i) {
      terrains[i] = std::make_unique<Terrain>(mix(kSeed, i), kScenes[i].roughness);
    });
    std::atomic<std::uint64_t> done{0};
    on_every_core(kDemoFiles, [&](std::uint64_t at) {
      Random random(kSeed, 0, at);
      const std::uint64_t images = kScenes.size() * kImagesPerScene;
      if (at < images) {
        const std::size_t scene = at / kImagesPerScene;
        const Image image = paint(kScenes[scene], *terrains[scene], random);
        write_new(fmt::format("{}/{}/{:03}.jpg", data.images, kScenes[scene].name, at % kImagesPerScene),
                  jpeg_of(image, static_cast<int>(80 + random.below(16))));
      } else {
        const std::size_t voice = (at - images) / kClipsPerVoice;
        write_new(fmt::format("{}/{}/{:03}.wav", data.audio, kVoices[voice], (at - images) % kClipsPerVoice),
                  audio_of(kVoices[voice], random));
      }
      if (!progress(++done)) throw Error(ErrorKind::unavailable, "interrupted");
    });
    os::write_file(marker, kMarkerText);
  }
  measure_folder(data.images, data.image_count, data.image_bytes);
  measure_folder(data.audio, data.audio_count, data.audio_bytes);
  return data;
}

}  // namespace stoker::cli
