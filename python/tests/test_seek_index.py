"""The seek index: later crops decode less and give the same pixels, in this run and in the next."""

import os

import numpy
import pytest
from PIL import Image

import stoker


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    chance = numpy.random.default_rng(7)
    for i in range(24):
        coarse = chance.integers(0, 256, (12 + i % 5, 16, 3), numpy.uint8)
        Image.fromarray(coarse).resize((320 + i, 240), Image.BICUBIC).save(folder / f"{i:02}.jpg", quality=70 + i, subsampling=i % 3)
    return folder


def epochs(folder, cache, seek_index, count=3):
    with stoker.Loader(folder, batch_size=8, shuffle=True, seed=3, num_workers=2, output="numpy", cache_dir=cache, seek_index=seek_index,
                       transform=[stoker.RandomResizedCrop(64)]) as loader:
        batches = [data.copy() for _ in range(count) for data, _ in loader]
        return numpy.concatenate(batches), loader.stats()


def test_pixels_are_the_same_and_what_was_learnt_is_saved(photos, tmp_path):
    right, stats = epochs(photos, tmp_path, "off")
    assert stats["seek_files"] == stats["seek_bytes"] == 0
    assert not [name for name in os.listdir(tmp_path) if name.startswith("seek-")]
    for use in ("memory", "auto", "auto"):
        got, stats = epochs(photos, tmp_path, use)
        assert numpy.array_equal(got, right)
        assert stats["seek_files"] in (0, 24)  # 0 on a machine without AVX2
        assert stats["seek_bytes"] <= stats["memory_limit"]
    saved = [name for name in os.listdir(tmp_path) if name.endswith(".bin") and name.startswith("seek-")]
    assert len(saved) == (1 if stats["seek_files"] else 0)


def test_a_damaged_saved_index_is_said_and_made_anew(photos, tmp_path):
    right, _ = epochs(photos, tmp_path, "auto", 1)
    saved = [name for name in os.listdir(tmp_path) if name.endswith(".bin") and name.startswith("seek-")]
    if not saved:
        pytest.skip("no AVX2: nothing is noted")
    with open(tmp_path / saved[0], "r+b") as file:
        file.truncate(100)
    with stoker.Loader(photos, batch_size=8, shuffle=True, seed=3, num_workers=2, output="numpy", cache_dir=tmp_path,
                       transform=[stoker.RandomResizedCrop(64)]) as loader:
        got = numpy.concatenate([data.copy() for data, _ in loader])
        assert any("seek index" in note and "cut short" in note for note in loader.notes)
    assert numpy.array_equal(got, right)


def test_words_that_mean_nothing_are_refused_with_the_nearest(photos):
    with pytest.raises(stoker.UsageError, match="seek_index.*auto.*memory.*off"):
        stoker.Loader(photos, batch_size=1, seek_index="memry")
