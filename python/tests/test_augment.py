"""Augmentations: the pixels are those of torchvision on Pillow images for the same drawn parameters."""

import json
import os
import pathlib

import numpy as np
import pytest
from vision import torchvision

import stoker
from stoker import _engine

Image = pytest.importorskip("PIL.Image")

SIZES = [(67, 45), (64, 64), (31, 130), (5, 3)]  # width, height
WIDE = [size for size in SIZES if min(size) > 8]

# Operations whose pixels must be equal to the bit, each with what it is drawn from, and the sizes that it can bear.
EXACT = {
    "jitter": (stoker.ColorJitter(0.4, 0.4, 0.2, 0.1), SIZES),
    "strong jitter": (stoker.ColorJitter((0, 3), (0, 3), (0, 3), 0.5), SIZES),
    "gray": (stoker.RandomGrayscale(0.5), SIZES),
    "one channel": (stoker.Grayscale(), SIZES),
    "three channels": (stoker.Grayscale(3), SIZES),
    "vertical flip": (stoker.VerticalFlip(), SIZES),
    "three flips": (stoker.RandomOrder([stoker.HorizontalFlip(), stoker.HorizontalFlip(0.7), stoker.HorizontalFlip(0.3)]), SIZES),
    "invert": (stoker.RandomInvert(), SIZES),
    "posterize": (stoker.RandomChoice([stoker.RandomPosterize(bits, 1) for bits in range(1, 9)]), SIZES),
    "solarize": (stoker.RandomChoice([stoker.RandomSolarize(at, 1) for at in (0, 1, 127.5, 128, 255, 256)]), SIZES),
    "sharpness": (stoker.RandomChoice([stoker.RandomAdjustSharpness(at, 1) for at in (0, 0.3, 1, 2, 17)]), SIZES),
    "autocontrast": (stoker.RandomAutocontrast(1), SIZES),
    "equalize": (stoker.RandomEqualize(1), SIZES),
    "tables": (stoker.RandomOrder([stoker.RandomPosterize(3, 0.7), stoker.RandomInvert(0.7), stoker.RandomSolarize(99, 0.7),
                                   stoker.ColorJitter(0.5), stoker.RandomEqualize(0.7)]), SIZES),
    "randaugment": (stoker.RandAugment(3, 9), SIZES),
    "randaugment far": (stoker.RandAugment(2, 30, fill=(9, 99, 199)), SIZES),
    "randaugment bilinear": (stoker.RandAugment(2, 14, interpolation="bilinear", fill=77), SIZES),
    "augmix": (stoker.AugMix(), SIZES),
    "augmix far": (stoker.AugMix(10, 5, 4, 0.3, interpolation="nearest", fill=(9, 99, 199)), SIZES),
    "augmix of few operations": (stoker.AugMix(10, 2, 1, 3.0, False, "bicubic"), SIZES),
    "augmix among others": (stoker.RandomOrder([stoker.AugMix(mixture_width=1), stoker.RandomInvert(), stoker.RandomEqualize()]), SIZES),
    "timm": (stoker.TimmRandAugment("rand-m9-n3-p1-mstd0.5"), SIZES),
    "timm increasing": (stoker.TimmRandAugment("rand-m9-mstd0.5-inc1", fill=(124, 116, 104)), SIZES),
    "timm far": (stoker.TimmRandAugment("rand-m30-n4-p1-mmax30-mstd101-inc1", interpolation="nearest"), SIZES),
    "trivial": (stoker.TrivialAugmentWide(), SIZES),
    "trivial bicubic": (stoker.TrivialAugmentWide(interpolation="bicubic"), SIZES),
    "auto imagenet": (stoker.AutoAugment(), SIZES),
    "auto cifar10": (stoker.AutoAugment("cifar10"), SIZES),
    "auto svhn": (stoker.AutoAugment("svhn"), SIZES),
    "rotation": (stoker.RandomRotation(180, fill=(1, 2, 3)), SIZES),
    "rotation by quarters": (stoker.RandomChoice([stoker.RandomRotation((at, at)) for at in (0, 90, 180, 270, -90)]), SIZES),
    "rotation around": (stoker.RandomRotation((10, 90), "bilinear", center=(3, 40)), SIZES),
    "rotation bicubic": (stoker.RandomRotation(45, "bicubic"), SIZES),
    "affine": (stoker.RandomAffine(30, (0.1, 0.3), (0.7, 1.4), (-10, 10, -5, 5)), SIZES),
    "affine bilinear": (stoker.RandomAffine(90, (0.5, 0.5), (0.3, 3), 30, "bilinear", 200, (1, 2)), SIZES),
    "affine scale alone": (stoker.RandomAffine(0, (0.2, 0.2), (0.4, 2.5)), SIZES),
    "perspective": (stoker.RandomPerspective(0.6, 1), WIDE),
    "perspective nearest": (stoker.RandomPerspective(0.9, 1, "nearest", (5, 6, 7)), WIDE),
    "perspective bicubic": (stoker.RandomPerspective(0.3, 1, "bicubic"), WIDE),
}
# Those whose result has another size: cropped to one size afterwards.
SHAPED = {
    "pad": stoker.RandomChoice([stoker.Pad(3, 7), stoker.Pad((2, 9), (1, 2, 3)), stoker.Pad((1, 2, 3, 4), padding_mode="edge"),
                                stoker.Pad(4, padding_mode="reflect"), stoker.Pad(30, padding_mode="symmetric")]),
    "crop": stoker.RandomCrop(40, 4),
    "crop reflected": stoker.RandomCrop((33, 41), (3, 7), padding_mode="reflect"),
    "crop where needed": stoker.RandomCrop(150, pad_if_needed=True, fill=(4, 5, 6)),
    "crop symmetric where needed": stoker.RandomCrop(150, (5, 2), True, padding_mode="symmetric"),
    "crop held": stoker.RandomApply([stoker.RandomCrop(31)], 1),
    "rotation with expand": stoker.RandomRotation(77, "bilinear", expand=True, fill=50),
    "zoom out": stoker.RandomZoomOut((1, 2, 3), (1, 2.5), 1),
}


