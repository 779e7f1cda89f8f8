"""decode="fast": the same shapes and the same crops, with pixels close to the exact ones."""

import io

import numpy
import pytest
from conftest import picture
from PIL import Image
from test_codecs_reference import one, pixels

import stoker

TRANSFORMS = {
    "rrc": [stoker.RandomResizedCrop(40), stoker.HorizontalFlip()], "bicubic": [stoker.RandomResizedCrop(40, interpolation="bicubic")],
    "resize": [stoker.Resize((50, 60))], "shorter side": [stoker.Resize(64), stoker.CenterCrop(56)], "whole": [],
    "enlarged": [stoker.Resize((500, 700))], "nearest": [stoker.Resize((50, 60), "nearest")], "two resizes": [stoker.Resize(120), stoker.RandomResizedCrop(32)],
    "strip": [stoker.Resize((200, 20))],
}
JPEGS = {"4:2:0": dict(subsampling=2), "4:2:2": dict(subsampling=1), "4:4:4": dict(subsampling=0), "progressive": dict(progressive=True)}


def smooth(width=450, height=331):
    y, x = numpy.mgrid[0:height, 0:width]
    return Image.fromarray(numpy.stack([127 + 110 * numpy.sin(x / 31), 127 + 110 * numpy.cos(y / 27), 127 + 60 * numpy.sin((x + y) / 45)], -1).astype(numpy.uint8))


def error(path, **options):
    """The mean and the largest difference between fast and exact."""
    exact, fast = (one(path, decode=decode, **options).astype(int) for decode in ("exact", "fast"))
    assert exact.shape == fast.shape
    return numpy.abs(exact - fast).mean(), numpy.abs(exact - fast).max()


