"""Through the loader, against the libraries people trust: Pillow, soundfile, numpy. Bit for bit."""

import struct
import subprocess
import sys
import tarfile
import zlib

import numpy
import pytest
import soundfile
from conftest import picture
from PIL import Image, ImageOps

import stoker


def one(path, **options):
    """The only sample of a file, as numpy."""
    with stoker.Loader(samples=[(path, 0)], output="numpy", copy=True, **options) as loader:
        return next(iter(loader)).data[0]


def pixels(image):
    array = numpy.asarray(image)
    return array[:, :, None] if array.ndim == 2 else array


# ---- pictures


FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "nearest": Image.NEAREST, "box": Image.BOX}
JPEGS = {
    "baseline 4:2:0": dict(quality=90, subsampling=2), "4:2:2": dict(quality=80, subsampling=1), "4:4:4": dict(quality=95, subsampling=0),
    "progressive": dict(quality=85, progressive=True), "optimized": dict(quality=75, optimize=True), "quality 1": dict(quality=1),
    "restarts": dict(quality=90, restart_marker_rows=1),
}


@pytest.mark.parametrize("color", ["rgb", "gray", "keep"])
@pytest.mark.parametrize("size", [(48, 40), (37, 61), (1, 1), (8, 200)])
@pytest.mark.parametrize("kind", JPEGS)
def test_jpeg_has_pillows_pixels(tmp_path, kind, size, color):
    picture(3, *size).save(tmp_path / "a.jpg", **JPEGS[kind])
    opened = Image.open(tmp_path / "a.jpg")
    expected = opened.convert({"rgb": "RGB", "gray": "L", "keep": opened.mode}[color])
    numpy.testing.assert_array_equal(one(tmp_path / "a.jpg", layout="NHWC", color=color), pixels(expected))


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_jpeg_of_other_colours_has_pillows_pixels(tmp_path, mode):
    picture(4).convert(mode).save(tmp_path / "a.jpg", quality=90)
    numpy.testing.assert_array_equal(one(tmp_path / "a.jpg", layout="NHWC"), pixels(Image.open(tmp_path / "a.jpg").convert("RGB")))


@pytest.mark.parametrize("color", ["rgb", "gray"])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_png_has_pillows_pixels(tmp_path, mode, color):
    base = picture(5, 53, 31)
    image = base.convert(mode) if mode != "RGBA" else base.convert("RGBA")
    if mode in ("LA", "RGBA"):
        image.putalpha(base.convert("L"))
    image.save(tmp_path / "a.png")
    expected = Image.open(tmp_path / "a.png").convert({"rgb": "RGB", "gray": "L"}[color])
    numpy.testing.assert_array_equal(one(tmp_path / "a.png", layout="NHWC", color=color), pixels(expected))


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_png_keeps_its_channels(tmp_path, mode):
    image = picture(6, 21, 17).convert(mode)
    image.save(tmp_path / "a.png")
    numpy.testing.assert_array_equal(one(tmp_path / "a.png", layout="NHWC", color="keep"), pixels(image))


@pytest.mark.parametrize("color", ["rgb", "gray", "keep"])
@pytest.mark.parametrize("size", [(48, 40), (37, 61), (1, 1), (300, 7)])
@pytest.mark.parametrize("options", [dict(quality=80), dict(quality=5, method=0), dict(lossless=True), dict(quality=60, alpha_quality=50)])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_webp_has_pillows_pixels(tmp_path, mode, options, size, color):
    image = picture(3, *size).convert(mode)
    if mode == "RGBA":
        image.putalpha(picture(4, *size).convert("L"))
    image.save(tmp_path / "a.webp", **options)
    opened = Image.open(tmp_path / "a.webp")
    expected = opened.convert({"rgb": "RGB", "gray": "L", "keep": opened.mode}[color])
    numpy.testing.assert_array_equal(one(tmp_path / "a.webp", layout="NHWC", color=color), pixels(expected))