def photo(width, height, channels=3, seed=0):
    """Smooth shapes, noise, and flat areas, as photos have."""
    numbers = np.random.default_rng([width, height, seed])
    y, x = np.mgrid[:height, :width]
    waves = [127 + 90 * np.sin(x / (3 + c) + seed) * np.cos(y / (5 + 2 * c)) for c in range(channels)]
    image = np.stack(waves, -1) + numbers.normal(0, 12, (height, width, channels))
    image[: height // 3, : width // 3] = numbers.integers(0, 256, channels)
    if seed % 3 == 1:
        image = image * 0.3 + 60  # few values
    return np.ascontiguousarray(image.clip(0, 255).astype(np.uint8))


DRAWS = 50


def run(transform, image, number, seed=11):
    operations = transform if isinstance(transform, list) else [transform]
    text = json.dumps([operation.to_json() for operation in operations])
    made, actions = _engine.transform_image(text, image, seed=seed, id=number)
    return made.transpose(1, 2, 0), actions


class Reference:
    """torchvision's functions for the actions that Stoker drew."""

    def __init__(self):
        torchvision()
        from torchvision.transforms import InterpolationMode
        from torchvision.transforms import functional as F

        self.F, self.modes = F, InterpolationMode

    def apply(self, image, action):
        what, f, F = action["what"], action["figures"], self.F
        channels = len(image.getbands())
        fill = action["fill"][:channels]
        mode = {"interpolation": self.modes(action["filter"]), "fill": fill}
        if what == "pad_crop":
            x, y, width, height = map(int, f[4:8])
            kept = {"fill": fill} if action["padding"] == "constant" else {}
            padded = F.pad(image, [int(side) for side in f[:4]], padding_mode=action["padding"], **kept)
            return F.crop(padded, y, x, height, width)
        if what == "perspective":
            width, height = image.size
            corners = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
            return F.perspective(image, corners, [[int(f[i]), int(f[i + 1])] for i in range(0, 8, 2)], **mode)
        if what == "rotate":
            return F.rotate(image, f[0], expand=bool(f[1]), center=[f[3], f[4]] if f[2] else None, **mode)
        if what == "matrix":  # as timm calls Pillow
            filters = {"nearest": 0, "bilinear": 2, "bicubic": 3}
            return image.transform(image.size, Image.Transform.AFFINE, f[:6], filters[action["filter"]],
                                   fillcolor=tuple(fill) if channels > 1 else fill[0])
        if what == "solarize_add":
            return image.point([min(255, v + int(f[0])) if v < 128 else v for v in range(256)] * channels)
        if what == "affine":
            return F.affine(image, f[0], [int(f[1]), int(f[2])], f[3], [f[4], f[5]], center=[f[6], f[7]], **mode)
        simple = {"flip_x": F.hflip, "flip_y": F.vflip, "invert": F.invert, "autocontrast": F.autocontrast, "equalize": F.equalize}
        if what in simple:
            return simple[what](image)
        if what == "gray":
            return F.to_grayscale(image, int(f[0]))
        if what == "posterize":  # Pillow 13 refuses to keep no bit; before, that was black
            return F.posterize(image, int(f[0])) if f[0] else Image.new(image.mode, image.size)
        if what == "blur":
            return F.gaussian_blur(image, [int(f[0]), int(f[1])], [f[2], f[2]])
        named = {"brightness": F.adjust_brightness, "contrast": F.adjust_contrast, "saturation": F.adjust_saturation,
                 "hue": F.adjust_hue, "solarize": F.solarize, "sharpness": F.adjust_sharpness}
        return named[what](image, f[0])

    def on_tensor(self, image, action):
        """The operations of AugMix, as torchvision has them for tensors."""
        f, F = action["figures"], self.F
        mode = {"interpolation": self.modes(action["filter"]), "fill": action["fill"][:3]}
        if action["what"] == "rotate":
            return F.rotate(image, f[0], **mode)
        if action["what"] == "affine":
            return F.affine(image, f[0], [int(f[1]), int(f[2])], f[3], [f[4], f[5]], center=[0, 0] if f[6] == 0 else None, **mode)
        named = {"brightness": F.adjust_brightness, "contrast": F.adjust_contrast, "saturation": F.adjust_saturation,
                 "solarize": F.solarize, "sharpness": F.adjust_sharpness, "autocontrast": F.autocontrast, "equalize": F.equalize}
        if action["what"] == "posterize":
            return F.posterize(image, int(f[0]))
        return named[action["what"]](image, *([] if action["what"] in ("autocontrast", "equalize") else [f[0]]))

    def all(self, pixels, actions):
        image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
        original = total = None
        for action in actions:
            if action["what"] == "mix_start":  # torchvision's AugMix, but with operations on Pillow images
                original, total = image, np.float32(action["figures"][0]) * np.asarray(image).astype(np.float32)
            elif action["what"] == "mix_chain":
                total = total + np.float32(action["figures"][0]) * np.asarray(image).astype(np.float32)
                image = Image.fromarray(total.astype(np.uint8)) if action["figures"][1] else original
            else:
                image = self.apply(image, action)
        made = np.asarray(image)
        return made[:, :, None] if made.ndim == 2 else made


@pytest.fixture(scope="module")
def reference():
    return Reference()


def doubtful(actions, width, height):
    """Pixels of a perspective whose source lies on the edge of a pixel: there the rounding of torchvision's least squares decides."""
    if [action["what"] for action in actions] != ["perspective"]:
        return np.zeros((height, width), bool)
    from torchvision.transforms.functional import _get_perspective_coeffs

    f = actions[0]["figures"]
    corners = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
    a, b, c, d, e, g, h, i = _get_perspective_coeffs(corners, [[int(f[at]), int(f[at + 1])] for at in range(0, 8, 2)])
    y, x = np.mgrid[:height, :width] + 0.5
    below = h * x + i * y + 1
    return np.logical_or(*(np.abs(place - np.rint(place)) < 1e-6 for place in ((a * x + b * y + c) / below, (d * x + e * y + g) / below)))


def same(mine, theirs, actions):
    assert mine.shape == theirs.shape
    wrong = (mine != theirs).any(-1)
    if wrong.any():
        wrong &= ~doubtful(actions, mine.shape[1], mine.shape[0])
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size} pixels, first at {np.argwhere(wrong)[0]}: {actions}"


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("channels", [3, 1])
def test_pixels_are_those_of_torchvision(name, channels, reference):
    transform, sizes = EXACT[name]
    if channels == 1 and '"fill": [' in json.dumps(transform.to_json()):
        pytest.skip("it fills three channels")
    for number in range(DRAWS):
        pixels = photo(*sizes[number % len(sizes)], channels, number)
        mine, actions = run(transform, pixels, number)
        same(mine, reference.all(pixels, actions), actions)


