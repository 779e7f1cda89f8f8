"""16-bit slices through operations that move pixels: the values are those of torchvision on Pillow images of mode F."""

import json

import numpy as np
import pytest
from test_augment import Reference

import stoker
from stoker import _engine

Image = pytest.importorskip("PIL.Image")
WIDTH, HEIGHT, COUNT = 43, 58, 24
NUMBERS = list(range(COUNT))  # the sample ids of the rows that were loaded last

# Values must be equal to the bit.
EXACT = {
    "rotation": stoker.RandomRotation(180, fill=-1000),
    "rotation bilinear": stoker.RandomRotation(60, "bilinear", fill=70000.5),
    "rotation bicubic": stoker.RandomRotation(60, "bicubic"),
    "rotation around": stoker.RandomRotation((10, 90), "bilinear", center=(3, 40)),
    "rotation by quarters": stoker.RandomChoice([stoker.RandomRotation((at, at)) for at in (0, 90, 180, 270)]),
    "affine": stoker.RandomAffine(30, (0.1, 0.3), (0.7, 1.4), (-10, 10, -5, 5), fill=123),
    "affine bilinear": stoker.RandomAffine(90, (0.5, 0.5), (0.3, 3), 30, "bilinear", 40000, (1, 2)),
    "affine scale alone": stoker.RandomAffine(0, (0.2, 0.2), (0.4, 2.5)),
    "perspective": stoker.RandomPerspective(0.6, 1, fill=500),
    "perspective nearest": stoker.RandomPerspective(0.9, 1, "nearest", 65535),
    "pad": stoker.Pad((1, 2, 3, 4), -1024),
    "pad by edges": stoker.Pad(9, padding_mode="edge"),
    "pad by reflection": stoker.Pad(20, padding_mode="reflect"),
    "pad by symmetry": stoker.Pad(50, padding_mode="symmetric"),
    "crop": stoker.RandomCrop(40, 7, fill=1024),
    "crop where needed": stoker.RandomCrop(70, pad_if_needed=True, fill=4),
    "held": stoker.RandomOrder([stoker.RandomApply([stoker.RandomRotation(20, "bilinear")]), stoker.VerticalFlip(), stoker.HorizontalFlip()]),
}


@pytest.fixture(scope="module")
def slices(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slices")
    numbers = np.random.default_rng(5)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    made = []
    for number in range(COUNT):
        waves = 30000 + 25000 * np.sin(x / (3 + number % 5)) * np.cos(y / 7) + numbers.normal(0, 900, (HEIGHT, WIDTH))
        pixels = waves.clip(0, 65535).astype(np.uint16)
        Image.fromarray(pixels).save(folder / f"{number:02}.png")
        made.append(pixels)
    return folder, made


def rows(folder, transform, **options):
    loader = stoker.Loader(folder, batch_size=COUNT, transform=transform, seed=3, output="numpy", **{"color": "keep", **options})
    batch = next(iter(loader))
    NUMBERS[:] = [int(number) for number in batch.ids]
    return np.array(batch.data)[:, 0]


def moved(pixels, transform, number):
    """What torchvision makes of a Pillow image of that mode, with the parameters that Stoker draws."""
    reference = Reference()
    image = Image.fromarray(pixels)
    text = json.dumps([operation.to_json() for operation in transform])
    for action in _engine.draw_actions(text, width=WIDTH, height=HEIGHT, channels=1, seed=3, id=NUMBERS[number], bits=16):
        image = reference.apply(image, action)
    return np.asarray(image)


@pytest.mark.parametrize("name", EXACT)
def test_values_are_those_of_pillows_mode_f(slices, name):
    folder, pixels = slices
    made = rows(folder, [EXACT[name]], dtype="float32")
    for number in range(COUNT):
        np.testing.assert_array_equal(made[number], moved(pixels[number].astype(np.float32), [EXACT[name]], number))


@pytest.mark.parametrize("name", ["rotation", "rotation bilinear", "affine", "perspective", "perspective nearest", "pad", "crop"])
def test_words_are_those_values_rounded_and_clamped(slices, name):
    folder, pixels = slices
    made = rows(folder, [EXACT[name]])
    assert made.dtype == np.uint16
    for number in range(COUNT):
        exact = moved(pixels[number].astype(np.float32), [EXACT[name]], number)
        np.testing.assert_array_equal(made[number], np.floor(exact.clip(0, 65535) + 0.5))  # halves go up


def test_nearest_words_are_those_of_pillows_mode_i16_but_for_places_between_two(slices):
    """Pillow finds places in fixed point for mode F, and in double for I;16."""
    folder, pixels = slices
    transform = stoker.RandomAffine(30, (0.1, 0.3), (0.7, 1.4), (-10, 10, -5, 5))
    made = rows(folder, [transform])
    for number in range(COUNT):
        assert (made[number] == moved(pixels[number], [transform], number)).mean() > 0.99


def windowed(values):
    low, scale = np.float32(10000), np.float32(1 / 40000)
    return ((values - low) * scale).clip(0, 1)


@pytest.mark.parametrize("options", [{}, {"color": "gray"}, {"num_workers": 0}])
def test_window_comes_before_or_after_and_fill_is_in_the_values_of_its_place(slices, options):
    folder, pixels = slices
    window = stoker.Window(30000, 40000, offset=0)
    after = rows(folder, [stoker.RandomRotation(30, "bilinear", fill=20000), window], **options)
    before = rows(folder, [window, stoker.RandomRotation(30, "bilinear", fill=0.75)], **options)
    for number in range(COUNT):
        values = pixels[number].astype(np.float32)
        np.testing.assert_array_equal(after[number], windowed(moved(values, [stoker.RandomRotation(30, "bilinear", fill=20000)], number)))
        np.testing.assert_array_equal(before[number], moved(windowed(values), [stoker.RandomRotation(30, "bilinear", fill=0.75)], number))


def test_geometry_on_both_sides(slices):
    folder, pixels = slices
    turn = stoker.RandomRotation(70, "bilinear", expand=True, fill=50)
    made = rows(folder, [turn, stoker.Resize((30, 31)), stoker.VerticalFlip(1), stoker.CenterCrop(24)], dtype="float32")
    for number in range(COUNT):
        image = Image.fromarray(moved(pixels[number].astype(np.float32), [turn, stoker.Resize((30, 31))], number))
        resized = np.asarray(image.resize((31, 30), Image.Resampling.BILINEAR))[::-1]
        np.testing.assert_allclose(made[number], resized[3:27, 4:28], rtol=1e-5)


def test_batches_are_the_same_for_any_number_of_workers(slices):
    transform = [stoker.RandomAffine(30, (0.1, 0.1), interpolation="bilinear"), stoker.Window(30000, 40000, offset=0), stoker.RandGaussianNoise(0.5)]
    alone = rows(slices[0], transform, num_workers=0)
    assert all((rows(slices[0], transform, num_workers=count) == alone).all() for count in (1, 3))


def test_a_fill_beyond_bytes_is_refused_for_bytes(slices, tmp_path):
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(tmp_path / "a.png")
    with pytest.raises(stoker.UsageError, match="fill = -1000 is not between 0 and 255") as refused:
        stoker.Loader(tmp_path, batch_size=1, transform=[stoker.RandomRotation(9, fill=-1000)])
    assert "Window" in refused.value.hint