def test_webp_is_cropped_turned_and_resized_as_pillow_does_it(tmp_path):
    image = picture(9, 120, 90)
    exif = Image.Exif()
    exif[0x0112] = 6
    image.save(tmp_path / "a.webp", quality=85, exif=exif)
    opened = Image.open(tmp_path / "a.webp").convert("RGB")
    numpy.testing.assert_array_equal(one(tmp_path / "a.webp", layout="NHWC", transform=[stoker.Resize((33, 40))], exif_orientation=False),
                                     pixels(opened.resize((40, 33), Image.BILINEAR)))
    turned = ImageOps.exif_transpose(Image.open(tmp_path / "a.webp")).convert("RGB")
    numpy.testing.assert_array_equal(one(tmp_path / "a.webp", layout="NHWC", exif_orientation=True), pixels(turned))


def test_an_animated_webp_is_its_first_frame(tmp_path):
    frames = [picture(number, 40, 30).convert("RGBA") for number in range(3)]
    frames[0].save(tmp_path / "a.webp", save_all=True, append_images=frames[1:], lossless=True)
    opened = Image.open(tmp_path / "a.webp")
    assert opened.n_frames == 3
    numpy.testing.assert_array_equal(one(tmp_path / "a.webp", layout="NHWC"), pixels(opened.convert("RGB")))


def write_png16(path, values):
    """A PNG of 16 bits, gray or RGB, by hand: Pillow writes no RGB of 16 bits."""
    height, width = values.shape[:2]

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    header = struct.pack(">IIBBBBB", width, height, 16, 2 if values.ndim == 3 else 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


@pytest.mark.parametrize("channels", [1, 3])
def test_png_of_16_bits_keeps_its_bits(tmp_path, channels):
    values = numpy.random.default_rng(1).integers(0, 65536, (24, 20, channels)).astype(numpy.uint16)
    write_png16(tmp_path / "a.png", values[:, :, 0] if channels == 1 else values)
    kept = one(tmp_path / "a.png", color="keep", layout="NHWC")
    assert kept.dtype == numpy.uint16
    numpy.testing.assert_array_equal(kept, values)
    numpy.testing.assert_array_equal(one(tmp_path / "a.png", color="keep"), values.transpose(2, 0, 1))
    flipped = one(tmp_path / "a.png", color="keep", layout="NHWC", transform=[stoker.CenterCrop(10), stoker.HorizontalFlip(1)])
    numpy.testing.assert_array_equal(flipped, values[7:17, 5:15][:, ::-1])
    assert one(tmp_path / "a.png", color="keep", dtype="uint8").dtype == numpy.uint8
    numpy.testing.assert_array_equal(one(tmp_path / "a.png", color="keep", layout="NHWC", dtype="float32"), values.astype(numpy.float32))
    assert one(tmp_path / "a.png").dtype == numpy.uint8                      # as Pillow's convert("RGB")
    if channels == 3:
        numpy.testing.assert_array_equal(one(tmp_path / "a.png", layout="NHWC", dtype="uint16"), values)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "nearest", "box"])
def test_png_of_16_bits_is_resized_as_pillow_resizes_floats(tmp_path, interpolation):
    values = numpy.random.default_rng(2).integers(0, 65536, (40, 50)).astype(numpy.uint16)
    write_png16(tmp_path / "a.png", values)
    expected = numpy.asarray(Image.fromarray(values.astype(numpy.float32)).resize((33, 21), FILTERS[interpolation]))
    data = one(tmp_path / "a.png", color="keep", transform=[stoker.Resize((21, 33), interpolation)])
    assert data.dtype == numpy.uint16
    assert numpy.abs(data[0].astype(numpy.int64) - numpy.rint(numpy.clip(expected, 0, 65535)).astype(numpy.int64)).max() <= 1


def test_pictures_of_8_and_16_bits_do_not_mix_where_bits_are_kept(tmp_path):
    write_png16(tmp_path / "a.png", numpy.full((4, 4), 700))
    Image.fromarray(numpy.full((4, 4), 7, numpy.uint8)).save(tmp_path / "b.png")
    for names in (["a.png", "b.png"], ["b.png", "a.png"]):
        with stoker.Loader(samples=[tmp_path / name for name in names], color="keep", batch_size=2, output="numpy", on_error="skip") as loader:
            assert next(iter(loader)).size == 1
            assert "another number of bits" in loader.errors[0].cause and 'color="rgb"' in loader.errors[0].cause
        with stoker.Loader(samples=[tmp_path / name for name in names], color="gray", batch_size=2, output="numpy") as loader:
            assert next(iter(loader)).data.dtype == numpy.uint8