@pytest.mark.parametrize("name", SHAPED)
def test_pixels_of_another_size_are_those_of_torchvision(name, reference):
    for number in range(DRAWS):
        pixels = photo(*[(67, 45), (64, 64), (52, 101)][number % 3], 3, number)
        mine, actions = run([SHAPED[name], stoker.CenterCrop(31)], pixels, number)
        whole = reference.all(pixels, actions)
        image = Image.fromarray(whole)
        same(mine, np.asarray(reference.F.center_crop(image, [31, 31])), actions)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_pixels_are_those_of_torchvision_for_many_draws(name, reference):
    transform, sizes = EXACT[name]
    for number in range(2000):
        pixels = photo(*sizes[number % len(sizes)], 3, number)
        mine, actions = run(transform, pixels, number, seed=7)
        same(mine, reference.all(pixels, actions), actions)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_pixels_of_real_photos_are_those_of_torchvision(name, reference):
    if "STOKER_TEST_PHOTOS" not in os.environ:
        pytest.skip("STOKER_TEST_PHOTOS names no folder of photos")
    files = sorted(path for path in pathlib.Path(os.environ["STOKER_TEST_PHOTOS"]).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    for number, file in enumerate(files[:100]):
        with Image.open(file) as opened:
            whole = np.asarray(opened.convert("L" if number % 8 == 7 else "RGB"))
        pixels = np.ascontiguousarray(np.atleast_3d(whole)[:301 - number % 2, :251 + number % 3])
        if pixels.shape[2] == 1 and '"fill": [' in json.dumps(EXACT[name][0].to_json()):
            continue  # it fills three channels
        mine, actions = run(EXACT[name][0], pixels, number)
        same(mine, reference.all(pixels, actions), actions)


FIXED = [
    ("RandomAffine", dict(degrees=(13.3, 13.3), translate=None, scale=(0.9, 0.9), shear=(7.7, 7.7, 3.3, 3.3), interpolation="bilinear")),
    ("RandomRotation", dict(degrees=(13.3, 13.3), interpolation="bicubic")),
    ("ColorJitter", dict(brightness=(1.1, 1.1))),
    ("ColorJitter", dict(saturation=(0.7, 0.7))),
]


@pytest.mark.parametrize("name, options", FIXED)
def test_what_is_not_left_to_chance_is_a_float32_as_torchvision_draws_it(name, options):
    torchvision()
    from torchvision import transforms as T

    theirs = getattr(T, name)(**{**options, **({"interpolation": T.InterpolationMode(options["interpolation"])} if "interpolation" in options else {})})
    for number, size in enumerate([(67, 45), (64, 64), (224, 224), (31, 130)]):
        pixels = photo(*size, 3, number)
        mine, actions = run(getattr(stoker, name)(**options), pixels, number)
        same(mine, np.asarray(theirs(Image.fromarray(pixels))), actions)


@pytest.mark.parametrize("size", [(30, 20), (90, 120), (224, 31), (45, 67)])
def test_lanczos_gives_the_pixels_of_pillow(size):
    for number, channels in enumerate((1, 3)):
        pixels = photo(67, 45, channels, number)
        mine, _ = run(stoker.Resize(size, "lanczos"), pixels, 0)
        image = Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels).resize(size[::-1], Image.Resampling.LANCZOS)
        assert (mine.squeeze() == np.asarray(image)).all()


def test_every_colour_is_turned_as_pillow_turns_it(reference):
    steps = np.unique(np.r_[0:256:5, 1, 2, 127, 128, 253, 254, 255]).astype(np.uint8)
    colours = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), -1).reshape(len(steps), -1, 3)
    for turn in (0.0, 0.003, 0.1, -0.1, 0.25, -0.333, 0.5, -0.5):
        mine, actions = run(stoker.ColorJitter(hue=(turn, turn)) if turn else stoker.ColorJitter(hue=(-1e-9, 1e-9)), colours, 0)
        same(mine, reference.all(colours, actions), actions)


