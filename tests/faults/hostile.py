"""Data sets for the tests of memory: ordinary ones, and files that lie about their size or are far larger than they look.

Each function writes into an empty folder and returns the address and the options of a loader. ``KINDS`` names them all.
"""

from __future__ import annotations

import io
import pathlib
import struct
import tarfile
import zlib

import numpy
from PIL import Image

KINDS = {}


def kind(function):
    KINDS[function.__name__] = function
    return function


# ---- files

def picture(seed: int, width: int, height: int) -> Image.Image:
    """Smooth colours with some noise, as photos have."""
    random = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width].astype(numpy.float32)
    base = numpy.stack([127 + 120 * numpy.sin(x / 90 + seed), 127 + 120 * numpy.cos(y / 70 + seed), (x + y) / 9 % 256], -1)
    base += random.integers(-8, 8, (height, width, 1))
    return Image.fromarray(numpy.clip(base, 0, 255).astype(numpy.uint8))


def jpeg(seed: int, width: int, height: int, **options) -> bytes:
    out = io.BytesIO()
    picture(seed, width, height).save(out, "jpeg", **{"quality": 85, **options})
    return out.getvalue()


def jpeg_claiming(content: bytes, width: int, height: int) -> bytes:
    """The same file with another size in its header."""
    for marker in (b"\xff\xc0", b"\xff\xc2"):
        at = content.find(marker)
        if at >= 0:
            return content[:at + 5] + struct.pack(">HH", height, width) + content[at + 9:]
    raise ValueError("no frame header")


def numpy_file(array: numpy.ndarray) -> bytes:
    out = io.BytesIO()
    numpy.save(out, array)
    return out.getvalue()


def png_of_zeros(width: int, height: int, rows: int, color: int = 2, depth: int = 8) -> bytes:
    """A black picture of width x height, of which ``rows`` rows are there."""
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    squeezed = zlib.compressobj(1)
    row = bytes(1 + (width * samples * depth + 7) // 8)
    data = b"".join(squeezed.compress(row) for _ in range(rows)) + squeezed.flush()
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
            + chunk(b"IDAT", data) + chunk(b"IEND", b""))


def npy_header(shape: tuple, dtype: str = "|u1") -> bytes:
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def npz_of(head: bytes, zeros: int, claimed: int | None = None) -> bytes:
    """A deflated member of ``head`` and so many zeros; its directory claims ``claimed`` bytes. Far too many have a wrong CRC."""
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = squeezed.compress(head) + squeezed.flush(zlib.Z_FULL_FLUSH)
    # A full flush ends at a byte and forgets what came before: the same zeros again are the same bytes again.
    whole = squeezed.compress(bytes(1 << 20)) + squeezed.flush(zlib.Z_FULL_FLUSH)
    data = first + whole * (zeros >> 20) + squeezed.compress(bytes(zeros & (1 << 20) - 1)) + squeezed.flush()
    sum_ = zlib.crc32(bytes(zeros), zlib.crc32(head)) if zeros <= 100_000_000 else 0
    size, name = len(head) + zeros if claimed is None else claimed, b"arr_0.npy"
    local = struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, 8, 0, 0, sum_, len(data), size, len(name), 0) + name + data
    entry = struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 8, 0, 0, sum_, len(data), size, len(name), 0, 0, 0, 0, 0, 0) + name
    return local + entry + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 1, 1, len(entry), len(local), 0)


def wav(frames: int, rate: int = 8000, channels: int = 1, claimed: int | None = None) -> bytes:
    data = numpy.resize(numpy.arange(-1000, 1000, dtype="<i2"), frames * channels).tobytes()
    size = len(data) if claimed is None else claimed
    return (b"RIFF" + struct.pack("<I", min(36 + size, 0xFFFFFFFF)) + b"WAVEfmt "
            + struct.pack("<IHHIIHH", 16, 1, channels, rate, rate * 2 * channels, 2 * channels, 16) + b"data" + struct.pack("<I", size) + data)


