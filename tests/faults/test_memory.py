"""memory_limit is a hard bound: no data set makes the process grow by more, whatever its files claim.

Each test runs the loader in a process of its own and watches that from outside; see growth.py for what counts. The whole matrix is slow.
"""

from __future__ import annotations

import os
import re
import subprocess

import hostile
import pytest
from growth import bytes_of, grow

CODE = 24_000_000     # pages of libraries that the first use brings in; they are the page cache's
LIMITS = ["64MB", "256MB", "1GB"]
STORAGES = ["buffered", "direct", "mmap", "ram", "auto"]

# Quick to make, and one of each way in which memory was once missed.
QUICK = ["small_photos", "progressive_photos", "small_sounds", "rows_of_an_array", "npz_shorter_than_its_shape", "npz_that_lie_behind_a_good_one",
         "npy_that_claim_more", "sounds_that_claim_more", "volumes_smaller_than_their_patch"]


@pytest.fixture(autouse=True, scope="session")
def caches_in_a_folder_of_the_test(tmp_path_factory):
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def data(tmp_path_factory, binary):
    """``data("small_photos")`` gives the address and the options of a loader; each data set is made once."""
    made = {}

    def make(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            if name.endswith(" pack"):
                source, options = make(name.split(" ")[0])
                raw = ["--kind", "raw", "--size", "160"] if " raw " in name else []
                subprocess.run([binary, "pack", str(source), str(folder / "x.pack"), *raw, "--quiet"], check=True, capture_output=True)
                options = {**options, **({"transform": "rrc:96"} if raw else {})}
                made[name] = folder / "x.pack", options
            else:
                made[name] = hostile.KINDS[name](folder)
        return made[name]

    return make


@pytest.fixture
def check(request):
    """Also prints a line of the table that ``pytest -s`` shows."""

    def check(found, maps_files=False):
        said = f"{found.bytes / 1e6:6.1f} MB of {found.limit / 1e6:4.0f} MB ({100 * found.bytes / found.limit:3.0f} %)"
        print(f"\n{said}  counted {found.memory_peak / 1e6:6.1f} MB  {found.samples} samples, {found.errors} bad  {request.node.name}")
        assert found.bytes <= found.limit, (said, found)
        assert found.memory_peak <= found.limit, (said, found)
        if not maps_files:
            assert found.peak_bytes <= found.limit + CODE, (said, found)
        # Samples arrive, or one sentence says what is wrong.
        assert found.samples > 0 or found.refused or found.causes, (said, found)
        if found.refused and "fewer elements" not in found.refused:
            assert "memory_limit" in found.refused, (said, found)

    return check


@pytest.mark.parametrize("kind", QUICK)
def test_the_process_grows_by_at_most_the_limit(data, check, kind):
    address, options = data(kind)
    check(grow(address, "64MB", **{**options, "epochs": 1}))


def test_padded_batches_are_inside_the_limit(data, check):
    address, options = data("arrays_that_grow_when_padded")
    found = grow(address, "64MB", **{**options, "epochs": 1})
    check(found)
    assert found.samples == 48 and not found.refused, found


def test_a_padded_batch_beyond_the_limit_is_refused_with_the_limit_that_is_enough(data, check):
    address, options = data("arrays_too_large_when_padded")
    found = grow(address, "64MB", **{**options, "epochs": 1})
    check(found)
    assert "a padded batch takes 55.1 MiB" in found.refused and found.samples == 0, found
    enough = re.search(r"raise memory_limit to (\d+MB)", found.refused)[1]
    found = grow(address, enough, **{**options, "epochs": 1})
    check(found)
    assert found.samples == 48 and not found.refused, found


@pytest.mark.slow
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("kind", hostile.KINDS)
def test_no_data_set_makes_the_process_grow_by_more(data, check, kind, limit):
    address, options = data(kind)
    check(grow(address, limit, **options))


@pytest.mark.slow
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("kind", ["small_photos", "large_photos", "small_sounds", "rows_of_an_array", "a_photo_tar", "small_photos encoded pack",
                                  "small_photos raw pack", "many_classes_with_long_names"])
def test_every_storage_keeps_the_limit(data, check, kind, limit, storage):
    address, options = data(kind)
    check(grow(address, limit, storage=storage, **options), maps_files=storage == "mmap")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1, 4, 12])
@pytest.mark.parametrize("kind", ["small_photos", "large_photos_whole", "progressive_photos", "small_sounds", "long_sounds_resampled"])
def test_any_number_of_workers_keeps_the_limit(data, check, kind, workers):
    address, options = data(kind)
    check(grow(address, "64MB", num_workers=workers, **options))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["large_photos_whole", "progressive_photos", "pngs_that_claim_more", "long_sounds", "long_sounds_resampled", "npz_of_many_zeros"])
def test_the_limit_that_an_error_names_is_enough(data, kind):
    """A sample arrives with the limit that its error named; one that needs yet more for its next step says so."""
    address, options = data(kind)
    options = {**options, "inflate": 1, "epochs": 1}
    limit, samples = 61, -1
    for _ in range(6):
        found = grow(address, f"{-(-limit * 1048576 // 1000000)}MB", **options)
        assert found.bytes <= found.limit and found.samples >= samples
        named = [int(cause.split('memory_limit="')[1].split("MiB")[0]) for cause in found.causes if "memory_limit=" in cause]
        if not (named := [least for least in named if least < 2000]):     # more than this machine may have
            break
        assert min(named) > limit
        limit, samples = max(named), found.samples
    assert samples >= 0 and not named


@pytest.mark.slow
def test_near_the_limit_the_same_samples_arrive_every_time(data):
    address, options = data("large_photos_whole")
    seen = {grow(address, limit, num_workers=workers, storage=storage, **options).samples
            for limit in ["64MB"] for workers in range(5) for storage in ["buffered", "ram", "direct"] for _ in range(3)}
    assert len(seen) == 1


def test_the_measure_sees_what_a_child_allocates(data):
    address, options = data("rows_of_an_array")
    found = grow(address, "1GB", **{**options, "epochs": 1})
    batch = 64 * 16384 * 4
    assert 2 * batch <= found.bytes <= bytes_of("1GB")
