"""Makes the benchmarks' data in the work folder: unpacked, multiplied or generated, always the same for the same source.

A folder appears under its name only when it is whole, and is then used again by later runs.
"""

import concurrent.futures
import os
import random
import shutil
import struct
import sys
import tarfile
import zlib

SEED = 42
WAV_FILES = 51_000
JPEG_FILES = 4_000
NPY_ROW = (224, 224, 3)
VOLUME = (512, 1024, 1024)
LARGE_VOLUME = (2048, 1024, 1024)
ZARR_CHUNK = (128, 128, 128)
SCANS, SCAN = 8, (192, 256, 256)
NPY_ROWS = 6_000
IMAGES = 4_000
SLICES = 1_000
DICOM_SLICES = 2_000
HU_OFFSET = 32_768
NOISE_HU = 15  # makes a file of about 236 KB, as clinical slices are


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
                # Python 3.11.2, Debian 12's, has no filters yet.
                tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        data = whole(os.path.join(work, "unpacked-" + os.path.basename(archive)), unpack)
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(data) for name in names if name.lower().endswith(extensions))


def with_comment(jpeg, number):
    """The same image as another file: what Stoker learns of one copy must be of no use for the next."""
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


def clips(work, extension, count, seconds):
    """`count` clips of noise that rises and falls as speech does, at 16 kHz, mono, 16 bits."""
    import numpy
    import soundfile

    def make(folder):
        say(f"making {count:,} {extension} files of {seconds} s")
        os.mkdir(os.path.join(folder, "0"))
        frames = 16000 * seconds
        frequency = numpy.fft.rfftfreq(frames, 1 / 16000)
        colour = 1 / (1 + (frequency / 500) ** 2) + 0.2 * numpy.exp(-((frequency - 2500) / 300) ** 2)
        for number in range(count):
            draw = numpy.random.default_rng(number)
            noise = numpy.fft.irfft(numpy.fft.rfft(draw.normal(size=frames)) * colour, frames)
            syllables = numpy.interp(numpy.arange(frames), numpy.arange(0, frames + 2000, 2000), draw.uniform(0, 1, frames // 2000 + 1) ** 3)
            sound = noise * syllables
            soundfile.write(os.path.join(folder, "0", f"{number:05d}.{extension}"), 0.5 * sound / numpy.abs(sound).max(), 16000, subtype="PCM_16")

    return whole(os.path.join(work, f"clips-{seconds}s-{extension}"), make)


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
    """At least JPEG_FILES photos in folders of 100, no two the same bytes; more where the data has more."""
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
    return whole(os.path.join(work, f"jpeg-distinct-{JPEG_FILES}"), make)


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


def write_volume(path, shape):
    """Smooth noise, as a plain .npy of uint8."""
    import numpy

    say("writing a volume of {} x {} x {}".format(*shape))
    volume = numpy.lib.format.open_memmap(path, "w+", numpy.uint8, shape)
    generator = numpy.random.default_rng(SEED)
    for plane in volume:
        coarse = generator.integers(0, 224, [edge // 8 for edge in shape[1:]], numpy.uint8)
        plane[:] = coarse.repeat(8, 0).repeat(8, 1) + generator.integers(0, 32, shape[1:], numpy.uint8)
    volume.flush()


def volume_file(work, shape=VOLUME):
    """Returns (path, offset of the data)."""
    import numpy

    name = "volume" if shape == VOLUME else "volume-{}x{}x{}".format(*shape)
    path = os.path.join(whole(os.path.join(work, name), lambda folder: write_volume(os.path.join(folder, "volume.npy"), shape)), "volume.npy")
    return path, numpy.load(path, mmap_mode="r").offset


def volume_zarr(work, packing, shape=VOLUME):
    """The same volume as zarr version 3: `packing` is raw or blosc-zstd."""
    import numpy
    import zarr

    def make(folder):
        source = volume_file(work, shape)[0]
        say(f"writing it as zarr, {packing}")
        packers = [zarr.codecs.BloscCodec(cname="zstd", clevel=5, shuffle="bitshuffle")] if packing == "blosc-zstd" else None
        array = zarr.create_array(os.path.join(folder, "volume.zarr"), shape=shape, chunks=ZARR_CHUNK, dtype="uint8", compressors=packers)
        volume = numpy.load(source, mmap_mode="r")
        for first in range(0, shape[0], ZARR_CHUNK[0]):
            array[first:first + ZARR_CHUNK[0]] = volume[first:first + ZARR_CHUNK[0]]
    name = f"volume-zarr-{packing}" if shape == VOLUME else f"volume-zarr-{packing}-{shape[0]}"
    return os.path.join(whole(os.path.join(work, name), make), "volume.zarr")


def volume_tiff(work, packing):
    """The same volume as a TIFF stack, a page for each plane: `packing` is none or deflate."""
    import numpy
    import tifffile

    def make(folder):
        source = volume_file(work)[0]
        say(f"writing it as TIFF, {packing}")
        tifffile.imwrite(os.path.join(folder, "volume.tif"), numpy.load(source, mmap_mode="r"), compression="zlib" if packing == "deflate" else None)
    return os.path.join(whole(os.path.join(work, f"volume-tiff-{packing}"), make), "volume.tif")


def scans(work):
    """SCANS int16 NIfTI volumes with masks of a few balls: image-N.nii and mask-N.nii in a folder."""
    import nibabel
    import numpy

    def make(folder):
        say("writing {} NIfTI volumes of {} x {} x {}".format(SCANS, *SCAN))
        z, y, x = numpy.ogrid[:SCAN[0], :SCAN[1], :SCAN[2]]
        for number in range(SCANS):
            generator = numpy.random.default_rng(SEED + number)
            image, mask = generator.integers(-200, 200, SCAN, numpy.int16), numpy.zeros(SCAN, numpy.uint8)
            for radius, *centre in zip(generator.integers(6, 20, 6), *(generator.integers(20, edge - 20, 6) for edge in SCAN), strict=True):
                mask[(z - centre[0]) ** 2 + (y - centre[1]) ** 2 + (x - centre[2]) ** 2 < radius ** 2] = 1
            image[mask == 1] += 300
            for word, array in (("image", image), ("mask", mask)):
                nibabel.save(nibabel.Nifti1Image(array.T, numpy.eye(4)), os.path.join(folder, f"{word}-{number}.nii"))
    return whole(os.path.join(work, "scans"), make)


def images_file(data, work):
    """IMAGES photos of 256 x 256 x 3 uint8 as one .npy."""
    def make(folder):
        import numpy

        import stoker

        say(f"scaling photos to {IMAGES:,} images of 256 x 256")
        rows, filled = numpy.lib.format.open_memmap(os.path.join(folder, "images.npy"), "w+", numpy.uint8, (IMAGES, 256, 256, 3)), 0
        with stoker.Loader(jpeg_folder(data, work), batch_size=100, layout="NHWC", output="numpy", transform=[stoker.Resize((256, 256))]) as photos:
            while filled < IMAGES:
                for images, _ in photos:
                    some = images[:IMAGES - filled]
                    rows[filled:filled + len(some)] = some
                    filled += len(some)
        rows.flush()
    return os.path.join(whole(os.path.join(work, "images"), make), "images.npy")


def jpeg_shards(photos, count=8):
    """The photos in tar files, in random order, as WebDataset wants them."""
    def make(folder):
        paths = sorted(files_of(photos))
        random.Random(SEED).shuffle(paths)
        say(f"writing {len(paths):,} photos into {count} tar files")
        for shard in range(count):
            with tarfile.open(os.path.join(folder, f"{shard:03d}.tar"), "w") as tar:
                for path in paths[shard::count]:
                    tar.add(path, os.path.basename(path))
    return sorted(files_of(whole(photos + "-shards", make)))


def ffcv_file(work, name):
    """Where a peer keeps what only it can write."""
    os.makedirs(os.path.join(work, "ffcv"), exist_ok=True)
    return os.path.join(work, "ffcv", name + ".beton")


def ct_slice(generator, coarse):
    """A 512 x 512 slice as stored (HU + 32768): a body of soft tissue with lungs, bones and vessels in air, and the scanner's noise."""
    import numpy

    y, x = numpy.mgrid[-1:1:512j, -1:1:512j].astype(numpy.float32)

    def ellipse(cx, cy, rx, ry):
        return ((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 < 1
    dx, dy = generator.uniform(-0.08, 0.08, 2)
    size = generator.uniform(0.9, 1.1)
    hu = numpy.full((512, 512), -1000, numpy.float32)
    hu[ellipse(dx, dy, 0.8 * size, 0.6 * size)] = 40
    for side in (-1, 1):
        hu[ellipse(dx + side * 0.36 * size, dy - 0.03, 0.26 * size, 0.42 * size)] = -820
    hu[ellipse(dx, dy + 0.42 * size, 0.1, 0.1)] = 400
    for cx, cy, radius in generator.uniform((-0.6, -0.4, 0.005), (0.6, 0.4, 0.05), (40, 3)):
        hu[ellipse(dx + cx, dy + cy, radius, radius)] += generator.uniform(20, 300)
    noise = generator.normal(0, NOISE_HU, hu.shape).astype(numpy.float32)
    for axis in (0, 1):  # a scanner's noise is smooth
        noise += numpy.roll(noise, 1, axis)
    hu += numpy.roll(coarse, generator.integers(0, 512, 2), (0, 1)) + noise / 2
    return (hu.clip(-1024, 3071) + HU_OFFSET).astype(numpy.uint16)


def encode_png16(pixels):
    """A 16-bit gray PNG; the filter of each row is the one with the least sum of magnitudes, as libpng chooses."""
    import numpy

    height, width = pixels.shape
    raw = pixels.astype(">u2").view(numpy.uint8).reshape(height, 2 * width).astype(numpy.int16)
    left, up, corner = numpy.zeros_like(raw), numpy.zeros_like(raw), numpy.zeros_like(raw)
    left[:, 2:], up[1:], corner[1:, 2:] = raw[:, :-2], raw[:-1], raw[:-1, :-2]
    guess = left + up - corner
    a, b, c = abs(guess - left), abs(guess - up), abs(guess - corner)
    paeth = numpy.where((a <= b) & (a <= c), left, numpy.where(b <= c, up, corner))
    filtered = numpy.stack([raw, raw - left, raw - up, raw - (left + up) // 2, raw - paeth]).astype(numpy.uint8)
    choice = abs(filtered.view(numpy.int8).astype(numpy.int16)).sum(2).argmin(0)
    rows = numpy.concatenate([choice[:, None].astype(numpy.uint8), filtered[choice, numpy.arange(height)]], 1)

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)) + chunk(b"IEND", b""))


def ct_slices(work):
    """SLICES generated 16-bit slices, as PNG files in folders of 100 and as one .npy; returns (folder, path)."""
    import numpy

    def make(folder):
        say(f"making {SLICES:,} 16-bit slices of 512 x 512")
        rows = numpy.lib.format.open_memmap(os.path.join(folder, "slices.npy"), "w+", numpy.uint16, (SLICES, 512, 512))
        generator = numpy.random.default_rng(SEED)
        waves = numpy.fft.rfftfreq(512)[None, :257] ** 2 + numpy.fft.fftfreq(512)[:, None] ** 2
        coarse = numpy.fft.irfft2(numpy.fft.rfft2(generator.normal(0, 1, (512, 512))) * numpy.exp(-waves * 2000))
        coarse *= 30 / coarse.std()
        for i in range(SLICES):
            rows[i] = ct_slice(generator, coarse)
        rows.flush()

        def write(i):
            with open(os.path.join(folder, "png", f"{i // 100:03d}", f"{i:06d}.png"), "wb") as file:
                file.write(encode_png16(rows[i]))
        for i in range(0, SLICES, 100):
            os.makedirs(os.path.join(folder, "png", f"{i // 100:03d}"))
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(write, range(SLICES)))
    folder = whole(os.path.join(work, "ct"), make)
    return os.path.join(folder, "png"), os.path.join(folder, "slices.npy")


def dicom_slice(pixels, number, series):
    """A CT slice as an uncompressed DICOM file, 12 of 16 bits, explicit little endian, by hand."""
    def element(group, number, kind, value):
        value = value.encode() if isinstance(value, str) else value
        value += (b"\0" if kind == "UI" else b" ") * (len(value) % 2)
        length = struct.pack("<HI", 0, len(value)) if kind == "OW" else struct.pack("<H", len(value))
        return struct.pack("<HH", group, number) + kind.encode() + length + value

    def word(group, number, value):
        return element(group, number, "US", struct.pack("<H", value))

    ct, uid = "1.2.840.10008.5.1.4.1.1.2", f"1.2.3.{series}.{number}"
    meta = element(2, 2, "UI", ct) + element(2, 3, "UI", uid) + element(2, 0x10, "UI", "1.2.840.10008.1.2.1")
    return (bytes(128) + b"DICM" + element(2, 0, "UL", struct.pack("<I", len(meta))) + meta + element(8, 8, "CS", "ORIGINAL\\PRIMARY\\AXIAL") +
            element(8, 0x16, "UI", ct) + element(8, 0x18, "UI", uid) + element(8, 0x60, "CS", "CT") + element(0x10, 0x20, "LO", f"P{series}") +
            element(0x20, 0xD, "UI", f"1.2.{series}") + element(0x20, 0xE, "UI", f"1.2.3.{series}") + element(0x20, 0x13, "IS", str(number)) +
            element(0x20, 0x32, "DS", f"0\\0\\{1.25 * number}") + element(0x20, 0x37, "DS", "1\\0\\0\\0\\1\\0") + word(0x28, 2, 1) +
            element(0x28, 4, "CS", "MONOCHROME2") + word(0x28, 0x10, pixels.shape[0]) + word(0x28, 0x11, pixels.shape[1]) +
            element(0x28, 0x30, "DS", "0.7\\0.7") + word(0x28, 0x100, 16) + word(0x28, 0x101, 12) + word(0x28, 0x102, 11) + word(0x28, 0x103, 0) +
            element(0x28, 0x1052, "DS", "-1024") + element(0x28, 0x1053, "DS", "1") + element(0x7FE0, 0x10, "OW", pixels.astype("<u2").tobytes()))


def dicom_folder(work):
    """DICOM_SLICES files of generated slices, in series of 100. Every tenth slice is drawn; the others are it, mirrored or shifted."""
    import numpy

    def make(folder):
        say(f"making {DICOM_SLICES:,} DICOM files of 512 x 512")
        generator = numpy.random.default_rng(SEED)
        coarse = numpy.zeros((512, 512), numpy.float32)
        for i in range(DICOM_SLICES):
            if i % 10 == 0:
                drawn = ct_slice(generator, coarse).astype(numpy.int32) - HU_OFFSET + 1024
            pixels = numpy.roll(drawn[::-1] if i % 2 else drawn, i % 10 * 7, 1)
            os.makedirs(os.path.join(folder, f"{i // 100:03d}"), exist_ok=True)
            with open(os.path.join(folder, f"{i // 100:03d}", f"{i:06d}.dcm"), "wb") as file:
                file.write(dicom_slice(pixels, i % 100 + 1, i // 100 + 1))
    return whole(os.path.join(work, "dicom"), make)


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