def test_png_of_16_bits_goes_through_a_window(tmp_path):
    values = numpy.random.default_rng(0).integers(31000, 34000, (24, 20)).astype(numpy.uint16)
    Image.fromarray(values).save(tmp_path / "a.png")
    data = one(tmp_path / "a.png", color="gray", transform=[stoker.Window(level=40, width=400, offset=32768)])
    expected = numpy.clip((values.astype(numpy.float64) - 32768 - (40 - 200)) / 400, 0, 1)
    assert data.dtype == numpy.float32
    numpy.testing.assert_allclose(data[0], expected, atol=1e-6)


def test_a_png_named_jpg_is_decoded_by_content(tmp_path):
    picture(7).save(tmp_path / "a.png")
    (tmp_path / "a.jpg").write_bytes((tmp_path / "a.png").read_bytes())
    numpy.testing.assert_array_equal(one(tmp_path / "a.jpg", layout="NHWC"), pixels(picture(7)))


@pytest.mark.parametrize("interpolation", FILTERS)
@pytest.mark.parametrize("size", [(20, 24), (97, 133), (200, 30), (1, 1)])
def test_resize_has_pillows_pixels(tmp_path, size, interpolation):
    picture(8, 120, 90).save(tmp_path / "a.png")
    expected = picture(8, 120, 90).resize(size[::-1], FILTERS[interpolation])
    numpy.testing.assert_array_equal(one(tmp_path / "a.png", layout="NHWC", transform=[stoker.Resize(size, interpolation)]), pixels(expected))


@pytest.mark.parametrize("width, height", [(120, 90), (90, 120), (77, 77), (33, 201)])
def test_resize_of_the_shorter_side_and_center_crop_are_torchvisions(tmp_path, width, height):
    image = picture(9, width, height)
    image.save(tmp_path / "a.png")
    short, crop = 64, 56
    if width <= height:
        resized = image.resize((short, int(short * height / width)), Image.BILINEAR)
    else:
        resized = image.resize((int(short * width / height), short), Image.BILINEAR)
    numpy.testing.assert_array_equal(one(tmp_path / "a.png", layout="NHWC", transform=[stoker.Resize(short)]), pixels(resized))
    left, top = int(round((resized.width - crop) / 2.0)), int(round((resized.height - crop) / 2.0))
    expected = resized.crop((left, top, left + crop, top + crop))
    data = one(tmp_path / "a.png", layout="NHWC", transform=[stoker.Resize(short), stoker.CenterCrop(crop)])
    numpy.testing.assert_array_equal(data, pixels(expected))


def damaged(data, generator):
    """A JPEG file with a changed block, a marker in its scan, or a part cut off."""
    scan = data.index(b"\xff\xda") + 14
    at = int(generator.integers(scan, len(data)))
    kind = int(generator.integers(4))
    if kind == 0:
        return data[:at]
    if kind == 1:
        block = generator.bytes(64)
    elif kind == 2:
        block = bytes([255, int(generator.integers(1, 255))])
    else:
        block = 16 * b"\xff"
    return data[:at] + block + data[at + len(block):]