@pytest.mark.parametrize("kernel", [3, 9, 23, (5, 13)])
def test_a_blur_is_torchvisions_but_for_sums_that_lie_at_a_half(kernel, reference):
    import torch

    for number in range(12):
        pixels = photo(*[(67, 45), (64, 64), (31, 130)][number % 3], 1 if number % 4 == 3 else 3, number)
        mine, actions = run(stoker.GaussianBlur(kernel, (0.1, 5.0)), pixels, number)
        theirs = reference.all(pixels, actions)
        wide, high, sigma = actions[0]["figures"][:3]
        weights = []
        for size in (high, wide):
            places = torch.linspace(-(size - 1) / 2, (size - 1) / 2, int(size), dtype=torch.float64)
            line = torch.exp(-0.5 * (places / sigma) ** 2)
            weights.append(line / line.sum())
        planes = torch.from_numpy(pixels.transpose(2, 0, 1).astype(np.float64))[:, None]
        planes = torch.nn.functional.pad(planes, [int(wide) // 2] * 2 + [int(high) // 2] * 2, mode="reflect")
        exact = torch.nn.functional.conv2d(planes, torch.outer(*weights)[None, None])[:, 0].numpy().transpose(1, 2, 0)
        differs = mine != theirs
        assert (np.abs(exact[differs] % 1 - 0.5) < 1e-4).all()
        assert differs.mean() < 1e-3
        assert np.abs(mine.astype(int) - theirs).max() <= 1


def test_erasing_after_normalize_writes_the_value_into_a_rectangle():
    pixels = photo(64, 48)
    plain, _ = run([stoker.Normalize("imagenet")], pixels, 0)
    for number in range(50):
        mine, actions = run([stoker.Normalize("imagenet"), stoker.RandomErasing(1, value=(1.5, -2, 0.25))], pixels, number)
        x, y, width, height = map(int, actions[0]["figures"][:4])
        expected = plain.copy()
        expected[y : y + height, x : x + width] = (1.5, -2, 0.25)
        assert (mine == expected).all()


def test_erasing_before_normalize_writes_what_normalize_makes_of_the_value(photos):
    torch = pytest.importorskip("torch")
    torchvision()
    from torchvision import transforms as v1

    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    steps = [stoker.Resize((24, 24)), stoker.ToFloat(), stoker.RandomErasing(1, value=(0.1, 0.5, 0.9)), stoker.Normalize(mean, std)]
    pixels = photo(24, 24)
    made, _ = run(steps, pixels, 3)
    plain, _ = run([steps[0], steps[3]], pixels, 3)
    erased = (made != plain).any(-1)
    assert 5 < erased.sum() < 24 * 24 / 2
    wanted = v1.Normalize(mean, std)(torch.tensor([0.1, 0.5, 0.9]).view(3, 1, 1)).numpy().reshape(3)
    assert (made[erased] == wanted).all()
    compose = v1.Compose([v1.Resize((24, 24)), v1.ToTensor(), v1.RandomErasing(1, value=(0.1, 0.5, 0.9)), v1.Normalize(mean, std)])
    one, other = (np.array(next(iter(stoker.Loader(photos, batch_size=4, transform=transform, seed=3, output="numpy"))).data) for transform in (compose, steps))
    assert (one == other).all()

    noise = [stoker.Resize((24, 24)), stoker.ToFloat(), stoker.RandomErasing(1, scale=(0.3, 0.3), value="random"), stoker.Normalize(mean, std)]
    before, _ = run(noise, pixels, 5)
    after, _ = run([noise[0], noise[3], noise[2]], pixels, 5)
    erased = (after != plain).any(-1)
    assert erased.any() and (before[~erased] == plain[~erased]).all()
    assert np.allclose(before[erased], (after[erased] - np.float32(mean)) / np.float32(std), atol=1e-6)


def test_erasing_with_noise_is_normal_and_differs_by_sample():
    pixels = photo(256, 256)
    operations = [stoker.Normalize("imagenet"), stoker.RandomErasing(1, (0.3, 0.33), value="random")]
    noises = []
    for number in range(3):
        mine, actions = run(operations, pixels, number)
        x, y, width, height = map(int, actions[0]["figures"][:4])
        noises.append(mine[y : y + height, x : x + width].ravel())
        assert abs(noises[-1].mean()) < 0.03 and abs(noises[-1].std() - 1) < 0.03
    assert (noises[0][:100] != noises[1][:100]).any()
    assert (run(operations, pixels, 0)[0] == run(operations, pixels, 0)[0]).all()


def test_geometry_after_augmentations_takes_what_they_leave(reference):
    for number in range(20):
        pixels = photo(80, 60, 3, number)
        mine, actions = run([stoker.Resize((50, 70)), stoker.RandAugment(2, 9), stoker.Resize((30, 40)), stoker.RandomInvert()], pixels, number)
        F = reference.F
        image = F.resize(Image.fromarray(pixels), [50, 70])
        after = [action for action in actions if action["what"] != "invert"]
        image = F.resize(Image.fromarray(reference.all(np.asarray(image), after)), [30, 40])
        theirs = np.asarray(F.invert(image) if len(after) < len(actions) else image)
        same(mine, theirs, actions)


@pytest.mark.parametrize("vertical", [None, False, True])
def test_five_and_ten_crops_are_torchvisions(vertical, tmp_path, reference):
    for number, size in enumerate([(67, 45), (52, 101), (40, 33)]):
        Image.fromarray(photo(*size, 3, number)).save(tmp_path / f"{number}.png")
    crop = stoker.FiveCrop((33, 40)) if vertical is None else stoker.TenCrop((33, 40), vertical)
    batch = next(iter(stoker.Loader(tmp_path, batch_size=3, transform=[crop, stoker.RandomInvert(0)], output="numpy")))
    assert batch.data.shape == (3, 5 if vertical is None else 10, 3, 33, 40)
    for number, views in enumerate(np.array(batch.data)):
        image = Image.open(tmp_path / f"{number}.png")
        F = reference.F
        theirs = F.five_crop(image, [33, 40]) if vertical is None else F.ten_crop(image, [33, 40], vertical)
        for mine, other in zip(views, theirs, strict=True):
            assert (mine.transpose(1, 2, 0) == np.asarray(other)).all()


def drawn(transform, count, width=100, height=80):
    text = json.dumps([operation.to_json() for operation in (transform if isinstance(transform, list) else [transform])])
    return [_engine.draw_actions(text, width=width, height=height, channels=3, seed=5, id=number) for number in range(count)]


def distance(mine, theirs):
    """Kolmogorov and Smirnov: the largest gap between the two distributions, in units of what chance explains."""
    mine, theirs = np.sort(mine), np.sort(theirs)
    every = np.concatenate([mine, theirs])
    gap = np.abs(np.searchsorted(mine, every, "right") / len(mine) - np.searchsorted(theirs, every, "right") / len(theirs)).max()
    return gap * np.sqrt(len(mine) * len(theirs) / (len(mine) + len(theirs)))


CHANCE = 1.95  # a larger distance has a probability below 0.001


def figures(lists, what, at):
    return [action["figures"][at] for actions in lists for action in actions if action["what"] == what]


def test_parameters_are_distributed_as_torchvisions():
    torch = pytest.importorskip("torch")
    torchvision()
    from torchvision import transforms as T
    from torchvision.transforms import v2

    count, theirs = 1500, 1500
    torch.manual_seed(3)
    jitters = [T.ColorJitter.get_params((0.6, 1.4), (0.5, 1.5), (0.8, 1.2), (-0.1, 0.1)) for _ in range(theirs)]
    mine = drawn(stoker.ColorJitter(0.4, 0.5, 0.2, 0.1), count)
    for at, what in enumerate(("brightness", "contrast", "saturation", "hue")):
        assert distance(figures(mine, what, 0), [jitter[at + 1] for jitter in jitters]) < CHANCE, what
        place = [[action["what"] for action in actions].index(what) for actions in mine]
        assert distance(place, [jitter[0].tolist().index(at) for jitter in jitters]) < CHANCE, what

    affine = [T.RandomAffine.get_params([-30, 30], [0.1, 0.2], [0.5, 2], [-5, 5, -9, 9], [100, 80]) for _ in range(theirs)]
    mine = drawn(stoker.RandomAffine(30, (0.1, 0.2), (0.5, 2), (-5, 5, -9, 9)), count)
    flat = [[angle, *shift, scale, *shear] for angle, shift, scale, shear in affine]
    for at in range(6):
        assert distance(figures(mine, "affine", at), [row[at] for row in flat]) < CHANCE, at

    image = torch.zeros(3, 80, 100)
    erased = [T.RandomErasing.get_params(image, (0.02, 0.33), (0.3, 3.3), [0.0]) for _ in range(theirs)]
    mine = drawn(stoker.RandomErasing(1), count)
    for at, other in enumerate((1, 0, 3, 2)):
        assert distance(figures(mine, "erase", at), [row[other] for row in erased]) < CHANCE, at

    corners = [sum(T.RandomPerspective.get_params(100, 80, 0.5)[1], []) for _ in range(theirs)]
    mine = drawn(stoker.RandomPerspective(0.5, 1), count)
    for at in range(8):
        assert distance(figures(mine, "perspective", at), [row[at] for row in corners]) < CHANCE, at

    blurs = [T.GaussianBlur.get_params(0.1, 2.0) for _ in range(theirs)]
    assert distance(figures(drawn(stoker.GaussianBlur(3), count), "blur", 2), blurs) < CHANCE
    places = [T.RandomCrop.get_params(image, (30, 40)) for _ in range(theirs)]
    mine = drawn(stoker.RandomCrop((30, 40), padding=0), count)
    assert distance(figures(mine, "pad_crop", 4), [place[1] for place in places]) < CHANCE
    assert distance(figures(mine, "pad_crop", 5), [place[0] for place in places]) < CHANCE

    turns = [T.RandomRotation.get_params([-20, 50]) for _ in range(theirs)]
    assert distance(figures(drawn(stoker.RandomRotation((-20, 50)), count), "rotate", 0), turns) < CHANCE
    zooms = [v2.RandomZoomOut(side_range=(1, 3)).make_params([image])["padding"] for _ in range(theirs)]
    mine = drawn([stoker.RandomZoomOut(0, (1, 3), 1), stoker.Resize((9, 9))], count)
    for at in range(4):
        assert distance(figures(mine, "pad_crop", at), [zoom[at] for zoom in zooms]) < CHANCE, at


@pytest.mark.parametrize("scale, ratio", [((0.08, 1.0), (3 / 4, 4 / 3)), ((0.05, 0.4), (0.2, 1.0))])
def test_random_crops_are_distributed_as_torchvisions(scale, ratio):
    torch = pytest.importorskip("torch")
    torchvision()
    from torchvision import transforms as T

    y, x = np.mgrid[:80, :100]
    places = np.ascontiguousarray(np.stack([x, y, 0 * x], -1).astype(np.uint8))  # each pixel says where it was
    mine = []
    for number in range(1500):
        made, _ = run(stoker.RandomResizedCrop((80, 100), scale, ratio, "nearest"), places, number)
        (left, top), (right, bottom) = made[0, 0, :2].astype(int), made[-1, -1, :2].astype(int)
        mine.append((top, left, bottom - top + 1, right - left + 1))
    torch.manual_seed(4)
    theirs = [T.RandomResizedCrop.get_params(torch.zeros(3, 80, 100), scale, ratio) for _ in range(1500)]
    for at in range(4):
        assert distance([crop[at] for crop in mine], [crop[at] for crop in theirs]) < CHANCE, at


def test_augmix_is_drawn_as_torchvisions(monkeypatch):
    torch = pytest.importorskip("torch")
    torchvision()
    from torchvision.transforms import autoaugment

    calls, shares = [], []
    monkeypatch.setattr(autoaugment, "_apply_op", lambda image, name, magnitude, **_: calls.append((name, magnitude)) or image)
    torch.manual_seed(3)
    transform = autoaugment.AugMix(severity=5, alpha=0.7)
    sample = transform._sample_dirichlet
    monkeypatch.setattr(transform, "_sample_dirichlet", lambda params: shares.append(sample(params)) or shares[-1])
    count = 1500
    image = Image.new("RGB", (100, 80))
    theirs = []
    for _ in range(count):
        calls.clear()
        transform(image)
        theirs.append(list(calls))
    mine = drawn(stoker.AugMix(severity=5, alpha=0.7), count)
    assert distance([len(actions) - 4 for actions in mine], [len(called) for called in theirs]) < CHANCE
    of_image = [float(share[0, 0]) for share in shares[::2]]
    of_first = [float(chains[0, 0] * image[0, 1]) for image, chains in zip(shares[::2], shares[1::2])]
    assert distance(figures(mine, "mix_start", 0), of_image) < CHANCE
    assert distance([figures([actions], "mix_chain", 0)[0] for actions in mine], of_first) < CHANCE
    assert all(abs(sum(figures([actions], "mix_start", 0) + figures([actions], "mix_chain", 0)) - 1) < 1e-6 for actions in mine)
    same_names = {"rotate": "Rotate", "posterize": "Posterize", "solarize": "Solarize"}
    for what, name in same_names.items():
        numbers = [magnitude for called in theirs for other, magnitude in called if other == name]
        assert distance(figures(mine, what, 0), numbers) < CHANCE, what
        assert set(np.round(figures(mine, what, 0), 5)) == set(np.round(numbers, 5)), what
    factors = [1 + magnitude for called in theirs for other, magnitude in called if other == "Contrast"]
    assert distance(figures(mine, "contrast", 0), factors) < CHANCE
    shifts = [int(magnitude) for called in theirs for other, magnitude in called if other == "TranslateX" and int(magnitude)]
    assert set(figures(mine, "affine", 1)) - {0} == set(shifts)
    assert abs(len([shift for shift in figures(mine, "affine", 1) if shift]) / len(shifts) - 1) < 0.15


def test_augmix_on_tensors_differs_little(reference):
    """torchvision's AugMix makes a tensor of a Pillow image first, and its operations on tensors round otherwise."""
    torch = pytest.importorskip("torch")
    far = []
    for number in range(60):
        pixels = photo(64, 64, 3, number)
        mine, actions = run(stoker.AugMix(), pixels, number)
        original = total = None
        image = torch.from_numpy(pixels.transpose(2, 0, 1).copy())
        for action in actions:
            if action["what"] == "mix_start":
                original, total = image, torch.tensor(action["figures"][0], dtype=torch.float32) * image
            elif action["what"] == "mix_chain":
                total = total + torch.tensor(action["figures"][0], dtype=torch.float32) * image
                image = total.to(torch.uint8) if action["figures"][1] else original
            else:
                image = reference.on_tensor(image, action)
        far.append(np.abs(mine.astype(int) - image.numpy().transpose(1, 2, 0)).mean())
    assert np.mean(far) < 1 and np.median(far) < 0.7


def test_a_flip_may_come_twice():
    pixels = photo(40, 30)
    for first, second in ((1, 0), (0, 1), (1, 1)):
        made, _ = run([stoker.HorizontalFlip(first), stoker.CenterCrop(20), stoker.HorizontalFlip(second)], pixels, 0)
        plain, _ = run([stoker.CenterCrop(20)], pixels, 0)
        assert (made == (plain if first == second else plain[:, ::-1])).all()


def test_probabilities_are_kept():
    for p in (0.0, 0.1, 0.5, 1.0):
        share = sum(map(bool, drawn(stoker.RandomInvert(p), 2000))) / 2000
        assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / 2000) + 1e-9
        share = sum(map(bool, drawn(stoker.RandomApply([stoker.VerticalFlip(1)], p), 2000))) / 2000
        assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / 2000) + 1e-9
    chosen = drawn(stoker.RandomChoice([stoker.RandomInvert(1), stoker.VerticalFlip(1)], [1, 3]), 2000)
    assert abs(sum(actions[0]["what"] == "invert" for actions in chosen) / 2000 - 0.25) < 0.04


