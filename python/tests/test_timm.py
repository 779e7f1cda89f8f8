"""TimmRandAugment against the real timm: the pixels of its operations, and what its chance picks."""

import importlib.util
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from stoker.transforms import compile_transform
from test_augment import CHANCE, Image, distance, drawn, photo, run, same
from vision import torchvision

import stoker


@pytest.fixture(scope="module")
def timm():
    """One file of timm. The whole package takes seconds to import, and needs others that the tests do without."""
    spec = importlib.util.find_spec("timm")
    if spec is None:
        pytest.skip("timm is not installed")
    path = Path(spec.submodule_search_locations[0]) / "data" / "auto_augment.py"
    file = importlib.util.spec_from_file_location("timm.data.auto_augment", path)
    module = importlib.util.module_from_spec(file)
    file.loader.exec_module(module)
    return module


TEXTS = ["rand-m9-n3-p1-mstd0.5-inc1", "rand-m7-n2-p1", "rand-m15-n2-p1-mmax20-inc1", "rand-m30-n2-p1-mmax30", "rand-m9-n2-p1-mstd101-t3a",
         "rand-m8-n6-p1-mstd2-t3aw", "rand-m9-n12-p1-mstd1-tweights"]
FILL = (124, 116, 104)
# timm's functions for the actions that Stoker drew, with their arguments.
CALLS = {"autocontrast": "auto_contrast", "equalize": "equalize", "invert": "invert", "rotate": "rotate", "posterize": "posterize",
         "solarize": "solarize", "solarize_add": "solarize_add", "saturation": "color", "contrast": "contrast",
         "brightness": "brightness", "sharpness": "sharpness", "box_blur": "gaussian_blur"}
FILTERS = {"nearest": Image.Resampling.NEAREST, "bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def as_timm_does(timm, image, action):
    what, figures = action["what"], action["figures"]
    words = {"fillcolor": tuple(action["fill"][:3]), "resample": FILTERS[action["filter"]]}
    if what == "matrix":
        _, b, c, d, _, f = figures[:6]
        if b != 0:
            return timm.shear_x(image, b, **words)
        if d != 0:
            return timm.shear_y(image, d, **words)
        return timm.translate_x_abs(image, c, **words) if c != 0 else timm.translate_y_abs(image, f, **words)
    if what == "posterize" and figures[0] == 0:
        return Image.new(image.mode, image.size)  # Pillow 13 refuses to keep no bit, and timm with it; before, that was black
    call = getattr(timm, CALLS[what])
    if what in ("autocontrast", "equalize", "invert"):
        return call(image, **words)
    return call(image, int(figures[0]) if what in ("posterize", "solarize", "solarize_add") else figures[0], **words)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("interpolation", ["random", "nearest"])
def test_pixels_are_those_of_timm(timm, text, interpolation):
    seen = set()
    for number in range(120):
        pixels = photo(*[(67, 45), (64, 64), (31, 130)][number % 3], 3, number)
        mine, actions = run(stoker.TimmRandAugment(text, interpolation, FILL), pixels, number)
        image = Image.fromarray(pixels)
        for action in actions:
            image = as_timm_does(timm, image, action)
            seen.add(action["what"])
        same(mine, np.asarray(image), actions)
    if text.endswith("-t3a"):
        assert seen == {"solarize", "saturation", "box_blur"}
    else:
        assert seen == {*CALLS, "matrix"} - ({"solarize_add"} if "3aw" in text else {"box_blur"})


class Recorded:
    """What timm's RandAugment calls, and with which numbers."""

    def __init__(self, timm, text, hparams=None):
        self.calls = []
        self.transform = timm.rand_augment_transform(text, {"img_mean": FILL, **(hparams or {})})
        for op in self.transform.ops:
            op.aug_fn = lambda image, *figures, name=op.name, **words: self.calls.append((*self.named(name, figures), words)) or image

    @staticmethod
    def named(name, figures):
        return ("Color", (1 - figures[0],)) if name == "Desaturate" else (name.replace("Increasing", ""), figures)

    def draw(self, count):
        image = Image.new("RGB", (100, 80))
        lists = []
        for _ in range(count):
            self.calls.clear()
            self.transform(image)
            lists.append(list(self.calls))
        return lists


PICKS = {"autocontrast": "AutoContrast", "equalize": "Equalize", "invert": "Invert", "rotate": "Rotate", "posterize": "Posterize",
         "solarize": "Solarize", "solarize_add": "SolarizeAdd", "saturation": "Color", "contrast": "Contrast",
         "brightness": "Brightness", "sharpness": "Sharpness", "box_blur": "GaussianBlur"}


def in_words_of_timm(action):
    """Name and number of an action, as timm has them."""
    what, figures = action["what"], action["figures"]
    if what != "matrix":
        return PICKS[what], figures[0]
    _, b, c, d, _, f = figures[:6]
    return max((("ShearX", b), ("ShearY", d), ("TranslateXRel", c / 100), ("TranslateYRel", f / 80)), key=lambda pair: abs(pair[1]))


@pytest.mark.parametrize("text", ["rand-m9-mstd0.5-inc1", "rand-m6-n3-p0.7-mstd1", "rand-m12-n2-p1-mmax15-mstd101-inc1", "rand-m10",
                                  "rand-m9-n2-mstd0.5-t3a", "rand-m9-n3-p0.9-mstd1-t3aw", "rand-m9-n5-p1-mstd1-tweights"])
def test_picks_and_magnitudes_are_distributed_as_timms(timm, text):
    random.seed(7)
    np.random.seed(7)
    count = 3000
    theirs = Recorded(timm, text).draw(count)
    mine = [[in_words_of_timm(action) for action in actions] for actions in drawn(stoker.TimmRandAugment(text, fill=FILL), count)]
    assert distance([len(calls) for calls in mine], [len(calls) for calls in theirs]) < CHANCE
    names = sorted({name for calls in theirs for name, _, _ in calls})
    assert len(names) == (2 + 1 if text.endswith("t3a") else 13 if text.endswith("t3aw") else 15)
    assert distance([names.index(name) for calls in mine for name, _ in calls],
                    [names.index(name) for calls in theirs for name, _, _ in calls]) < CHANCE
    for name in names:
        numbers = [figures[0] if figures else 0.0 for calls in theirs for called, figures, _ in calls if called == name]
        ours = [number for calls in mine for called, number in calls if called == name]
        numbers, ours = np.round(numbers, 9), np.round(ours, 9)
        if "mstd" not in text:
            assert set(ours) == set(numbers), name
        assert distance(ours, numbers) < CHANCE, name


def test_filters_are_drawn_as_timm_draws_them(timm):
    filters = [action["filter"] for actions in drawn(stoker.TimmRandAugment("rand-m9-n4-p1"), 500) for action in actions]
    assert set(filters) == {"bilinear", "bicubic"}
    assert abs(filters.count("bicubic") / len(filters) - 0.5) < 0.05


def test_a_compose_with_timms_randaugment_is_translated(timm):
    torchvision()
    from torchvision import transforms as T

    steps = [T.RandomResizedCrop(48), timm.rand_augment_transform("rand-m9-n3-mstd0.5-inc1", {"img_mean": FILL, "interpolation": 3}),
             T.ToTensor(), T.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))]
    mine = [stoker.RandomResizedCrop(48), stoker.TimmRandAugment("rand-m9-n3-mstd0.5-inc1", "bicubic", FILL),
            stoker.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))]
    assert in_short(T.Compose(steps)) == in_short(mine)
    uniform = timm.rand_augment_transform("rand-m5-p0.25-mstd200-mmax20")
    assert in_short(uniform) == in_short(stoker.TimmRandAugment("rand-m5-p0.25-mstd101-mmax20"))