@pytest.mark.parametrize("options", [dict(subsampling=2), dict(subsampling=0, restart_marker_rows=1), dict(progressive=True)])
@pytest.mark.parametrize("crop", [None, 16])
def test_a_damaged_jpeg_is_refused_where_pillow_refuses_it(tmp_path, options, crop):
    generator = numpy.random.default_rng(5)
    picture(11, 96, 80).save(tmp_path / "whole.jpg", quality=90, **options)
    whole = (tmp_path / "whole.jpg").read_bytes()
    taken = {}
    for number in range(120):
        path = tmp_path / f"{number:03}.jpg"
        path.write_bytes(damaged(whole, generator))
        try:
            taken[str(path)] = pixels(Image.open(path).convert("RGB"))
        except (OSError, SyntaxError):
            taken[str(path)] = None
    assert 10 < sum(image is None for image in taken.values()) < 110
    transform = [] if crop is None else [stoker.CenterCrop(crop)]
    with stoker.Loader(samples=[(path, 0) for path in taken], batch_size=1, output="numpy", layout="NHWC", on_error="skip", transform=transform) as loader:
        for _ in range(2):  # the second time with the seek index
            given = {batch.names[0]: batch.data[0].copy() for batch in loader if len(batch.names)}
            for path, image in taken.items():
                name = path.rsplit("/", 1)[1]
                found = [data for key, data in given.items() if key.endswith(name)]
                assert len(found) == (image is not None), name
                if found and crop is None:
                    numpy.testing.assert_array_equal(found[0], image, err_msg=name)


