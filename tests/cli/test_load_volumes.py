"""stoker load with --patch: volumes named by a volumes.csv."""

import json

import numpy
import pytest


@pytest.fixture
def volumes(tmp_path):
    for name in "ab":
        numpy.save(tmp_path / f"{name}.npy", numpy.arange(20 * 30 * 30, dtype=numpy.int16).reshape(20, 30, 30))
        numpy.save(tmp_path / f"{name}_mask.npy", numpy.ones((20, 30, 30), numpy.uint8))
    (tmp_path / "volumes.csv").write_text("image,mask,weight\na.npy,a_mask.npy,1\nb.npy,b_mask.npy,3\n")


def test_patches_of_volumes_are_loaded(stoker, volumes):
    done = stoker("load", "volumes.csv", "--patch", "8x16x16", "--samples", "20", "--normalize", "zscore", "--flip", "--turn", "--foreground", "0.5",
                  "--batch-size", "4", "--shuffle", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["samples"], found["steps"]) == (20, 5)


def test_a_grid_and_one_volume_are_loaded(stoker, volumes):
    done = stoker("load", "a.npy", "--patch", "10", "--sampling", "grid", "--overlap", "5", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 3 * 5 * 5


@pytest.mark.parametrize("words, said", [
    (["--samples", "5"], "`--samples` is about patches of volumes, and there is no `--patch`"),
    (["--patch", "8x16x16"], "--samples is 0"),
    (["--patch", "8x16", "--samples", "5"], "is depth, height and width, not `8x16`"),
    (["--patch", "64", "--samples", "5"], "the patch 64x64x64 is larger than `a.npy`"),
    (["--patch", "8", "--samples", "5", "--normalize", "z"], "is zscore, window:LOW:HIGH"),
    (["--patch", "8", "--samples", "5", "--sampling", "random"], "`--sampling` is uniform or grid"),
    (["--patch", "8", "--samples", "5", "--transform", "resize:8"], "does not go with volumes"),
])
def test_wrong_words_are_refused_in_one_sentence(stoker, volumes, words, said):
    done = stoker("load", "volumes.csv", *words)
    assert done.returncode == 2 and done.stdout == ""
    assert said in done.stderr
