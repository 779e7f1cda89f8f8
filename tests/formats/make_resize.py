"""Writes src/stoker/transform/golden.inc: what Pillow 13, torchvision's formulas and torchaudio's resampling formula give.

    python tests/formats/make_resize.py > src/stoker/transform/golden.inc      (needs pillow >= 13 and numpy)

Inputs are made by s <- (1664525 s + 1013904223) mod 2^32, starting with s = seed:
  8 bits: s >> 24;  16 bits: s >> 16;  float32: (s >> 8) / 2^24;  sound: (s >> 8) / 2^23 - 1.
Rows are interleaved pixels. Outputs are named by zlib's crc32 of their little-endian bytes.
"""

import math
import zlib

import numpy as np
import PIL
from PIL import Image

assert int(PIL.__version__.split(".")[0]) >= 13, "earlier Pillows order the passes differently"
FILTERS = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
}
MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def numbers(seed, count):
    out = np.empty(count, np.uint32)
    for i in range(count):
        seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
        out[i] = seed
    return out


def picture(seed, width, height, channels):
    data = (numbers(seed, width * height * channels) >> 24).astype(np.uint8)
    return Image.frombytes(MODES[channels], (width, height), data.tobytes())


def floats(seed, width, height):
    data = (numbers(seed, width * height) >> 8).astype(np.float32) / np.float32(2**24)
    return Image.fromarray(data.reshape(height, width))


def crc(array):
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


def resized(image, crop, size, name):
    x, y, w, h = crop
    return image.crop((x, y, x + w, y + h)).resize(size, FILTERS[name])


def shorter(image, side, name="bilinear"):
    w, h = image.size
    short, long = (w, h) if w <= h else (h, w)
    other = int(side * long / short)
    return image.resize((side, other) if w <= h else (other, side), FILTERS[name])


def center(image, height, width):
    w, h = image.size
    top, left = int(round((h - height) / 2.0)), int(round((w - width) / 2.0))
    return image.crop((left, top, left + width, top + height))


def flipped(image):
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def planar(image):
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def normalized(image, mean, std):
    x = planar(image).astype(np.float32) / np.float32(255)
    mean = np.array(mean, np.float32).reshape(-1, 1, 1)
    return (x - mean) / np.array(std, np.float32).reshape(-1, 1, 1)


def bfloat16(array):
    bits = array.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def resampled(x, old, new):
    """torchaudio.functional.resample with its defaults, in double precision."""
    common = math.gcd(old, new)
    old, new = old // common, new // common
    base = min(old, new) * 0.99
    width = math.ceil(6 * old / base)
    t = np.arange(0, -new, -1)[:, None] / new + np.arange(-width, width + old)[None, :] / old
    t = np.clip(t * base, -6, 6)
    window = np.cos(t * math.pi / 6 / 2) ** 2
    kernel = np.sinc(t) * window * base / old
    padded = np.pad(x.astype(np.float64), (width, width + old))
    turns = (len(padded) - kernel.shape[1]) // old + 1
    rows = [kernel @ padded[q * old : q * old + kernel.shape[1]] for q in range(turns)]
    return np.concatenate(rows)[: math.ceil(new * len(x) / old)]


IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])

print("// Made by tests/formats/make_resize.py; do not edit.")
print("constexpr GoldenResize kResizes[] = {")
print("    // float32, seed, width, height, channels, crop, to width, to height, filter, crc32")
seed = 1
for channels in (1, 2, 3, 4, 0):  # 0: one channel of float32
    for name in FILTERS:
        for width, height, crop, size in (
            (97, 61, (0, 0, 97, 61), (32, 32)),
            (97, 61, (10, 5, 30, 41), (64, 48)),  # grows
            (40, 130, (1, 2, 38, 127), (37, 21)),  # columns first
            (130, 40, (3, 1, 125, 38), (20, 38)),  # rows alone
            (33, 57, (2, 3, 31, 50), (31, 20)),  # columns alone
            (20, 20, (4, 4, 9, 9), (9, 9)),  # nothing
            (3, 2, (1, 0, 1, 2), (40, 35)),
        ):
            seed += 1
            image = floats(seed, width, height) if channels == 0 else picture(seed, width, height, channels)
            out = np.asarray(resized(image, crop, size, name))
            print(
                f"    {{{str(channels == 0).lower()}, {seed}, {width}, {height}, {channels or 1},"
                f" {{{crop[0]}, {crop[1]}, {crop[2]}, {crop[3]}}}, {size[0]}, {size[1]}, Filter::{name}, {crc(out):#010x}}},"
            )
print("};\n")

