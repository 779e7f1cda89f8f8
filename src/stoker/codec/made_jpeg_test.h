// JPEG files for tests, of painted scenes, encoded by libjpeg-turbo.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>

#include "stoker/base/random.h"
#include "stoker/codec/damage_test.h"

namespace stoker::codec::made {

struct Coding {
  J_COLOR_SPACE stored = JCS_YCbCr;
  int h_sampling = 1, v_sampling = 1;  // of the first component; the others have 1
  int quality = 90;
  bool optimized = false, progressive = false, arithmetic = false;
  unsigned restart_interval = 0;
};

enum class Scene { noise, smooth, extreme };

inline std::vector<std::uint8_t> paint(std::uint32_t width, std::uint32_t height, Scene scene) {
  Random random(width, height, 3);
  std::vector<std::uint8_t> pixels;
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      for (std::uint32_t c = 0; c < 3; ++c) {
        const std::uint32_t smooth = (x * (3 + c) + y * (5 - c)) / 4 + (x / 9 + y / 7) % 2 * 40;
        const std::uint32_t value = scene == Scene::noise    ? random.below(256)
                                    : scene == Scene::smooth ? smooth + random.below(4)
                                                             : random.below(2) * 255;
        pixels.push_back(static_cast<std::uint8_t>(value));
      }
    }
  }
  return pixels;
}

inline File encode(std::uint32_t width, std::uint32_t height, Scene scene, const Coding& coding) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &out, &size);
  jpeg.image_width = width;
  jpeg.image_height = height;
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_colorspace(&jpeg, coding.stored);
  jpeg_set_quality(&jpeg, coding.quality, TRUE);
  jpeg.comp_info[0].h_samp_factor = coding.h_sampling;
  jpeg.comp_info[0].v_samp_factor = coding.v_sampling;
  jpeg.restart_interval = coding.restart_interval;
  jpeg.optimize_coding = coding.optimized ? TRUE : FALSE;
  jpeg.arith_code = coding.arithmetic ? TRUE : FALSE;
  if (coding.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<std::uint8_t> pixels = paint(width, height, scene);
  while (jpeg.next_scanline < height) {
    JSAMPROW row = pixels.data() + std::size_t{jpeg.next_scanline} * width * 3;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  File file;
  file.bytes(Bytes(reinterpret_cast<const std::byte*>(out), size));
  jpeg_destroy_compress(&jpeg);
  std::free(out);
  return file;
}

}  // namespace stoker::codec::made