def test_magnitudes_of_policies_are_torchvisions():
    torchvision()
    from torchvision.transforms import autoaugment as policies

    for magnitude in (0, 9, 15, 16, 30):
        space = policies.RandAugment()._augmentation_space(31, (80, 100))
        seen = {}
        for actions in drawn(stoker.RandAugment(4, magnitude), 150):
            for action in actions:
                what, figure = action["what"], action["figures"]
                if what == "affine":
                    what = next((f"affine{at}" for at in (1, 2, 4, 5) if figure[at] != 0), None)
                    figure = [figure[int(what[-1])]] if what else figure
                seen.setdefault(what, set()).add(abs(figure[0]))
        factors = {round(1 + sign * float(space["Color"][0][magnitude]), 12) for sign in (1, -1)}
        assert {round(factor, 12) for factor in seen["saturation"]} == {round(abs(factor), 12) for factor in factors}
        assert seen["rotate"] == {float(space["Rotate"][0][magnitude])}
        assert seen["solarize"] == {float(space["Solarize"][0][magnitude])}
        assert seen["posterize"] == {float(int(space["Posterize"][0][magnitude]))}
        if magnitude > 0:
            assert seen["affine1"] == {int(space["TranslateX"][0][magnitude])}
            assert seen["affine2"] == {int(space["TranslateY"][0][magnitude])}