def center_cropped(image, height, width):
    """What torchvision's CenterCrop gives: it pads with 0 first where the image is smaller."""
    left, top = max(0, (width - image.width) // 2), max(0, (height - image.height) // 2)
    padded = Image.new(image.mode, (max(width, image.width), max(height, image.height)))
    padded.paste(image, (left, top))
    left, top = int(round((padded.width - width) / 2.0)), int(round((padded.height - height) / 2.0))
    return padded.crop((left, top, left + width, top + height))


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("decode", ["exact", "fast"])
@pytest.mark.parametrize("size", [(64, 64), (30, 64), (65, 21), (7, 200), (40, 50)])
def test_a_center_crop_larger_than_the_image_pads_as_torchvisions(tmp_path, size, decode, flip):
    image = picture(9, 50, 40)
    image.save(tmp_path / "a.png")
    for steps in ([], [stoker.Resize((31, 33))]):
        whole = Image.fromarray(one(tmp_path / "a.png", layout="NHWC", decode=decode, transform=steps))
        ops = [stoker.HorizontalFlip(1), stoker.CenterCrop(size)] if flip else [stoker.CenterCrop(size)]
        expected = center_cropped(whole.transpose(Image.FLIP_LEFT_RIGHT) if flip else whole, *size)
        numpy.testing.assert_array_equal(one(tmp_path / "a.png", layout="NHWC", decode=decode, transform=[*steps, *ops]), pixels(expected))
        if not flip:
            data = one(tmp_path / "a.png", layout="NHWC", decode=decode, transform=[*steps, *ops, stoker.HorizontalFlip(1)])
            numpy.testing.assert_array_equal(data, pixels(expected.transpose(Image.FLIP_LEFT_RIGHT)))


def test_a_crop_is_some_rectangle_of_the_picture_resized_as_pillow_does(tmp_path):
    """The rectangle is not told, so it is sought: with a fixed area and ratio few sizes are possible."""
    image = picture(10, 40, 40)
    image.save(tmp_path / "a.png")
    data = one(tmp_path / "a.png", layout="NHWC", transform=[stoker.RandomResizedCrop(12, scale=(0.25, 0.25), ratio=(1, 1))])
    found = [(x, y) for y in range(21) for x in range(21)
             if numpy.array_equal(pixels(image.resize((12, 12), Image.BILINEAR, box=(x, y, x + 20, y + 20))), data)
             or numpy.array_equal(pixels(image.crop((x, y, x + 20, y + 20)).resize((12, 12), Image.BILINEAR)), data)]
    assert len(found) == 1


def test_a_flip_mirrors(tmp_path):
    picture(11).save(tmp_path / "a.png")
    numpy.testing.assert_array_equal(one(tmp_path / "a.png", layout="NHWC", transform=[stoker.HorizontalFlip(1)]), pixels(picture(11))[:, ::-1])


# ---- sound


@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
@pytest.mark.parametrize("container", ["WAV", "WAVEX"])
def test_wav_has_soundfiles_samples(tmp_path, container, subtype, channels):
    random = numpy.random.default_rng(channels)
    data = random.uniform(-1, 1, (333, channels))
    data[:2] = [[-1.0] * channels, [0.999999] * channels]
    soundfile.write(tmp_path / "a.wav", data, 22050, subtype=subtype, format=container)
    expected = soundfile.read(tmp_path / "a.wav", dtype="float32", always_2d=True)[0].T
    numpy.testing.assert_array_equal(one(tmp_path / "a.wav"), expected[0] if channels == 1 else expected)


@pytest.mark.parametrize("level", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize("subtype", ["PCM_S8", "PCM_16", "PCM_24"])
def test_flac_has_soundfiles_samples(tmp_path, subtype, channels, level):
    random = numpy.random.default_rng(channels)
    time = numpy.arange(30_000)[:, None] / 16000
    data = 0.4 * numpy.sin(2 * numpy.pi * 300 * time + 0.1 * numpy.arange(channels)) + random.normal(0, 0.02, (len(time), channels))
    data[5000:12_000] = 0                                                    # constant subframes
    data[20_000:24_000] = random.uniform(-1, 1, (4000, channels))            # stored as they are
    data[:2] = [[-1.0] * channels, [0.999999] * channels]
    soundfile.write(tmp_path / "a.flac", data.clip(-1, 1), 16000, subtype=subtype, compression_level=level)
    expected = soundfile.read(tmp_path / "a.flac", dtype="float32", always_2d=True)[0].T
    expected = expected[0] if channels == 1 else expected
    numpy.testing.assert_array_equal(one(tmp_path / "a.flac"), expected)
    numpy.testing.assert_array_equal(one(tmp_path / "a.flac", transform=[stoker.PadOrTrim(7777)]), expected[..., :7777])
    if subtype != "PCM_24":
        as_int16 = one(tmp_path / "a.flac", dtype="int16")
        numpy.testing.assert_array_equal(as_int16, (expected * 32768).astype(numpy.int16))


def test_flac_comes_out_of_folders_tars_and_packs_alike(tmp_path):
    (tmp_path / "data/a").mkdir(parents=True)
    for number in range(3):
        sound = numpy.sin(numpy.arange(900 + number) / (5 + number)) * 0.7
        soundfile.write(tmp_path / f"data/a/{number}.flac", sound, 8000, subtype="PCM_16")
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for number in range(3):
            archive.add(tmp_path / f"data/a/{number}.flac", f"{number}.flac")
    subprocess.run([sys.executable, "-m", "stoker", "pack", tmp_path / "data", tmp_path / "x.pack", "--quiet"], check=True)
    batches = []
    for source in ("data", "x.tar", "x.pack"):
        with stoker.Loader(tmp_path / source, batch_size=3, output="numpy", copy=True) as loader:
            batches.append(next(iter(loader)))
    for batch in batches:
        assert batch.lengths.tolist() == [900, 901, 902]
        numpy.testing.assert_array_equal(batch.data, batches[0].data)


# ---- arrays


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "bool"])
def test_npy_rows_have_numpys_values(tmp_path, dtype):
    array = numpy.random.default_rng(1).integers(0, 100, (7, 3, 5)).astype(dtype)
    numpy.save(tmp_path / "a.npy", array)
    with stoker.Loader(tmp_path / "a.npy", batch_size=7, output="numpy") as loader:
        data = next(iter(loader)).data
        assert data.dtype == array.dtype
        numpy.testing.assert_array_equal(data, array)


@pytest.mark.parametrize("save", [numpy.savez, numpy.savez_compressed])
def test_npz_files_have_numpys_values(tmp_path, save):
    arrays = numpy.random.default_rng(2).normal(size=(4, 6, 2)).astype(numpy.float32)
    for number, array in enumerate(arrays):
        save(tmp_path / f"{number}.npz", array)
    with stoker.Loader(tmp_path, batch_size=4, output="numpy") as loader:
        numpy.testing.assert_array_equal(next(iter(loader)).data, arrays)


def test_npy_files_of_one_sample_each(tmp_path):
    arrays = numpy.random.default_rng(3).integers(0, 9, (4, 6, 2))
    for number, array in enumerate(arrays):
        numpy.save(tmp_path / f"{number}.npy", array)
    with stoker.Loader(tmp_path, batch_size=4, output="numpy") as loader:
        numpy.testing.assert_array_equal(next(iter(loader)).data, arrays)