def write(folder: pathlib.Path, name: str, content: bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def write_tar(path: pathlib.Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


# ---- data sets of ordinary files

@kind
def small_photos(folder):
    for number in range(16):
        write(folder, f"{number:02}.jpg", jpeg(number, 500, 400))
    return folder, {"transform": "rrc:224", "batch_size": 32, "inflate": 30}


@kind
def small_photos_as_float(folder):
    return folder, {**small_photos(folder)[1], "transform": "rrc:224,flip,normalize:imagenet", "batch_size": 16}


@kind
def large_photos(folder):
    for number in range(6):
        write(folder, f"{number}.jpg", jpeg(number, 4000 - 300 * number, 3000 - 200 * number))
    return folder, {"transform": "rrc:224", "batch_size": 16, "inflate": 8}


@kind
def large_photos_whole(folder):
    return folder, {**large_photos(folder)[1], "transform": "resize:224x224", "batch_size": 8, "inflate": 4}


@kind
def large_photos_fast(folder):
    return folder, {**large_photos(folder)[1], "decode": "fast"}


@kind
def progressive_photos(folder):
    for number in range(6):
        write(folder, f"{number}.jpg", jpeg(number, 3000 - 400 * number, 2200 - 250 * number, progressive=True))
    return folder, {"transform": "resize:224x224", "batch_size": 8, "inflate": 4}


@kind
def deep_pngs(folder):
    for number in range(4):
        random = numpy.random.default_rng(number)
        Image.fromarray(random.integers(0, 65535, (900, 900), numpy.uint16)).save(folder / f"{number}.png")
    return folder, {"transform": "window:-600:1500,resize:256x256", "batch_size": 8, "inflate": 10, "color": "keep"}


@kind
def small_sounds(folder):
    for number in range(400):
        write(folder, f"{number % 7}/{number:03}.wav", wav(2000 + 37 * (number % 50)))
    return folder, {"batch_size": 256, "inflate": 20}


@kind
def small_sounds_of_one_length(folder):
    return folder, {**small_sounds(folder)[1], "transform": "pad:4000", "batch_size": 512}


@kind
def long_sounds(folder):
    for number in range(6):
        write(folder, f"{number}.wav", wav(200_000 if number % 3 else 12_000_000, channels=2))
    return folder, {"batch_size": 4, "inflate": 6}


@kind
def long_sounds_resampled(folder):
    return folder, {**long_sounds(folder)[1], "transform": "mono,resample:16000"}


@kind
def arrays_of_their_own(folder):
    for number in range(40):
        numpy.save(folder / f"{number}.npy", numpy.full((512, 512), number, numpy.float32))
    return folder, {"batch_size": 8, "inflate": 10}


@kind
def rows_of_an_array(folder):
    numpy.save(folder / "rows.npy", numpy.repeat(numpy.arange(2000, dtype=numpy.float32)[:, None], 16384, 1))
    return folder / "rows.npy", {"batch_size": 64, "shuffle": True}


@kind
def a_photo_tar(folder):
    write_tar(folder / "photos.tar", {f"{n:03}.jpg": jpeg(n, 500, 400) for n in range(60)})
    return folder / "photos.tar", {"transform": "rrc:224", "batch_size": 32, "inflate": 10, "shuffle": True}


@kind
def a_photo_list(folder):
    small_photos(folder)
    rows = "".join(f"{n % 16:02}.jpg,{n % 5}\n" for n in range(20_000))
    (folder / "index.csv").write_text("path,label\n" + rows)
    return folder / "index.csv", {"transform": "rrc:96", "batch_size": 64, "limit_batches": 20}


@kind
def many_classes_with_long_names(folder):
    content = jpeg(1, 60, 50)
    for number in range(10_000):
        write(folder, f"class-{number % 2000:04}-{'n' * 180}/{number:05}-{'x' * 200}.jpg", content)
    return folder, {"transform": "resize:64x64", "batch_size": 64, "limit_batches": 40}


# ---- files that lie, or that are larger than they look

@kind
def photos_that_claim_more(folder):
    good = jpeg(1, 640, 480)
    large = jpeg(2, 3000, 2000, quality=95)
    for number in range(4):
        write(folder, f"{number}-good.jpg", good)
    for number, size in enumerate([(60000, 60000), (3000, 20000), (20000, 3000), (9000, 9000), (6000, 6000)]):
        write(folder, f"lie-{number}.jpg", jpeg_claiming(large, *size))
        write(folder, f"lie-progressive-{number}.jpg", jpeg_claiming(jpeg(2, 3000, 2000, quality=95, progressive=True), *size))
    return folder, {"transform": "resize:224x224", "batch_size": 8, "inflate": 4}


@kind
def pngs_that_claim_more(folder):
    for number in range(4):
        write(folder, f"{number}-good.png", png_of_zeros(640, 480, 480))
    for number, (width, height, rows) in enumerate([(12000, 12000, 12000), (12000, 12000, 4000), (60000, 60000, 60),
                                                    (6000, 6000, 6000), (3000, 3000, 3000), (30000, 800, 800)]):
        for color, depth in ((2, 8), (6, 16), (0, 1)):
            write(folder, f"lie-{number}-{color}.png", png_of_zeros(width, height, rows, color, depth))
    return folder, {"transform": "resize:224x224", "batch_size": 8, "inflate": 3}


@kind
def npz_shorter_than_its_shape(folder):
    write(folder, "0.npz", npz_of(npy_header((4_000_000_000,)), 3_800_000_000))
    return folder, {"batch_size": 1}


@kind
def npz_that_lie_behind_a_good_one(folder):
    shape = (1000, 1000)
    write(folder, "0.npz", npz_of(npy_header(shape), 1_000_000))
    write(folder, "1-short.npz", npz_of(npy_header(shape), 400_000))
    write(folder, "2-long.npz", npz_of(npy_header(shape), 900_000_000))
    write(folder, "3-claims-more.npz", npz_of(npy_header(shape), 1_000_000, 900_000_000))
    write(folder, "4-claims-less.npz", npz_of(npy_header(shape), 1_000_000, 1000))
    write(folder, "5-other-shape.npz", npz_of(npy_header((30_000, 30_000)), 900_000_000))
    return folder, {"batch_size": 4, "inflate": 10}


@kind
def npz_of_many_zeros(folder):
    for number in range(3):
        write(folder, f"{number}.npz", npz_of(npy_header((5000, 5000)), 25_000_000))
    return folder, {"batch_size": 1, "inflate": 4}


@kind
def npy_that_claim_more(folder):
    for number in range(4):
        write(folder, f"{number}.npy", npy_header((100, 100)) + bytes(10_000))
        write(folder, f"{number}-lie.npy", npy_header((100_000, 100_000)) + bytes(10_000))
    return folder, {"batch_size": 4, "inflate": 10}


@kind
def sounds_that_claim_more(folder):
    for number in range(4):
        write(folder, f"{number}-good.wav", wav(8000))
        write(folder, f"{number}-long.wav", wav(8000, claimed=0xFFFFFF00))
        write(folder, f"{number}-slow.wav", wav(8000, rate=1))     # resampled, it is 16,000 times as long
    return folder, {"transform": "resample:16000", "batch_size": 4, "inflate": 8}


@kind
def bad_files_with_long_names(folder):
    write(folder, "0/good.jpg", jpeg(1, 64, 64))
    for number in range(6_000):
        write(folder, f"{'a' * 200}/{'b' * 200}/{number:05}-{'c' * 200}.jpg", b"\xff\xd8\xff\xe0 not a picture")
    return folder, {"transform": "resize:64x64", "batch_size": 512}


def arrays_to_pad(folder, short, long, batch_size):
    """Wide and high ones in turn: padded, they take many times their bytes."""
    for number in range(24):
        write(folder, f"{number:02}.npy", numpy_file(numpy.ones((short, long) if number % 2 == 0 else (long, short), numpy.uint8)))
    return folder, {"batch_size": batch_size, "shapes": "pad", "inflate": 2}


@kind
def arrays_that_grow_when_padded(folder):
    return arrays_to_pad(folder, 600, 2600, 2)


@kind
def arrays_too_large_when_padded(folder):
    return arrays_to_pad(folder, 100, 3800, 4)


@kind
def volumes_smaller_than_their_patch(folder):
    for number in range(4):
        write(folder, f"{number}.npy", numpy_file(numpy.full((9, 40, 40), number, numpy.int16)))
    rows = "".join(f"{number}.npy,{number}.npy\n" for number in range(4))
    write(folder, "volumes.csv", f"image,mask\n{rows}".encode())
    return folder / "volumes.csv", {"batch_size": 4, "volumes": {"patch": 80, "samples": 200, "pad": True, "normalize": "zscore"}}
