"""exif_orientation=True is Pillow's ImageOps.exif_transpose, before everything else."""

import io

import numpy
import pytest
from conftest import picture
from PIL import Image, ImageOps
from test_codecs_reference import one, pixels

import stoker

ORIENTATIONS = range(1, 9)


def save(path, orientation, image=None, **options):
    exif = Image.Exif()
    exif[0x0112] = orientation
    (image or picture(orientation, 53, 38)).save(path, exif=exif, **options)
    return path


def upright(path):
    return ImageOps.exif_transpose(Image.open(path).convert("RGB"))


def put_upright(path):
    """The same picture as Pillow turns it, under the same name: what is drawn at random depends on the name."""
    turned = upright(path)
    turned.save(path, "png")


JPEGS = {"4:2:0": dict(subsampling=2), "4:2:2": dict(subsampling=1), "4:4:4": dict(subsampling=0), "progressive": dict(progressive=True)}


@pytest.mark.parametrize("kind", JPEGS)
@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_a_jpeg_is_turned_as_pillow_turns_it(tmp_path, orientation, kind):
    path = save(tmp_path / "a.jpg", orientation, quality=90, **JPEGS[kind])
    numpy.testing.assert_array_equal(one(path, layout="NHWC", exif_orientation=True), pixels(upright(path)))
    numpy.testing.assert_array_equal(one(path, layout="NHWC"), pixels(Image.open(path)))   # off by default, as in torchvision


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_a_png_is_turned_as_pillow_turns_it(tmp_path, orientation, mode):
    path = save(tmp_path / "a.png", orientation, picture(1, 21, 34).convert(mode))
    expected = ImageOps.exif_transpose(Image.open(path))
    numpy.testing.assert_array_equal(one(path, layout="NHWC", color="keep", exif_orientation=True), pixels(expected))


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_a_16_bit_png_is_turned_as_pillow_turns_it(tmp_path, orientation):
    values = numpy.random.default_rng(0).integers(0, 65536, (24, 17)).astype(numpy.uint16)
    path = save(tmp_path / "a.png", orientation, Image.fromarray(values))
    expected = numpy.asarray(ImageOps.exif_transpose(Image.open(path))).astype(numpy.float32) / numpy.float32(65535)
    numpy.testing.assert_array_equal(one(path, color="keep", transform=[stoker.ToFloat()], exif_orientation=True)[0], expected)


@pytest.mark.parametrize("size", [(30, 20), (90, 70)])
@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_resize_follows_the_turn(tmp_path, orientation, size):
    path = save(tmp_path / "a.jpg", orientation)
    expected = upright(path).resize(size[::-1], Image.BILINEAR)
    numpy.testing.assert_array_equal(one(path, layout="NHWC", transform=[stoker.Resize(size)], exif_orientation=True), pixels(expected))


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_the_shorter_side_and_the_middle_are_those_of_the_turned_picture(tmp_path, orientation):
    path = save(tmp_path / "a.jpg", orientation, picture(2, 150, 90))
    turned = upright(path)
    resized = turned.resize([max(64, int(64 * side / min(turned.size))) for side in turned.size], Image.BILINEAR)
    left, top = int(round((resized.width - 60) / 2.0)), int(round((resized.height - 40) / 2.0))
    expected = resized.crop((left, top, left + 60, top + 40))
    data = one(path, layout="NHWC", transform=[stoker.Resize(64), stoker.CenterCrop((40, 60))], exif_orientation=True)
    numpy.testing.assert_array_equal(data, pixels(expected))


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_a_random_crop_is_drawn_in_the_turned_picture(tmp_path, orientation):
    """The crop of a turned JPEG is the crop of a PNG that Pillow has turned, and is one of the rectangles there are."""
    path = save(tmp_path / "a.jpg", orientation, picture(3, 60, 40))
    transform = [stoker.RandomResizedCrop((14, 10), scale=(0.25, 0.25), ratio=(1, 1)), stoker.HorizontalFlip(0)]
    data = one(path, layout="NHWC", transform=transform, exif_orientation=True)
    turned = upright(path)
    side = round((turned.width * turned.height * 0.25) ** 0.5)
    found = [(x, y) for y in range(turned.height - side + 1) for x in range(turned.width - side + 1)
             if numpy.array_equal(pixels(turned.crop((x, y, x + side, y + side)).resize((10, 14), Image.BILINEAR)), data)]
    assert len(found) == 1
    options = [dict(layout="NHWC", seed=seed, transform=[stoker.RandomResizedCrop(24), stoker.HorizontalFlip()]) for seed in range(20)]
    crops = [one(path, exif_orientation=True, **each) for each in options]
    put_upright(path)
    for crop, each in zip(crops, options):
        numpy.testing.assert_array_equal(crop, one(path, **each))


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_views_share_one_turned_decode(tmp_path, orientation):
    path = save(tmp_path / "a.jpg", orientation, picture(4, 60, 40))
    views = [stoker.Views(big=(2, [stoker.RandomResizedCrop(24)]), small=(3, [stoker.RandomResizedCrop(8), stoker.HorizontalFlip()]))]

    def crops(**options):
        with stoker.Loader(samples=[(path, 0)], output="numpy", copy=True, transform=views, **options) as loader:
            return next(iter(loader)).data

    turned = crops(exif_orientation=True)
    put_upright(path)
    expected = crops()
    for name in ("big", "small"):
        numpy.testing.assert_array_equal(turned[name], expected[name])


def test_xmp_says_it_where_exif_does_not(tmp_path):
    content = io.BytesIO()
    picture(5).save(content, "jpeg")
    xmp = b'http://ns.adobe.com/xap/1.0/\0<rdf:Description tiff:Orientation="8"/>'
    segment = b"\xff\xe1" + (len(xmp) + 2).to_bytes(2, "big") + xmp
    path = tmp_path / "a.jpg"
    path.write_bytes(content.getvalue()[:2] + segment + content.getvalue()[2:])
    assert upright(path).size == (40, 48)
    numpy.testing.assert_array_equal(one(path, layout="NHWC", exif_orientation=True), pixels(upright(path)))


def test_pictures_that_are_turned_differently_make_one_batch(tmp_path):
    samples = [(save(tmp_path / f"{number}.jpg", number, picture(number, 40, 40)), number) for number in ORIENTATIONS]
    with stoker.Loader(samples=samples, batch_size=8, output="numpy", layout="NHWC", exif_orientation=True, num_workers=2) as loader:
        data, labels = next(iter(loader))
        for row, label in zip(data, labels):
            numpy.testing.assert_array_equal(row, pixels(upright(tmp_path / f"{label}.jpg")))


def test_pictures_that_turn_to_another_size_are_named(tmp_path):
    samples = [(save(tmp_path / "flat.jpg", 1), 0), (save(tmp_path / "tall.jpg", 6), 1)]
    with stoker.Loader(samples=samples, batch_size=2, exif_orientation=True) as loader, pytest.raises(stoker.Error, match="tall.jpg.*another size"):
        next(iter(loader))
