"""Makes the small pictures and sounds of this folder and prints the table of codec/golden_test.cc.

The expected values come from Pillow and soundfile, not from Stoker:
    pip install numpy pillow soundfile xxhash && python tests/formats/make.py
Files that exist are kept (they must stay readable for ever); the table is printed for all of them.
"""

import io
import pathlib
import subprocess
import tempfile

import numpy as np
import soundfile
import xxhash
from PIL import Image

FOLDER = pathlib.Path(__file__).parent
random = np.random.default_rng(7)


def waves(height, width, channels):
    """A smooth picture with some noise, so that every filter and coefficient has work."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [128 + 90 * np.sin(x / 5 + k) * np.cos(y / (4 + k)) + random.normal(0, 8, (height, width)) for k in range(channels)]
    return np.stack(planes, -1).clip(0, 255).astype(np.uint8)


def encoded(image, **options):
    out = io.BytesIO()
    image.save(out, **options)
    return out.getvalue()


def pictures():
    rgb = Image.fromarray(waves(21, 35, 3))
    gray = Image.fromarray(waves(21, 35, 1)[..., 0])
    cmyk = Image.frombytes("CMYK", (35, 21), waves(21, 35, 4).tobytes())
    rgba = Image.frombytes("RGBA", (35, 21), waves(21, 35, 4).tobytes())
    palette = rgb.quantize(20)
    yield "yuv420.jpg", encoded(rgb, format="JPEG", quality=80)
    yield "yuv422.jpg", encoded(rgb, format="JPEG", quality=80, subsampling="4:2:2")
    yield "yuv444-restart.jpg", encoded(rgb, format="JPEG", quality=80, subsampling="4:4:4", restart_marker_rows=1)
    yield "progressive.jpg", encoded(rgb, format="JPEG", quality=80, progressive=True)
    yield "rgb.jpg", encoded(rgb, format="JPEG", quality=80, keep_rgb=True)
    yield "gray.jpg", encoded(gray, format="JPEG", quality=80)
    yield "cmyk.jpg", encoded(cmyk, format="JPEG", quality=80)
    yield "rgb.png", encoded(rgb, format="PNG")
    yield "rgba.png", encoded(rgba, format="PNG")
    yield "gray-alpha.png", encoded(rgba.convert("LA"), format="PNG")
    yield "bilevel.png", encoded(gray.convert("1"), format="PNG")
    yield "palette.png", encoded(palette, format="PNG")
    yield "palette-alpha.png", encoded(palette, format="PNG", transparency=bytes([0, 90, 200]))
    yield "lossy.webp", encoded(rgb, format="WEBP", quality=80)
    yield "lossless-alpha.webp", encoded(rgba, format="WEBP", lossless=True, exact=True)
    yield "gray16.png", encoded(Image.fromarray(random.integers(0, 700, (9, 11), dtype=np.uint16)), format="PNG")


def sounds():
    samples = random.uniform(-1, 1, (50, 2))
    for name, container, kind in [
        ("pcm-u8", "WAV", "PCM_U8"), ("pcm-s16", "WAV", "PCM_16"), ("pcm-s24", "WAVEX", "PCM_24"),
        ("pcm-s32", "RF64", "PCM_32"), ("float32", "WAV", "FLOAT"), ("float64", "WAVEX", "DOUBLE")]:
        out = io.BytesIO()
        soundfile.write(out, samples, 16000, subtype=kind, format=container)
        yield f"{name}.wav", out.getvalue()
    for name, kind, shape, options in [
        ("s16-stereo", "PCM_16", (700, 2), []), ("s24-blocks", "PCM_24", (250, 1), ["--blocksize=97", "-e"]),
        ("s8-fixed", "PCM_S8", (400, 2), ["--blocksize=192", "-0"])]:
        yield f"{name}.flac", flac(music(*shape), kind, options)


def music(frames, channels):
    """Tones whose channels have much in common, a silence, and a stretch of noise: every kind of subframe has work."""
    time = np.arange(frames)[:, None] / 16000
    sound = 0.5 * np.sin(2 * np.pi * 440 * time) + 0.2 * np.sin(2 * np.pi * (700 + np.arange(channels)) * time)
    sound[frames // 2:frames * 2 // 3] = 0
    sound[-100:] = random.uniform(-1, 1, (100, channels))
    return sound + random.normal(0, 1e-3, sound.shape) * (np.arange(frames) < frames // 2)[:, None]


def flac(samples, kind, options):
    """By the program of libFLAC (apt-get install flac), which takes the size of blocks; soundfile does not."""
    with tempfile.TemporaryDirectory() as folder:
        wave, coded = pathlib.Path(folder, "a.wav"), pathlib.Path(folder, "a.flac")
        soundfile.write(wave, samples, 16000, subtype=kind.replace("S8", "U8"))
        subprocess.run(["flac", "--silent", "--no-padding", *options, "-o", coded, wave], check=True)
        return coded.read_bytes()


def digest(array):
    return f"0x{xxhash.xxh3_64_intdigest(np.ascontiguousarray(array).tobytes()):016X}"


def kept(path, content):
    if not path.exists():
        path.write_bytes(content)
    return path


for name, content in pictures():
    path = kept(FOLDER / name, content)
    image = Image.open(path)
    keep = image
    if image.mode == "P":
        keep = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif image.mode in ("1", "I;16"):
        keep = image.convert("L")
    hashes = [digest(np.asarray(i)) for i in (image.convert("RGB"), image.convert("L"), keep)]
    print(f'    {{"{name}", {image.width}, {image.height}, {np.asarray(keep)[0, 0].size}, {", ".join(hashes)}}},')
for name, content in sounds():
    path = kept(FOLDER / name, content)
    planar = soundfile.read(path, dtype="float32", always_2d=True)[0].T
    print(f'    {{"{name}", {planar.shape[0]}, {planar.shape[1]}, {digest(planar)}}},')
