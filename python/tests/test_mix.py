"""MixUp and CutMix: rows of a batch mixed with one another, and their labels."""

import numpy as np
import pytest

import stoker

Image = pytest.importorskip("PIL.Image")
PLAIN = [stoker.Resize((12, 16)), stoker.ToFloat()]


@pytest.fixture
def photos(tmp_path):
    numbers = np.random.default_rng(1)
    for label in range(3):
        (tmp_path / f"class{label}").mkdir()
        for number in range(8):
            Image.fromarray(numbers.integers(0, 256, (12, 16, 3), dtype=np.uint8)).save(tmp_path / f"class{label}" / f"{number}.png")
    return tmp_path


def batches(source, transform, **options):
    loader = stoker.Loader(source, transform=transform, output="numpy", **{"batch_size": 6, "shuffle": True, "seed": 4, **options})
    return [(np.array(images), np.array(labels)) for images, labels in loader]


def one_hot(labels, classes=3):
    return np.eye(classes, dtype=np.float32)[labels]


def test_mixup_is_a_weighted_sum_of_a_row_and_the_one_before(photos):
    shares = set()
    for (images, labels), (plain, classes) in zip(batches(photos, [*PLAIN, stoker.MixUp(0.4)]), batches(photos, PLAIN), strict=True):
        assert labels.dtype == np.float32 and labels.shape == (6, 3)
        row = next(row for row in range(6) if classes[row] != classes[row - 1])
        share = labels[row][classes[row]]
        shares.add(float(share))
        rest = np.float32(1) - share
        assert np.abs(images - (plain * share + np.roll(plain, 1, 0) * rest)).max() < 1e-6
        assert np.abs(labels - (one_hot(classes) * share + np.roll(one_hot(classes), 1, 0) * rest)).max() < 1e-6
    assert len(shares) > 1  # each batch has its own


def test_cutmix_takes_a_rectangle_from_the_row_before(photos):
    for (images, labels), (plain, classes) in zip(batches(photos, [*PLAIN, stoker.CutMix()]), batches(photos, PLAIN), strict=True):
        other = np.roll(plain, 1, 0)
        cut = (images != plain).any((0, 1))
        ys, xs = np.nonzero(cut)
        box = np.s_[:, :, ys.min() : ys.max() + 1, xs.min() : xs.max() + 1] if cut.any() else np.s_[:, :, :0, :0]
        expected = plain.copy()
        expected[box] = other[box]
        assert (images == expected).all()
        share = 1 - expected[box][0, 0].size / (12 * 16)
        assert np.abs(labels - (one_hot(classes) * share + np.roll(one_hot(classes), 1, 0) * (1 - share))).max() < 1e-6


def test_cutmix_is_the_same_in_every_layout_and_takes_bytes(photos):
    transform = [stoker.Resize((12, 16)), stoker.CutMix()]
    planes = batches(photos, transform)[0][0]
    assert planes.dtype == np.uint8
    assert (batches(photos, transform, layout="NHWC")[0][0].transpose(0, 3, 1, 2) == planes).all()
    assert (batches(photos, transform, layout="channels_last")[0][0] == planes).all()


def test_batches_do_not_depend_on_workers_or_resumes(photos):
    transform = [*PLAIN, stoker.RandomChoice([stoker.CutMix(), stoker.MixUp()])]
    straight = batches(photos, transform, num_workers=1)
    for (one, labels), (other, others) in zip(straight, batches(photos, transform, num_workers=3), strict=True):
        assert (one == other).all() and (labels == others).all()
    loader = stoker.Loader(photos, transform=transform, batch_size=6, shuffle=True, seed=4, output="numpy")
    next(iter(loader))
    resumed = stoker.Loader(photos, transform=transform, batch_size=6, shuffle=True, seed=4, output="numpy")
    resumed.load_state_dict(loader.state_dict())
    images, labels = next(iter(resumed))
    assert (np.array(images) == straight[1][0]).all() and (np.array(labels) == straight[1][1]).all()


def test_labels_are_smoothed_and_batches_mixed_by_chance(photos):
    for (images, labels), (plain, classes) in zip(batches(photos, [*PLAIN, stoker.MixUp(p=0, label_smoothing=0.3, num_classes=4)]), batches(photos, PLAIN)):
        assert (images == plain).all()
        assert np.abs(labels - (one_hot(classes, 4) * 0.7 + 0.3 / 4)).max() < 1e-6


def test_shares_are_beta_distributed(photos):
    transform = [*PLAIN, stoker.MixUp(0.2, num_classes=24)]
    shares = []
    loader = stoker.Loader(photos, transform=transform, batch_size=2, shuffle=True, seed=1, output="numpy", drop_last=True)
    for _ in range(40):
        shares += [float(max(row)) for _, labels in loader for row in np.array(labels)[:1] if (row > 0).sum() == 2]
    theirs = np.maximum(numbers := np.random.default_rng(2).beta(0.2, 0.2, 4000), 1 - numbers)
    every = np.concatenate([shares, theirs])
    gap = max(abs((np.array(shares) <= value).mean() - (theirs <= value).mean()) for value in every[::7])
    assert gap * np.sqrt(len(shares) * 4000 / (len(shares) + 4000)) < 1.95


@pytest.mark.parametrize("transform, words", [
    ([stoker.Resize((8, 8)), stoker.MixUp()], ["MixUp", "float32", "uint8"]),
    ([stoker.MixUp(), *PLAIN], ["MixUp", "end of the list"]),
    ([*PLAIN, stoker.MixUp(num_classes=2)], ["MixUp", "num_classes = 2", "3 classes"]),
    ([*PLAIN, stoker.RandomChoice([stoker.CutMix(), stoker.MixUp(), stoker.RandomInvert()])], ["RandomChoice", "alone"]),
    ([stoker.Views(a=(2, PLAIN)), stoker.MixUp()], ["MixUp", "views"]),
])
def test_what_cannot_be_mixed_is_refused(photos, transform, words):
    with pytest.raises(stoker.UsageError) as refused:
        stoker.Loader(photos, batch_size=2, transform=transform)
    assert all(word in str(refused.value) for word in words), str(refused.value)


@pytest.mark.parametrize("labels, words", [((1, 2, 3), "is 3, and num_classes = 3 means 0 to 2"), ((0, -1, 2), "is -1")])
def test_a_label_that_is_no_class_is_refused(photos, labels, words):
    samples = [(path, label) for path, label in zip(sorted(path for path in photos.rglob("*") if path.is_file()), labels)]
    with pytest.raises(stoker.UsageError, match=words):
        stoker.Loader(samples=samples, batch_size=2, transform=[*PLAIN, stoker.MixUp(num_classes=3)])


def test_mixing_without_classes_is_refused(photos):
    with pytest.raises(stoker.UsageError, match="MixUp.*no classes"):
        stoker.Loader(photos / "class0", batch_size=2, transform=[*PLAIN, stoker.MixUp()])