@pytest.mark.parametrize("kind", JPEGS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_jpeg_pixels_are_close_to_the_exact_ones(tmp_path, transform, kind):
    smooth().save(tmp_path / "a.jpg", quality=95, **JPEGS[kind])
    most_mean, most_most = (3.5, 25) if kind == "4:2:2" else (1.2, 12)  # libjpeg reduces 4:2:2 chroma further than luma
    for seed in range(5):
        mean, most = error(tmp_path / "a.jpg", transform=TRANSFORMS[transform], seed=seed)
        assert mean < most_mean and most < most_most, seed


@pytest.mark.parametrize("color", ["gray", "keep"])
def test_gray_pictures_are_close_too(tmp_path, color):
    smooth().convert("L").save(tmp_path / "a.jpg", quality=95)
    for seed in range(5):
        mean, most = error(tmp_path / "a.jpg", transform=TRANSFORMS["rrc"], seed=seed, color=color)
        assert mean < 1 and most < 10


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_png_pixels_are_close_to_the_exact_ones(tmp_path, transform, mode):
    smooth().convert(mode).save(tmp_path / "a.png")
    mean, most = error(tmp_path / "a.png", transform=TRANSFORMS[transform], color="keep")
    assert mean < 1 and most < 10


@pytest.mark.parametrize("orientation", range(1, 9))
def test_turned_pictures_are_close_to_the_exact_ones(tmp_path, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    smooth(453, 331).save(tmp_path / "a.jpg", quality=95, exif=exif)
    for transform in ("rrc", "resize", "shorter side"):
        for seed in range(4):
            mean, most = error(tmp_path / "a.jpg", transform=TRANSFORMS[transform], seed=seed, exif_orientation=True)
            assert mean < 1.2 and most < 12, (transform, seed)


def test_views_are_close_to_the_exact_ones(tmp_path):
    smooth().save(tmp_path / "a.jpg", quality=95)
    views = [stoker.Views(big=(2, [stoker.RandomResizedCrop(48)]), small=(3, [stoker.RandomResizedCrop(16), stoker.HorizontalFlip()]))]

    def crops(decode):
        with stoker.Loader(samples=[(tmp_path / "a.jpg", 0)], output="numpy", copy=True, transform=views, decode=decode) as loader:
            return next(iter(loader)).data

    exact, fast = crops("exact"), crops("fast")
    for name in ("big", "small"):
        assert numpy.abs(exact[name].astype(int) - fast[name]).mean() < 1.5


def test_normalized_floats_are_close_too(tmp_path):
    smooth().save(tmp_path / "a.jpg", quality=95)
    transform = [stoker.RandomResizedCrop(40), stoker.Normalize("imagenet")]
    exact, fast = (one(tmp_path / "a.jpg", decode=decode, transform=transform) for decode in ("exact", "fast"))
    assert exact.dtype == fast.dtype == numpy.float32 and numpy.abs(exact - fast).mean() < 0.03


def test_a_jpeg_that_is_not_resized_has_the_pixels_of_libjpeg_without_smooth_chroma(tmp_path):
    picture(3, 64, 48).save(tmp_path / "a.jpg", quality=90, subsampling=0)
    numpy.testing.assert_array_equal(one(tmp_path / "a.jpg", decode="fast", layout="NHWC"), pixels(Image.open(tmp_path / "a.jpg")))


def test_a_large_picture_is_shrunk_as_pillows_draft_shrinks_it(tmp_path):
    """At an eighth and no crop, nothing is left to resize: libjpeg's reduced transform, which Pillow has as draft()."""
    picture(4, 320, 240).save(tmp_path / "a.jpg", quality=90, subsampling=0)
    reduced = Image.open(tmp_path / "a.jpg")
    reduced.draft("RGB", (40, 30))
    assert reduced.size == (40, 30)
    data = one(tmp_path / "a.jpg", decode="fast", layout="NHWC", transform=[stoker.Resize((30, 40))])
    numpy.testing.assert_array_equal(data, pixels(reduced))


def test_rows_of_an_npy_are_close_too(tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.asarray(smooth(90, 60))[None])
    data = []
    for decode in ("exact", "fast"):
        with stoker.Loader(tmp_path / "a.npy", output="numpy", copy=True, decode=decode, transform=[stoker.RandomResizedCrop(32)]) as loader:
            data.append(next(iter(loader)).data[0].astype(int))
    assert numpy.abs(data[0] - data[1]).mean() < 1


def test_16_bit_pictures_stay_exact(tmp_path):
    values = numpy.random.default_rng(0).integers(31000, 34000, (64, 60)).astype(numpy.uint16)
    Image.fromarray(values).save(tmp_path / "a.png")
    options = dict(color="gray", transform=[stoker.Window(level=40, width=400, offset=32768), stoker.Resize((16, 16))])
    numpy.testing.assert_array_equal(one(tmp_path / "a.png", decode="fast", **options), one(tmp_path / "a.png", **options))


def test_a_cut_file_is_named_as_it_is_with_exact(tmp_path):
    content = io.BytesIO()
    smooth().save(content, "jpeg", quality=90)
    (tmp_path / "a.jpg").write_bytes(content.getvalue()[:3000])
    for decode in ("exact", "fast"):
        with stoker.Loader(samples=[(tmp_path / "a.jpg", 0)], decode=decode, transform=[stoker.Resize((20, 20))]) as loader, \
                pytest.raises(stoker.Error, match="a.jpg.*the data ends early"):
            next(iter(loader))


def test_the_seek_index_changes_no_pixel(tmp_path):
    smooth().save(tmp_path / "a.jpg", quality=90)
    samples = [(tmp_path / "a.jpg", 0)]
    epochs = []
    for seek_index in ("off", "memory"):
        with stoker.Loader(samples=samples, decode="fast", transform=TRANSFORMS["rrc"], output="numpy", copy=True, seek_index=seek_index) as loader:
            epochs.append([next(iter(loader)).data for _ in range(8)])
    numpy.testing.assert_array_equal(epochs[0], epochs[1])