def test_a_torchvision_recipe_is_translated():
    torch = pytest.importorskip("torch")
    torchvision()
    from stoker.transforms import compile_transform
    from torchvision import transforms as v1
    from torchvision.transforms import v2

    mine = json.loads(compile_transform([
        stoker.RandomResizedCrop(32), stoker.HorizontalFlip(), stoker.RandAugment(2, 9), stoker.ColorJitter(0.4, 0.4, 0.2, 0.1),
        stoker.RandomApply([stoker.GaussianBlur(9)], 0.3), stoker.RandomRotation(15, "bilinear"), stoker.RandomCrop(28, 4),
        stoker.Normalize("imagenet"), stoker.RandomErasing(0.25)]))
    texts = [_engine.transform_text(json.dumps(mine))]
    for v in (v1, v2):
        steps = [v.RandomResizedCrop(32), v.RandomHorizontalFlip(), v.RandAugment(2, 9), v.ColorJitter(0.4, 0.4, 0.2, 0.1),
                 v.RandomApply([v.GaussianBlur(9)], 0.3), v.RandomRotation(15, v.InterpolationMode.BILINEAR), v.RandomCrop(28, 4)]
        steps += [v.ToTensor()] if v is v1 else [v.ToImage(), v.ToDtype(torch.float32, scale=True)]
        steps += [v.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), v.RandomErasing(0.25)]
        texts.append(_engine.transform_text(compile_transform(v.Compose(steps))))
    assert texts[0] == texts[1] == texts[2]
    with pytest.raises(stoker.UsageError, match="ElasticTransform has no counterpart") as refused:
        compile_transform(v2.ElasticTransform())
    assert "RandAugment" in refused.value.hint and "it gets one sample" in refused.value.hint
    with pytest.raises(stoker.UsageError, match="Lambda has no counterpart") as refused:
        compile_transform(v1.Compose([v1.TenCrop(8), v1.Lambda(torch.stack)]))
    assert "leave it out: crops are stacked" in refused.value.hint


BILINEAR, BICUBIC = {"interpolation": "bilinear"}, {"interpolation": "bicubic"}
# Operations by torchvision's name with arguments that are not the defaults, and Stoker's name where it is another.
TRANSLATED = [
    ("RandomResizedCrop", (24,), dict(scale=(0.2, 0.9), ratio=(0.5, 2), **BICUBIC)), ("Resize", (30,), BICUBIC), ("Resize", ((30, 40),), {}),
    ("CenterCrop", (20,), {}), ("CenterCrop", ((20, 24),), {}), ("RandomHorizontalFlip", (0.3,), {}, "HorizontalFlip"),
    ("RandomVerticalFlip", (0.3,), {}, "VerticalFlip"), ("Normalize", ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6)), {}),
    ("ColorJitter", (0.1, (0.5, 2), 0.3, (-0.1, 0.2)), {}), ("ColorJitter", (), dict(hue=0.1)), ("Grayscale", (3,), {}), ("RandomGrayscale", (0.7,), {}),
    ("RandomInvert", (0.2,), {}), ("RandomAutocontrast", (0.2,), {}), ("RandomEqualize", (0.2,), {}), ("RandomPosterize", (3, 0.2), {}),
    ("RandomSolarize", (99, 0.2), {}), ("RandomAdjustSharpness", (1.7, 0.2), {}), ("GaussianBlur", (5, (0.3, 1)), {}), ("GaussianBlur", ((3, 7),), {}),
    ("Pad", (3,), dict(padding_mode="reflect")), ("Pad", ((1, 2, 3, 4),), dict(fill=(1, 2, 3))), ("RandomCrop", (20, 4), dict(padding_mode="edge")),
    ("RandomCrop", ((20, 70),), dict(pad_if_needed=True, fill=7)), ("RandomRotation", (20,), dict(center=(3, 4), fill=9, **BILINEAR)),
    ("RandomRotation", ((5, 9),), {}), ("RandomAffine", (10,), dict(translate=(0.1, 0.2), scale=(0.8, 1.2), shear=(1, 2, 3, 4), fill=5, **BILINEAR)),
    ("RandomAffine", ((-3, 8),), dict(shear=6)), ("RandomPerspective", (0.3, 0.7), dict(fill=4, **BICUBIC)), ("RandomZoomOut", (3, (1, 2), 0.9), {}),
    ("RandAugment", (3, 7, 21), dict(fill=(1, 2, 3), **BILINEAR)), ("TrivialAugmentWide", (17,), dict(fill=9, **BICUBIC)), ("AutoAugment", (), BILINEAR),
    ("AugMix", (5, 2, 3, 0.7, False), BILINEAR), ("RandomErasing", (0.3, (0.1, 0.2), (0.5, 2), 0.25), {}), ("RandomErasing", (0.3,), dict(value="random")),
    ("FiveCrop", (20,), {}), ("TenCrop", ((20, 24), True), {}), ("MixUp", (), dict(alpha=0.3, num_classes=7)), ("CutMix", (), dict(alpha=0.3, num_classes=7)),
]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_every_operation_of_torchvision_is_translated_with_its_arguments(version):
    torchvision()
    from stoker.transforms import compile_transform
    from stoker.transforms.torchvision import _SAME_NAME
    from torchvision import transforms as v1
    from torchvision.transforms import InterpolationMode, v2

    theirs = v1 if version == "v1" else v2
    untold = {"RandomApply", "RandomChoice", "RandomOrder", *_SAME_NAME}
    for name, positional, named, *other in TRANSLATED:
        untold.discard(name)
        if not hasattr(theirs, name):
            assert version == "v1" and name in ("RandomZoomOut", "MixUp", "CutMix")
            continue
        modes = {word: InterpolationMode(value) if word == "interpolation" else value for word, value in named.items()}
        operation = getattr(theirs, name)(*positional, **modes)
        wanted = getattr(stoker, other[0] if other else name)(*positional, **named)
        assert _engine.transform_text(compile_transform([operation])) == _engine.transform_text(compile_transform([wanted])), operation
    held = [theirs.RandomInvert(0.1), theirs.Compose([theirs.RandomPosterize(4), theirs.RandomEqualize()])]
    ours = [stoker.RandomInvert(0.1), [stoker.RandomPosterize(4), stoker.RandomEqualize()]]
    for mine, wanted in ((theirs.RandomApply(held[:1], 0.3), stoker.RandomApply(ours[:1], 0.3)),
                         (theirs.RandomChoice(held, p=[0.2, 0.8]), stoker.RandomChoice(ours, [0.2, 0.8])), (theirs.RandomOrder(held), stoker.RandomOrder(ours))):
        untold.discard(type(mine).__name__)
        assert compile_transform([mine]) == compile_transform([wanted]), mine
    assert not untold, "operations that no row of the table tries"


