"""Makes the benchmarks' data in the work folder: unpacked, multiplied or generated, always the same for the same source.

A folder appears under its name only when it is whole, and is then used again by later runs.
"""

import os
import random
import shutil
import struct
import sys
import tarfile

SEED = 42
WAV_FILES = 51_000
JPEG_FILES = 2_000
NPY_ROW = (224, 224, 3)
NPY_ROWS = 6_000


def say(text):
    print(text, file=sys.stderr, flush=True)


def whole(path, make):
    """`path`, made aside by `make(folder)` and renamed unless it is there."""
    if not os.path.exists(path):
        aside = path + ".partial"
        shutil.rmtree(aside, ignore_errors=True)
        os.makedirs(aside)
        make(aside)
        os.rename(aside, path)
    return path


def find(data, work, extensions, tar_name):
    """Sorted files with one of `extensions` under `data`, out of `data`/`tar_name`, or out of `data` where it is a tar."""
    if data is None:
        return []
    if not os.path.exists(data):
        raise SystemExit(f"error: cannot find `{data}`\n\nhint: --data names a folder, a folder with {tar_name}, or a tar")
    archive = data if os.path.isfile(data) else os.path.join(data, tar_name)
    if os.path.isfile(archive):
        def unpack(folder):
            say(f"unpacking {os.path.basename(archive)}")
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
        data = whole(os.path.join(work, "unpacked-" + os.path.basename(archive)), unpack)
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(data) for name in names if name.lower().endswith(extensions))


def with_comment(jpeg, number):
    """The same picture as another file: what Stoker learns of one copy must be of no use for the next."""
    comment = b"copy %08d" % number
    return jpeg[:2] + b"\xff\xfe" + struct.pack(">H", 2 + len(comment)) + comment + jpeg[2:]


def multiply(sources, count, per_folder, folder, extension, change=lambda content, number: content):
    """`count` files in sub-folders of `per_folder`, copied from `sources` in turn."""
    contents = {}
    for i in range(count):
        if i % per_folder == 0:
            os.mkdir(os.path.join(folder, f"{i // per_folder:03d}"))
        source = sources[i % len(sources)]
        if source not in contents:
            with open(source, "rb") as file:
                contents[source] = file.read()
        with open(os.path.join(folder, f"{i // per_folder:03d}", f"{i:06d}{extension}"), "wb") as file:
            file.write(change(contents[source], i))


def synthetic_wavs(folder, count=3_000):
    """Mono 16-bit files at 8 kHz of about 7 KB: a tone in noise."""
    chance = random.Random(SEED)
    os.makedirs(folder, exist_ok=True)
    paths = []
    for i in range(count):
        frames = max(1_000, int(chance.gauss(3_500, 1_200)))
        samples = struct.pack(f"<{frames}h", *(chance.randrange(-8_000, 8_000) for _ in range(frames)))
        header = b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8_000, 16_000, 2, 16)
        paths.append(os.path.join(folder, f"{i:04d}.wav"))
        with open(paths[-1], "wb") as file:
            file.write(header + b"data" + struct.pack("<I", len(samples)) + samples)
    return paths


def wav_folder(data, work, count=WAV_FILES):
    """51,000 small WAV files in 51 folders."""
    def make(folder):
        sources = find(data, work, (".wav",), "speech.tar")
        temporary = folder + ".sources"
        if not sources:
            say("no WAV files in the data: making some")
            sources = synthetic_wavs(temporary)
        say(f"copying {len(sources):,} WAV files to {count:,}")
        multiply(sources, count, 1_000, folder, ".wav")
        shutil.rmtree(temporary, ignore_errors=True)
    return whole(os.path.join(work, f"wav-{count}"), make)


def wav_rows(wavs, frames):
    """The samples of 16-bit mono files in order as one [files, frames] int16 .npy, padded with zeros."""
    import numpy

    def make(folder):
        paths = sorted(files_of(wavs))
        say(f"packing {len(paths):,} WAV files into one .npy")
        rows = numpy.lib.format.open_memmap(os.path.join(folder, "rows.npy"), "w+", numpy.int16, (len(paths), frames))
        for row, path in zip(rows, paths):
            samples = numpy.fromfile(path, numpy.int16, frames, offset=44)
            row[:len(samples)] = samples
        rows.flush()
    return os.path.join(whole(f"{wavs}-rows-{frames}", make), "rows.npy")


def synthetic_jpegs(folder, count=64):
    import numpy
    from PIL import Image

    generator = numpy.random.default_rng(SEED)
    os.makedirs(folder, exist_ok=True)
    paths = []
    for i in range(count):
        coarse = Image.fromarray(generator.integers(0, 256, (24, 32, 3), numpy.uint8)).resize((500, 375), Image.BICUBIC)
        grain = generator.normal(0, 12, (375, 500, 3))
        paths.append(os.path.join(folder, f"{i:04d}.jpg"))
        Image.fromarray((numpy.asarray(coarse) + grain).clip(0, 255).astype(numpy.uint8)).save(paths[-1], quality=94)
    return paths


def jpeg_folder(data, work):
    """At least 2,000 photos in folders of 100, no two the same bytes; more where the data has more."""
    def make(folder):
        sources = find(data, work, (".jpg", ".jpeg"), "photos.tar")
        temporary = folder + ".sources"
        if not sources:
            say("no JPEG files in the data: making some (random texture, not photos)")
            sources = synthetic_jpegs(temporary)
        count = max(JPEG_FILES, len(sources))
        say(f"copying {len(sources):,} JPEG files to {count:,}")
        multiply(sources, count, 100, folder, ".jpg", with_comment)
        shutil.rmtree(temporary, ignore_errors=True)
    return whole(os.path.join(work, "jpeg-distinct"), make)


def npy_file(work):
    """Rows of 150,528 bytes, as a plain .npy; returns (path, offset of the data)."""
    import numpy

    def make(folder):
        say(f"writing {NPY_ROWS:,} rows of 150,528 bytes")
        rows = numpy.lib.format.open_memmap(os.path.join(folder, "rows.npy"), "w+", numpy.uint8, (NPY_ROWS, *NPY_ROW))
        generator = numpy.random.default_rng(SEED)
        for first in range(0, NPY_ROWS, 500):
            rows[first:first + 500] = generator.integers(0, 256, (500, *NPY_ROW), numpy.uint8)
        rows.flush()
    path = os.path.join(whole(os.path.join(work, "npy"), make), "rows.npy")
    return path, numpy.load(path, mmap_mode="r").offset


def files_of(folder):
    return [os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names]


def warm(path):
    """Reads everything once."""
    for file in [path] if os.path.isfile(path) else files_of(path):
        with open(file, "rb", buffering=0) as opened:
            while opened.read(1 << 22):
                pass


def cool(path):
    """Drops `path` from the page cache, and says how far: cold=all (root) or cold=data."""
    os.sync()
    try:
        with open("/proc/sys/vm/drop_caches", "w") as drop:
            drop.write("3")
        return "cold=all"
    except OSError:
        for file in [path] if os.path.isfile(path) else files_of(path):
            descriptor = os.open(file, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
        return "cold=data"
