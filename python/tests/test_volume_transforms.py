"""Operations on patches of volumes: flips and turns are numpy's, warps those of torch's grid_sample and of MONAI."""

import json

import numpy
import pytest

import stoker
from stoker import _engine

PATCH = (11, 14, 14)
TURNS = {
    "flip": [stoker.RandFlip(0.7)],
    "flips of axes": [stoker.RandFlip(0.5, 0), stoker.RandFlip(0.5, 1), stoker.RandFlip(0.5, -1), stoker.RandFlip(0.5, (0, 2))],
    "turns": [stoker.RandRotate90(0.8, 3, (1, 2))],
    "turns back": [stoker.RandRotate90(0.8, 2, (-1, 1))],
    "both": [stoker.RandRotate90(0.8, 3, (1, 2)), stoker.RandFlip(0.5, 1), stoker.RandRotate90(0.8, 1, (2, 1)), stoker.RandFlip(0.5, (1, 0))],
}
WARPS = {
    "rotation": stoker.RandAffine(1, rotate_range=(0.4, 0.3, (0.1, 0.9))),
    "one axis": stoker.RandAffine(1, 0.5, padding_mode="border"),
    "shear": stoker.RandAffine(1, shear_range=(0.2, 0.1, 0.3, (-0.1, 0.4), 0.2, 0.1), padding_mode="zeros"),
    "shift": stoker.RandAffine(1, translate_range=((-20, 20), 5, 5)),
    "scale": stoker.RandAffine(1, scale_range=(0.3, 0.5, 0.2), padding_mode="border"),
    "all": stoker.RandAffine(1, 0.4, (0.1, 0.1), (3, 4, 5), (0.2, 0.2, 0.2)),
    "far": stoker.RandAffine(1, (3, 3, 3), 0.9, 60, 0.9),
    "nearest": stoker.RandAffine(1, (0.4, 0.3, 0.2), translate_range=4, mode="nearest", padding_mode="zeros"),
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("volumes")
    random = numpy.random.default_rng(1)
    made = []
    for number, shape in enumerate([(20, 33, 31), (17, 24, 40)]):
        numpy.save(folder / f"{number}.npy", random.normal(0, 1, shape).astype(numpy.float32))
        numpy.save(folder / f"{number}_mask.npy", random.integers(0, 5, shape).astype(numpy.int16))
        made.append((str(folder / f"{number}.npy"), str(folder / f"{number}_mask.npy")))
    return made


def patches(pairs, transform=None, *, epochs=1, normalize=("scale", 1.0, 0.0), samples=24, **options):
    """[(epoch, id, image, mask)] of all samples."""
    source = stoker.Volumes(pairs, patch=PATCH, samples=samples, normalize=normalize)
    made = []
    with stoker.Loader(source, **{"batch_size": 5, "seed": 7, "output": "numpy", "memory_limit": "64MB", "transform": transform, **options}) as loader:
        for epoch in range(epochs):
            for batch in loader:
                made += [(epoch, int(batch.ids[row]), numpy.array(batch.image[row]), numpy.array(batch.mask[row])) for row in range(batch.size)]
    return made


def actions_of(transform, epoch, number):
    text = json.dumps([operation.to_json() for operation in transform])
    return _engine.draw_volume_actions(text, patch=PATCH, seed=7, epoch=epoch, id=number)


def turned(array, action):
    return numpy.flip(array.transpose(action["from"]), [axis for axis in range(3) if action["mirrored"][axis]])


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("normalize", [("scale", 1.0, 0.0), None])
def test_flips_and_turns_move_image_and_mask_alike(pairs, name, normalize):
    kinds = set()
    for (epoch, number, image, mask), (_, same, made, made_mask) in zip(patches(pairs, normalize=normalize, epochs=2),
                                                                        patches(pairs, TURNS[name], normalize=normalize, epochs=2)):
        assert number == same
        for action in actions_of(TURNS[name], epoch, number):
            kinds.add(str(action))
            image, mask = turned(image, action), turned(mask, action)
        assert (made == image).all() and (made_mask == mask).all()
    assert kinds


@pytest.mark.parametrize("k", [1, 2, 3])
def test_turns_are_numpys_rot90(pairs, k):
    """The drawn number of turns is found by trying: exactly one of them fits."""
    transform = [stoker.RandRotate90(1, 3, (1, 2))]
    fits = 0
    for (_, _, image, _), (_, _, made, _) in zip(patches(pairs), patches(pairs, transform)):
        matches = [turns for turns in (1, 2, 3) if (numpy.rot90(image, turns, (1, 2)) == made).all()]
        assert len(matches) == 1
        fits += matches == [k]
    assert fits


def matrix_of(action):
    """MONAI's AffineGrid: the products of create_rotate, create_shear, create_translate and create_scale."""
    matrix = numpy.eye(4)
    for axis, (first, second) in enumerate([(1, 2), (2, 0), (0, 1)]):
        turn = numpy.eye(4)
        sine, cosine = numpy.sin(action["rotate"][axis]), numpy.cos(action["rotate"][axis])
        turn[first, first] = turn[second, second] = cosine
        turn[first, second], turn[second, first] = -sine, sine
        matrix = matrix @ turn
    shear, shift, scale = numpy.eye(4), numpy.eye(4), numpy.diag([*action["scale"], 1])
    shear[~numpy.eye(4, dtype=bool) & (numpy.arange(4)[:, None] < 3) & (numpy.arange(4) < 3)] = action["shear"]
    shift[:3, 3] = action["translate"]
    return matrix @ shear @ shift @ scale


def sampled(array, action, mode, padding):
    """torch's grid_sample of the places that the matrix gives, in double."""
    torch = pytest.importorskip("torch")
    axes = [numpy.arange(edge) - (edge - 1) / 2 for edge in array.shape]
    places = numpy.stack([*numpy.meshgrid(*axes, indexing="ij"), numpy.ones(array.shape)])
    found = numpy.tensordot(matrix_of(action), places, 1)[:3]
    shares = [2 * found[axis] / array.shape[axis] for axis in (2, 1, 0)]
    grid = torch.from_numpy(numpy.stack(shares, -1)[None])
    made = torch.nn.functional.grid_sample(torch.from_numpy(array.astype(numpy.float64))[None, None], grid, mode=mode, padding_mode=padding, align_corners=False)
    return made[0, 0].numpy()


def nearly_all_equal(made, expected):
    """Places that lie in the middle of two voxels may round to either."""
    return (made == expected).mean() > 0.999


@pytest.mark.parametrize("name", WARPS)
def test_warps_are_torchs(pairs, name):
    transform = [WARPS[name]]
    words = WARPS[name].to_json()
    for (_, number, image, mask), (_, _, made, made_mask) in zip(patches(pairs), patches(pairs, transform)):
        (action,) = actions_of(transform, 0, number)
        exact = sampled(image, action, words["mode"], words["padding_mode"])
        if words["mode"] == "bilinear":
            assert numpy.abs(made - exact).max() < 1e-5
        else:
            assert nearly_all_equal(made, exact)
        assert made_mask.dtype == numpy.int16 and nearly_all_equal(made_mask, sampled(mask, action, "nearest", words["padding_mode"]))


def by_monai(array, action, mode, padding):
    import torch
    from monai.transforms import Affine

    affine = Affine(rotate_params=action["rotate"], shear_params=action["shear"], translate_params=action["translate"], scale_params=action["scale"],
                    mode=mode, padding_mode=padding, image_only=True)
    return numpy.asarray(affine(torch.from_numpy(array.astype(numpy.float32))[None])[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", WARPS)
def test_warps_are_monais(pairs, name):
    pytest.importorskip("monai.transforms")
    words = WARPS[name].to_json()
    for (_, number, image, mask), (_, _, made, made_mask) in zip(patches(pairs), patches(pairs, [WARPS[name]])):
        (action,) = actions_of([WARPS[name]], 0, number)
        if words["mode"] == "bilinear":
            assert numpy.abs(made - by_monai(image, action, "bilinear", words["padding_mode"])).max() < 1e-4
        assert nearly_all_equal(made_mask, by_monai(mask, action, "nearest", words["padding_mode"]))


@pytest.mark.slow
def test_what_is_drawn_is_drawn_as_monai_draws_it():
    monai = pytest.importorskip("monai.transforms")
    ranges = {"rotate_range": (0.4, 0.3, (0.1, 0.9)), "shear_range": (0.2, 0.1), "translate_range": ((-20, 20), 5, 5), "scale_range": (0.3, 0.5, 0.2)}
    theirs = monai.RandAffine(prob=1, **ranges)
    theirs.set_random_state(0)
    drawn = {"rotate": [], "shear": [], "translate": [], "scale": []}
    ours = {word: [] for word in drawn}
    for number in range(2000):
        theirs.randomize()
        grid = theirs.rand_affine_grid
        for word, params in zip(drawn, (grid.rotate_params, grid.shear_params, grid.translate_params, grid.scale_params)):
            drawn[word].append(params)
        (action,) = actions_of([stoker.RandAffine(1, **ranges)], 0, number)
        for word in ours:
            ours[word].append(action[word])
    for word, figures in drawn.items():
        expected, made = numpy.array(figures), numpy.array(ours[word])[:, :len(figures[0])]
        spread = expected.max(0) - expected.min(0)
        for of in (numpy.min, numpy.max, numpy.mean):
            assert (numpy.abs(of(made, 0) - of(expected, 0)) < 0.05 * spread).all(), word


def test_values_are_changed_in_the_image_alone(pairs):
    transform = [stoker.RandFlip(1, 0), stoker.RandShiftIntensity((2, 2), 1), stoker.RandScaleIntensity((0.5, 0.5), 1)]
    for (_, _, image, mask), (_, _, made, made_mask) in zip(patches(pairs), patches(pairs, transform)):
        assert (made == (image[::-1] + numpy.float32(2)) * numpy.float32(1.5)).all() and (made_mask == mask[::-1]).all()
    plain, noisy = patches(pairs), patches(pairs, [stoker.RandGaussianNoise(1, 0, 0.1, sample_std=False)])
    noise = numpy.stack([after[2] - before[2] for before, after in zip(plain, noisy)])
    assert abs(noise.std() - 0.1) < 0.002 and abs(noise.mean()) < 0.002


ALL = [stoker.RandFlip(0.5, 0), stoker.RandRotate90(0.5, 3, (1, 2)), stoker.RandAffine(0.7, 0.3, translate_range=3), stoker.RandGaussianNoise(0.5)]


def test_batches_are_the_same_for_any_number_of_workers_and_after_a_resume(pairs):
    alone = patches(pairs, ALL, epochs=2, num_workers=0, shuffle=True)
    for options in ({"num_workers": 1}, {"num_workers": 3}, {"storage": "direct"}):
        again = patches(pairs, ALL, epochs=2, shuffle=True, **options)
        assert all(one[:2] == two[:2] and (one[2] == two[2]).all() and (one[3] == two[3]).all() for one, two in zip(alone, again))
    source = stoker.Volumes(pairs, patch=PATCH, samples=24, normalize=("scale", 1.0, 0.0))
    options = {"batch_size": 5, "seed": 7, "output": "numpy", "memory_limit": "64MB", "transform": ALL, "shuffle": True}
    with stoker.Loader(source, **options) as loader:
        batches = iter(loader)
        next(batches), next(batches)
        state = loader.state_dict()
    with stoker.Loader(source, **options) as loader:
        loader.load_state_dict(state)
        image = numpy.array(next(iter(loader)).image)
    assert all((image[row] == alone[10 + row][2]).all() for row in range(5))


def test_packs_and_chunks_take_them_too(pairs, tmp_path):
    zarr = pytest.importorskip("zarr")
    chunked = []
    for number, (image, _) in enumerate(pairs):
        array = numpy.load(image)
        made = zarr.create_array(store=tmp_path / f"{number}.zarr", shape=array.shape, chunks=(8, 8, 8), dtype=array.dtype)
        made[:] = array
        chunked.append(str(tmp_path / f"{number}.zarr"))
    source = stoker.Volumes(chunked, patch=PATCH, samples=6, normalize=("scale", 1.0, 0.0))
    images = {}
    for name, transform in (("plain", None), ("turned", [stoker.RandFlip(1)])):
        with stoker.Loader(source, batch_size=6, seed=7, output="numpy", memory_limit="64MB", transform=transform) as loader:
            images[name] = numpy.array(next(iter(loader)).image)
    assert (images["turned"] == images["plain"][:, ::-1, ::-1, ::-1]).all()


@pytest.mark.parametrize("options, transform, words", [
    ({"normalize": None}, [stoker.RandGaussianNoise()], ["RandGaussianNoise", "patches leave as int16", "normalize"]),
    ({"normalize": None}, [stoker.RandAffine()], ["RandAffine", "patches leave as int16"]),
    ({}, [stoker.RandRotate90()], ["axes 0 and 1", "11x14x14", "one length"]),
    ({}, [stoker.HorizontalFlip()], ["HorizontalFlip", "patches of volumes do not take it", "RandFlip"]),
    ({"sampling": "grid", "samples": None}, [stoker.RandFlip()], ["RandFlip", "patches of a grid", "sampling"]),
])
def test_what_cannot_be_is_refused_before_the_first_batch(tmp_path, options, transform, words):
    numpy.save(tmp_path / "a.npy", numpy.zeros((20, 20, 20), numpy.int16))
    source = stoker.Volumes([tmp_path / "a.npy"], **{"patch": PATCH, "samples": 4, "normalize": "zscore", **options})
    with pytest.raises(stoker.UsageError) as refused:
        stoker.Loader(source, batch_size=1, transform=transform)
    assert all(word in str(refused.value) + refused.value.hint for word in words), str(refused.value) + refused.value.hint


def test_images_and_audio_refuse_them(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    Image.fromarray(numpy.zeros((9, 9), numpy.uint8)).save(tmp_path / "a.png")
    with pytest.raises(stoker.UsageError, match="RandFlip.*patches of volumes, and these are images"):
        stoker.Loader(tmp_path, batch_size=1, transform=[stoker.RandFlip()])


@pytest.mark.parametrize("make, words", [
    (lambda: stoker.RandRotate90(0.5, 4), "max_k"),
    (lambda: stoker.RandRotate90(0.5, 1, (1, -2)), "spatial_axes"),
    (lambda: stoker.RandFlip(0.5, 3), "spatial_axis"),
    (lambda: stoker.RandAffine(0.5, (0.1, 0.1, 0.1, 0.1)), "rotate_range"),
    (lambda: stoker.RandAffine(0.5, mode="bicubic"), "bilinear or nearest"),
    (lambda: stoker.RandAffine(0.5, padding_mode="reflect"), "reflection"),
    (lambda: stoker.RandAffine(0.5, scale_range=1), "scale of 0"),
    (lambda: stoker.RandAffine(2), "prob"),
])
def test_wrong_arguments_are_refused(make, words):
    with pytest.raises(stoker.UsageError, match=words):
        make()