def test_other_forms_of_torchvision_recipes_are_translated(photos):
    torch = pytest.importorskip("torch")
    torchvision()
    from stoker.transforms import compile_transform
    from torchvision import transforms as v1
    from torchvision.transforms import _presets, v2

    view = [stoker.RandomResizedCrop(32), stoker.HorizontalFlip(), stoker.Normalize("imagenet")]
    imagenet = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    compose = v1.Compose([v1.RandomResizedCrop(32), v1.RandomHorizontalFlip(), v1.ToTensor(), v1.Normalize(*imagenet)])
    assert compile_transform(compose) == compile_transform(view)
    assert stoker.Views(a=(2, compose), b=(1, [compose])) == stoker.Views(a=(2, view), b=(1, view))
    sequence = torch.nn.Sequential(v2.RandomResizedCrop(32), v2.RandomHorizontalFlip(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(*imagenet))
    assert compile_transform([v2.RGB(), sequence]) == compile_transform(view)
    preset = _presets.ImageClassification(crop_size=48, resize_size=60, interpolation=v1.InterpolationMode.BICUBIC)
    assert compile_transform(preset) == compile_transform([stoker.Resize(60, "bicubic"), stoker.CenterCrop(48), stoker.Normalize("imagenet")])

    def halved(image):
        return image // 2

    inside = v1.Compose([v1.Resize((20, 20)), halved, v1.ToTensor()])  # a callable of one sample, as in torchvision
    one, other = (np.array(next(iter(stoker.Loader(photos, batch_size=4, transform=transform, output="numpy"))).data)
                  for transform in (inside, [stoker.Resize((20, 20)), halved, stoker.ToFloat()]))
    assert (one == other).all() and 0 < one.max() <= 0.5


@pytest.fixture
def photos(tmp_path):
    for number in range(12):
        Image.fromarray(photo(90 + number, 70, 3, number)).save(tmp_path / f"{number:02}.png")
    return tmp_path


RECIPE = [stoker.RandomResizedCrop(48), stoker.HorizontalFlip(), stoker.RandAugment(2, 9), stoker.ColorJitter(0.4, 0.4, 0.2, 0.1),
          stoker.RandomApply([stoker.GaussianBlur(9)], 0.5), stoker.RandomCrop(40, 4), stoker.Normalize("imagenet"),
          stoker.RandomErasing(0.5, value="random")]


def test_batches_do_not_depend_on_workers_ranks_or_resumes(photos):
    def batches(**options):
        loader = stoker.Loader(photos, transform=RECIPE, shuffle=True, seed=3, output="numpy", **options)
        return [(batch.ids.copy(), np.array(batch.data)) for batch in loader]

    straight = batches(batch_size=4, num_workers=1)
    by_id = {int(id): row for ids, data in straight for id, row in zip(ids, data)}
    for workers in (0, 2, 3):
        for (_, one), (_, other) in zip(straight, batches(batch_size=4, num_workers=workers), strict=True):
            assert (one == other).all()
    for rank in (0, 1):
        for ids, data in batches(batch_size=2, num_workers=2, rank=rank, world_size=2):
            assert all((by_id[int(id)] == row).all() for id, row in zip(ids, data))

    loader = stoker.Loader(photos, transform=RECIPE, shuffle=True, seed=3, output="numpy", batch_size=4)
    next(iter(loader))
    resumed = stoker.Loader(photos, transform=RECIPE, shuffle=True, seed=3, output="numpy", batch_size=4)
    resumed.load_state_dict(loader.state_dict())
    assert (np.array(next(iter(resumed)).data) == straight[1][1]).all()


def test_the_plan_of_a_loader_tells_what_is_fused_and_what_takes_the_time(photos):
    loader = stoker.Loader(photos, batch_size=4, output="numpy", transform=[stoker.RandomResizedCrop(48), stoker.GaussianBlur(9), stoker.ToFloat()])
    plan = loader.plan()
    assert [one.operations for one in plan.passes] == [["decode"], ["RandomResizedCrop"], ["GaussianBlur"], ["ToFloat", "store"]]
    assert [one.fused for one in plan.passes] == [False, False, False, True]
    assert [one.whole_image for one in plan.passes] == [False, False, True, False]
    assert plan.passes[0].scratch_bytes == 90 * 70 * 3 and plan.passes[1].scratch_bytes > 2 * 48 * 48 * 3
    assert plan.passes[0].share is None and plan.passes[0].us is None
    for _ in range(16):  # each sample is timed in one of 16 epochs
        list(loader)
    plan = loader.plan()
    assert all(one.images >= 12 for one in plan.passes)
    assert sum(one.share for one in plan.passes) == pytest.approx(1) and all(one.us > 0 for one in plan.passes)
    assert "GaussianBlur" in str(plan) and "image" in str(plan) and json.dumps(plan.as_dict())


def test_the_plan_of_other_samples_is_one_line(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((6, 4), np.float32))
    plan = stoker.Loader(tmp_path / "a.npy", batch_size=2, output="numpy").plan()
    assert plan.passes == [] and str(plan) == plan.text


def test_the_plan_names_what_comes_after_the_engine(photos):
    def plan(*transform, **options):
        with stoker.Loader(samples=[(path, 0) for path in photos.glob("*.png")], batch_size=2, output="numpy", transform=list(transform), **options) as loader:
            return loader.plan().then

    plain = [stoker.Resize((8, 8)), stoker.ToFloat()]
    assert plan(*plain) == []
    assert plan(*plain, stoker.MixUp(0.2, 3)) == ["mixes batches: mixup:0.2:3"]
    assert plan(*plain, stoker.RandomChoice([stoker.CutMix(1, 3), stoker.MixUp(1, 3)])) == ["mixes batches: random_choice[cutmix:num_classes=3,mixup:num_classes=3]"]
    assert plan(stoker.Resize((8, 8)), np.flipud, stoker.Normalize("imagenet")) == ["in Python, for each sample: flipud, normalize:imagenet"]
    assert plan(*plain, batch_transform=lambda data, labels: (data, labels)) == ["in Python, for each batch: batch_transform"]
    items = stoker.Loader(dataset=[1.5, 2.5], batch_size=2, output="numpy").plan()
    assert str(items).startswith("items of a Dataset") and "__getitem__" in str(items)


def test_views_have_colours_of_their_own(photos):
    colours = [stoker.RandomApply([stoker.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8), stoker.RandomGrayscale(0.2)]
    views = stoker.Views(
        first=(1, [stoker.RandomResizedCrop(32, (0.4, 1)), stoker.HorizontalFlip(), *colours, stoker.GaussianBlur(5), stoker.Normalize("imagenet")]),
        second=(1, [stoker.RandomResizedCrop(32, (0.4, 1)), *colours, stoker.RandomSolarize(128, 0.2), stoker.Normalize("imagenet")]),
        small=(8, [stoker.RandomResizedCrop(16, (0.05, 0.4)), *colours, stoker.Normalize("imagenet")]))
    batch = next(iter(stoker.Loader(photos, batch_size=3, transform=views, output="numpy")))
    assert {name: view.shape for name, view in batch.data.items()} == {
        "first": (3, 3, 32, 32), "second": (3, 3, 32, 32), "small": (3, 8, 3, 16, 16)}
    small = np.array(batch.data["small"])
    assert all((small[:, one] != small[:, other]).any() for one in range(8) for other in range(one))


def test_layouts_and_types_hold_the_same_pixels(photos):
    def first(**options):
        loader = stoker.Loader(photos, batch_size=4, output="numpy", seed=1, transform=RECIPE[:6], **options)
        return np.array(next(iter(loader)).data)

    planes = first()
    assert planes.dtype == np.uint8 and planes.shape == (4, 3, 40, 40)
    assert (first(layout="NHWC").transpose(0, 3, 1, 2) == planes).all()
    assert (first(dtype="float32") == planes).all()
    assert (first(dtype="float16") == planes).all()


def test_fast_decoding_draws_the_same_augmentations(tmp_path):
    for number in range(4):
        Image.fromarray(photo(400, 300, 3, 3 * number)).save(tmp_path / f"{number}.jpg", quality=92)
    transform = [stoker.RandomResizedCrop(48, (0.5, 1)), stoker.ColorJitter(0.3, 0.3, 0.3, 0.1), stoker.RandomCrop(40, 4), stoker.VerticalFlip()]
    exact, fast = (np.array(next(iter(stoker.Loader(tmp_path, batch_size=4, seed=2, transform=transform, decode=decode, output="numpy"))).data)
                   for decode in ("exact", "fast"))
    assert np.abs(exact.astype(int) - fast).mean() < 8


def nested(depth):
    operation = stoker.RandomInvert()
    for _ in range(depth):
        operation = stoker.RandomApply([operation])
    return operation


@pytest.mark.parametrize("make, words", [
    (lambda: stoker.ColorJitter(brightness=-1), ["ColorJitter", "brightness"]),
    (lambda: stoker.ColorJitter(hue=0.7), ["hue", "-0.5 and 0.5"]),
    (lambda: stoker.RandomInvert(1.5), ["RandomInvert", "p = 1.5", "0 and 1"]),
    (lambda: stoker.GaussianBlur(4), ["GaussianBlur", "kernel_size", "odd"]),
    (lambda: stoker.RandomPosterize(9), ["bits = 9", "1 and 8"]),
    (lambda: stoker.RandAugment(2, 31), ["magnitude = 31", "num_magnitude_bins"]),
    (lambda: stoker.RandomApply([]), ["RandomApply", "holds no operation"]),
    (lambda: stoker.RandomChoice([stoker.RandomInvert()], [1, 2]), ["RandomChoice", "weights"]),
    (lambda: stoker.RandomErasing(value="noise"), ["RandomErasing", "random"]),
    (lambda: stoker.Pad(1, padding_mode="wrap"), ["Pad", "padding_mode", "symmetric"]),
    (lambda: stoker.RandomRotation(10, "lanczos"), ["RandomRotation", "interpolation", "none of bilinear, bicubic, nearest"]),
    (lambda: stoker.RandomRotation(float("nan")), ["RandomRotation", "degrees is a finite number, not nan"]),
    (lambda: stoker.ColorJitter((0.5, float("inf"))), ["ColorJitter", "brightness is a finite number, not inf"]),
    (lambda: stoker.Normalize(float("nan"), 1), ["Normalize", "mean is a finite number"]),
    (lambda: nested(40), ["operations lie in more than 16 others"]),
    (lambda: stoker.ColorJitter(brightness="much"), ["ColorJitter", "brightness"]),
])
def test_wrong_arguments_are_refused_by_name(make, words):
    with pytest.raises(stoker.UsageError) as refused:
        make()
    assert all(word in str(refused.value) for word in words), str(refused.value)


@pytest.mark.parametrize("transform, words", [
    ([stoker.Resize((20, 20)), stoker.Pad(25, padding_mode="reflect")], ["Pad", "reflect", "20x20"]),
    ([stoker.Resize((8, 8)), stoker.GaussianBlur(23)], ["GaussianBlur", "23", "8x8"]),
    ([stoker.Normalize("imagenet"), stoker.ColorJitter(0.4)], ["ColorJitter", "after Normalize"]),
    ([stoker.RandomErasing(value="random"), stoker.Normalize("imagenet")], ["RandomErasing", "floats"]),
    ([stoker.Normalize("imagenet"), stoker.RandomErasing(), stoker.CenterCrop(8)], ["CenterCrop", "after RandomErasing"]),
    ([stoker.Normalize("imagenet"), stoker.Normalize("imagenet")], ["Normalize", "twice"]),
    ([stoker.RandomApply([stoker.Resize(8)])], ["RandomApply", "Resize cannot stand inside"]),
    ([stoker.RandomApply([stoker.Grayscale()])], ["Grayscale", "RandomGrayscale"]),
    ([stoker.RandomRotation(20, expand=True)], ["size of the images is not known"]),
    ([stoker.Resize((20, 20)), stoker.RandomCrop(24)], ["RandomCrop", "24x24", "20x20"]),
    ([stoker.Grayscale(), stoker.Normalize("imagenet")], ["Normalize", "1 channel"]),
    ([stoker.Resize((20, 20)), stoker.FiveCrop(24)], ["FiveCrop", "24x24"]),
    ([stoker.RandomApply([stoker.FiveCrop(8)])], ["RandomApply", "FiveCrop cannot"]),
    ([stoker.Views(a=(2, [stoker.TenCrop(8)]))], ["TenCrop", "`a`", "2 views"]),
    ([stoker.RandomRotation(20, fill=(1, 2))], ["RandomRotation", "fill", "3 channels"]),
    ([stoker.Resize((16, 16)), stoker.RandomErasing(1, value=300)], ["RandomErasing", "value 300 is not between 0 and 255", "Normalize or ToFloat"]),
    ([stoker.Resize((16, 16)), stoker.RandomApply([stoker.RandomErasing(1, value=-5)])], ["value -5 is not between 0 and 255"]),
])
def test_orders_that_make_no_sense_are_refused_before_the_first_batch(photos, transform, words):
    with pytest.raises(stoker.UsageError) as refused:
        stoker.Loader(photos, batch_size=2, transform=transform)
    assert all(word in str(refused.value) for word in words), str(refused.value)


def test_colours_of_16_bit_slices_are_refused(tmp_path):
    Image.fromarray(np.arange(400, dtype=np.uint16).reshape(20, 20)).save(tmp_path / "a.png")
    for rest in ([stoker.Window(40, 400)], [stoker.ToFloat()]):
        with pytest.raises(stoker.UsageError, match="ColorJitter.*8-bit"):
            stoker.Loader(tmp_path, batch_size=1, color="keep", transform=[*rest[:0], stoker.ColorJitter(0.3), *rest])


def test_the_short_text_says_the_same(photos):
    text = ("rrc:48,flip,randaug:2:9,color_jitter:0.4:0.4:0.2:0.1,random_apply:p=0.5[gaussian_blur:9],random_crop:40:4,"
            "normalize:imagenet,random_erasing:0.5:random=true")
    one = next(iter(stoker.Loader(photos, batch_size=4, seed=9, transform=text, output="numpy")))
    other = next(iter(stoker.Loader(photos, batch_size=4, seed=9, transform=RECIPE, output="numpy")))
    assert (np.array(one.data) == np.array(other.data)).all()