print("constexpr GoldenPlan kPlans[] = {")
print("    // text, seed, width, height, channels, dtype, crc32 of the CHW view")
rgb = picture(7, 75, 52, 3)
tall = picture(8, 41, 90, 3)
gray = picture(9, 64, 48, 1)


def plan(text, s, image, channels, dtype, out):
    print(f'    {{"{text}", {s}, {image.size[0]}, {image.size[1]}, {channels}, DType::{dtype}, {crc(out):#010x}}},')


plan("", 7, rgb, 3, "u8", planar(rgb))
plan("resize:40,centercrop:32", 7, rgb, 3, "u8", planar(center(shorter(rgb, 40), 32, 32)))
plan("resize:40,centercrop:33x31", 8, tall, 3, "u8", planar(center(shorter(tall, 40), 33, 31)))
plan("centercrop:21x30,resize:64x32", 7, rgb, 3, "u8", planar(center(rgb, 21, 30).resize((32, 64), FILTERS["bilinear"])))
plan("resize:40,flip:1,centercrop:33", 7, rgb, 3, "u8", planar(center(flipped(shorter(rgb, 40)), 33, 33)))
plan(
    "flip:1,resize:50x30:filter=bicubic,centercrop:29",
    8, tall, 3, "u8", planar(center(flipped(tall).resize((30, 50), FILTERS["bicubic"]), 29, 29)),
)
plan(
    "resize:48:filter=box,centercrop:40,resize:20x24:filter=nearest",
    7, rgb, 3, "u8", planar(center(shorter(rgb, 48, "box"), 40, 40).resize((24, 20), FILTERS["nearest"])),
)
norm = normalized(center(shorter(rgb, 40), 32, 32), *IMAGENET)
plan("resize:40,centercrop:32,normalize:imagenet", 7, rgb, 3, "f32", norm)
plan("resize:40,centercrop:32,tofloat,normalize:imagenet", 7, rgb, 3, "f32", norm)
plan("resize:40,centercrop:32,normalize:imagenet", 7, rgb, 3, "f16", norm.astype(np.float16))
plan("resize:40,centercrop:32,normalize:imagenet", 7, rgb, 3, "bf16", bfloat16(norm))
plan("tofloat", 9, gray, 1, "f32", planar(gray).astype(np.float32) / np.float32(255))
plan("", 9, gray, 1, "f32", planar(gray).astype(np.float32))
print("};\n")

deep = (numbers(11, 50 * 44) >> 16).astype(np.float32).reshape(44, 50)
low = np.float32(-300 - 1400 / 2 + 32768)
scale = np.float32(1 / 1400)
window = np.clip((deep - low) * scale, np.float32(0), np.float32(1))


def deep_plan(text, out):
    flat = np.asarray(out).reshape(-1)
    values = ", ".join(f"{{{p}, {flat[p]:.9g}}}" for p in range(0, flat.size, 37))
    print(f'    {{"{text}", {{{values}}}}},')


print("constexpr GoldenDeep kDeepPlans[] = {  // 16 bits, 50 x 44, one channel, seed 11: {place, value} of some pixels")
deep_plan("window:level=-300:width=1400:offset=32768,resize:20x24", Image.fromarray(window).resize((24, 20), FILTERS["bilinear"]))
last = np.asarray(Image.fromarray(deep).resize((24, 20), FILTERS["bicubic"]))
last = np.clip((last - np.float32(-20000 + 32768)) * np.float32(1 / 40000), np.float32(0), np.float32(1))
deep_plan("resize:20x24:filter=bicubic,window:level=0:width=40000:offset=32768,normalize:0.25/0.5",
          (last - np.float32(0.25)) / np.float32(0.5))
deep_plan("resize:20x24,tofloat", Image.fromarray(deep / np.float32(65535)).resize((24, 20), FILTERS["bilinear"]))
print("};\n")

print("constexpr GoldenAudio kAudio[] = {  // seed, frames, from hz, to hz, frames out, {place, value} of five of them")
for s, frames, old, new in ((21, 500, 44100, 16000), (22, 300, 8000, 16000), (23, 400, 48000, 44100), (24, 5, 16000, 11025)):
    x = (numbers(s, frames) >> 8).astype(np.float64) / 2**23 - 1
    y = resampled(x, old, new)
    picks = [0, 1, len(y) // 3, len(y) // 2, len(y) - 1]
    values = ", ".join(f"{{{p}, {y[p]:.9f}F}}" for p in picks)
    print(f"    {{{s}, {frames}, {old}, {new}, {len(y)}, {{{values}}}}},")
print("};")
