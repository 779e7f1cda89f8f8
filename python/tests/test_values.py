"""Operations on float32 and uint16 values: those of numpy, as MONAI computes them."""

import json

import numpy as np
import pytest
from test_augment import photo

import stoker
from stoker import _engine

Image = pytest.importorskip("PIL.Image")
ALWAYS = {
    "shift": stoker.RandShiftIntensity(0.5, 1),
    "scale": stoker.RandScaleIntensity((-0.5, 0.9), 1),
    "gamma": stoker.RandAdjustContrast(1, (0.5, 4.5)),
    "noise": stoker.RandGaussianNoise(1, 0.25, 0.1),
    "flip": stoker.VerticalFlip(1),
}


def gamma(values, power):
    """MONAI's AdjustContrast."""
    least, spread = values.min(), values.max() - values.min()
    return ((values - least) / float(spread + 1e-7)) ** power * spread + least


def expected(values, action):
    figure = np.float32(action["figures"][0])
    return {"shift_values": lambda: values + figure, "scale_values": lambda: values * figure, "gamma_values": lambda: gamma(values, figure)}[action["what"]]()


@pytest.fixture
def slices(tmp_path):
    numbers = np.random.default_rng(4)
    made = []
    for number in range(4):
        pixels = (1000 * number + numbers.integers(0, 60000, (40, 30))).clip(0, 65535).astype(np.uint16)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
        made.append(pixels)
    return tmp_path, made


def rows(folder, transform, **options):
    loader = stoker.Loader(folder, batch_size=4, transform=transform, color="keep", seed=3, output="numpy", **options)
    batch = next(iter(loader))
    return np.array(batch.data), np.array(batch.ids)


def actions_of(transform, number, channels=1, width=30, height=40):
    text = json.dumps([stoker.ToFloat().to_json(), transform.to_json()])
    return _engine.draw_actions(text, width=width, height=height, channels=channels, seed=3, id=int(number))


@pytest.mark.parametrize("name", ["shift", "scale", "gamma"])
def test_values_of_windowed_slices_are_numpys(slices, name):
    folder, _ = slices
    window = stoker.Window(30000, 40000, offset=0)
    plain, ids = rows(folder, [window])
    made, _ = rows(folder, [window, ALWAYS[name]])
    for before, after, number in zip(plain, made, ids):
        (action,) = actions_of(ALWAYS[name], number)
        if name == "gamma":
            np.testing.assert_allclose(after, expected(before, action), rtol=2e-6, atol=2e-7)
        else:
            assert (after == expected(before, action)).all()


@pytest.mark.parametrize("transform", [stoker.RandShiftIntensity((-20000, 20000), 1), stoker.RandScaleIntensity(0.9, 1), stoker.RandAdjustContrast(1, (0.5, 2))])
def test_words_are_computed_as_floats_rounded_and_clamped(slices, transform):
    folder, pixels = slices
    made, ids = rows(folder, [transform])
    assert made.dtype == np.uint16
    for before, after, number in zip(pixels, made, ids):
        (action,) = actions_of(transform, number)
        exact = np.clip(expected(before.astype(np.float32), action), 0, 65535)
        if isinstance(transform, stoker.RandAdjustContrast):
            assert np.abs(after[0].astype(float) - exact).max() <= 0.51
        else:
            assert (after[0] == np.rint(exact)).all()


def test_photos_take_them_after_normalize():
    pixels = photo(32, 24)
    text = [stoker.Normalize("imagenet"), stoker.RandScaleIntensity(0.5, 1), stoker.RandShiftIntensity(0.5, 1)]
    plain, _ = _engine.transform_image(json.dumps([text[0].to_json()]), pixels, seed=1, id=5)
    made, actions = _engine.transform_image(json.dumps([operation.to_json() for operation in text]), pixels, seed=1, id=5)
    for action in actions:
        plain = expected(plain, action)
    assert (made == plain).all()


def test_noise_is_normal_and_each_sample_has_its_own(slices):
    folder, _ = slices
    window = stoker.Window(30000, 40000, offset=0)
    plain, _ = rows(folder, [window])
    made, _ = rows(folder, [window, stoker.RandGaussianNoise(1, 0.25, 0.1, sample_std=False)])
    noise = made - plain
    assert abs(noise.mean() - 0.25) < 0.01 and abs(noise.std() - 0.1) < 0.01
    assert (np.abs(noise[0] - noise[1]) > 0).mean() > 0.9
    again, _ = rows(folder, [window, stoker.RandGaussianNoise(1, 0.25, 0.1, sample_std=False)], num_workers=2)
    assert (again == made).all()
    deviations = [actions_of(stoker.RandGaussianNoise(1, 0, 0.4), number)[0]["figures"][1] for number in range(400)]
    assert 0 <= min(deviations) and max(deviations) <= 0.4 and abs(np.mean(deviations) - 0.2) < 0.03


@pytest.mark.parametrize("options", [{}, {"layout": "NHWC"}])
def test_slices_are_turned_upside_down_and_mirrored(slices, options):
    folder, pixels = slices
    made, _ = rows(folder, [stoker.VerticalFlip(1), stoker.HorizontalFlip(1)], **options)
    for before, after in zip(pixels, made):
        assert (after.reshape(40, 30) == before[::-1, ::-1]).all()
    plain, _ = rows(folder, [stoker.Window(30000, 40000, offset=0), stoker.Normalize(0.5, 0.25)], **options)
    turned, _ = rows(folder, [stoker.Window(30000, 40000, offset=0), stoker.VerticalFlip(1), stoker.Normalize(0.5, 0.25)], **options)
    axis = 1 if options else 2
    assert (turned == np.flip(plain, axis)).all()


def test_probabilities_are_kept():
    for transform in (stoker.RandShiftIntensity(1, 0.3), stoker.RandScaleIntensity(1, 0.3), stoker.RandAdjustContrast(0.3), stoker.RandGaussianNoise(0.3)):
        assert abs(sum(bool(actions_of(transform, number)) for number in range(1000)) / 1000 - 0.3) < 0.05


@pytest.mark.parametrize("transform, words", [
    ([stoker.RandShiftIntensity(0.1)], ["RandShiftIntensity", "pixels are bytes", "Normalize, ToFloat or Window"]),
    ([stoker.RandomApply([stoker.RandGaussianNoise()])], ["RandomApply", "RandGaussianNoise takes floats"]),
    ([stoker.ToFloat(), stoker.RandScaleIntensity(0.1), stoker.CenterCrop(8)], ["CenterCrop", "after RandScaleIntensity"]),
    ([stoker.ToFloat(), stoker.RandScaleIntensity(0.1), stoker.Normalize("imagenet")], ["Normalize", "after RandScaleIntensity"]),
])
def test_orders_that_make_no_sense_are_refused(tmp_path, transform, words):
    Image.fromarray(photo(20, 20)).save(tmp_path / "a.png")
    with pytest.raises(stoker.UsageError) as refused:
        stoker.Loader(tmp_path, batch_size=1, transform=transform)
    assert all(word in str(refused.value) + refused.value.hint for word in words), str(refused.value)


def test_colours_before_window_are_refused(slices):
    with pytest.raises(stoker.UsageError, match="8-bit images, and these have 16 bits"):
        stoker.Loader(slices[0], batch_size=1, transform=[stoker.ColorJitter(0.3), stoker.Window(30000, 40000, offset=0)])


def test_halves_are_refused(slices):
    with pytest.raises(stoker.UsageError, match="computes float32 or uint16.*float16"):
        rows(slices[0], [stoker.ToFloat(), stoker.RandGaussianNoise()], dtype="float16")