def in_short(transform):
    from stoker import _engine

    return _engine.transform_text(compile_transform(transform))


@pytest.mark.slow
def test_timms_transform_for_training_is_translated():
    torchvision()
    create_transform = pytest.importorskip("timm.data").create_transform
    theirs = create_transform(48, is_training=True, auto_augment="rand-m9-mstd0.5-inc1", interpolation="bicubic", re_prob=0.25, re_mode="pixel",
                              mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    mine = [stoker.RandomResizedCrop(48, interpolation="bicubic"), stoker.HorizontalFlip(),
            stoker.TimmRandAugment("rand-m9-mstd0.5-inc1", "bicubic", FILL), stoker.Normalize("imagenet"),
            stoker.RandomErasing(0.25, (0.02, 1 / 3), (math.exp(math.log(0.3)), math.exp(math.log(1 / 0.3))), "random")]
    assert in_short(theirs) == in_short(mine)


@pytest.mark.parametrize("text", ["rand-m9-mstd0.5-t3a", "rand-m9-n3-t3aw", "rand-m7-tweights"])
def test_sets_of_timm_are_translated(timm, text):
    assert in_short(timm.rand_augment_transform(text, {})) == in_short(stoker.TimmRandAugment(text))
    assert text.split("-")[-1] in in_short(stoker.TimmRandAugment(text))


def test_what_timm_has_beyond_that_is_refused_by_name(timm):
    with pytest.raises(stoker.UsageError, match="timm's RandAugment with a set of operations"):
        compile_transform(timm.rand_augment_transform("rand-m9", {}, transforms=["Rotate", "Invert"]))
    with pytest.raises(stoker.UsageError, match="t3b.*none of the sets tweights, t3a, t3aw"):
        stoker.TimmRandAugment("rand-m9-t3b")
    with pytest.raises(stoker.UsageError, match="n15 is more than the 14 operations of t3aw"):
        stoker.TimmRandAugment("rand-m9-n15-t3aw")
    with pytest.raises(stoker.UsageError, match="timm's AugMixAugment has no counterpart"):
        compile_transform(timm.augment_and_mix_transform("augmix-m5-w4-d2"))
    Mixup = type("Mixup", (), {"__module__": "timm.data.mixup"})  # its module needs torch and more of timm
    with pytest.raises(stoker.UsageError, match="timm's Mixup has no counterpart") as refused:
        compile_transform([stoker.RandomResizedCrop(9), Mixup()])
    assert "stoker.RandomChoice([stoker.MixUp(0.8), stoker.CutMix()])" in refused.value.hint


def test_wrong_texts_are_refused_with_the_right_form():
    for text in ("rand-m9-w0", "original-mstd0.5", 9):
        with pytest.raises(stoker.UsageError) as refused:
            stoker.TimmRandAugment(text)
        assert "rand-m9-mstd0.5-inc1" in json.dumps([str(refused.value), refused.value.hint])
