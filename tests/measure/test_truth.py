"""The verdict on jobs whose bottleneck is known, and the split of their waiting: within 10 points of the truth."""

import os
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")

JOBS = pathlib.Path(__file__).with_name("jobs.py")

# name: (verdict, share of fetch in fetch + prep or None, compute's share of the running time or None)
TRUTH = {
    "fetch-main": ("fetch_bound", 1.0, 5 / 45),
    "fetch-fork": ("fetch_bound", 1.0, None),
    "fetch-spawn": ("fetch_bound", 1.0, None),
    "fetch-forkserver": ("fetch_bound", 1.0, None),
    "fetch-stream": ("fetch_bound", 1.0, 5 / 45),
    "fetch-stream-fork": ("fetch_bound", 1.0, None),
    "fetch-in-batches": ("fetch_bound", 1.0, 5 / 45),
    "fetch-unbatched": ("fetch_bound", 1.0, 5 / 25),
    "fetch-threads": ("fetch_bound", 1.0, None),
    "fetch-any-order": ("fetch_bound", 1.0, None),
    "fetch-persistent": ("fetch_bound", 1.0, None),
    "fetch-prefetch-1": ("fetch_bound", 1.0, None),
    "one-slow-sample": ("fetch_bound", 1.0, None),
    "prep-main": ("prep_bound", 0.0, None),
    "prep-fork": ("prep_bound", 0.0, None),
    "prep-spawn": ("prep_bound", 0.0, None),
    "prep-stream": ("prep_bound", 0.0, None),
    "prep-programs": ("prep_bound", 0.0, None),
    "prep-programs-main": ("prep_bound", 0.0, None),
    "prep-crowded": ("prep_bound", 0.0, None),
    "mixed-main": ("fetch_bound", 0.7, None),
    "mixed-fork": ("fetch_bound", 0.7, None),
    "mixed-spawn": ("prep_bound", 0.3, None),
    "half-compute": ("fetch_bound", 1.0, 0.5),
    "compute-main": ("compute_bound", None, 1.0),
    "compute-fork": ("compute_bound", None, 1.0),
    "compute-spawn": ("compute_bound", None, 1.0),
    "handoff-objects-fork": ("handoff_bound", None, None),
    "handoff-objects-spawn": ("handoff_bound", None, None),
    "handoff-collate-fork": ("handoff_bound", None, None),
    "handoff-collate-main": ("handoff_bound", None, 5 / 45),
    "handoff-start": ("handoff_bound", None, None),
    "train-and-val": ("fetch_bound", 1.0, 5 / 45),
    "two-at-once": ("fetch_bound", 1.0, 5 / 45),
    "burst": ("fetch_bound", 1.0, None),
}
# Least figures that hold however busy the machine is: sleeping takes no less, and so does burning CPU time. One job of each kind for every
# run of the tests; --slow asks for the verdict of all, on quiet cores. Below "loader" the main one's.
FLOORS = {
    "fetch-fork": {"loader.workers.fetch_ms_per_batch": 80, "loader.total.compute.ms_per_step": 5},
    "mixed-main": {"loader.workers.fetch_ms_per_batch": 56, "loader.workers.prep_ms_per_batch": 24, "loader.total.compute.ms_per_step": 30},
    "prep-programs": {"loader.workers.prep_ms_per_batch": 1},
    "compute-fork": {"loader.total.compute.ms_per_step": 60, "loader.workers.fetch_ms_per_batch": 8},
    "handoff-objects-fork": {"loader.workers.sent_bytes_per_batch": 100_000},
    "burst": {"loader.short_window": 1, "loader.workers.fetch_ms_per_batch": 320},
}
JUST = 0.97  # a sleep of 20 ms may end a little early by another clock


def figure(answer, path):
    found = {"loader": answer["loaders"][answer["main_loader"]]}
    for word in path.split("."):
        found = found[word]
    return found


@pytest.mark.parametrize("name", FLOORS)
def test_no_part_is_shorter_than_what_was_put_there(name, measure):
    answer = measure(sys.executable, JOBS, name)
    assert answer["verdict"] is not None, answer["stderr"]
    for path, least in FLOORS[name].items():
        assert figure(answer, path) >= JUST * least, (path, answer["stderr"])
    total = answer["total"]
    assert total["compute"]["share"] + total["wait"]["share"] == pytest.approx(1)
    assert sum(total["wait"][part]["share"] for part in ("fetch", "prep", "handoff")) == pytest.approx(total["wait"]["share"])
    assert total["wait"]["handoff"]["unknown"]["share"] < 0.02, answer["stderr"]


@pytest.fixture
def measured(measure, quiet_cores):
    return lambda name: quiet_cores(lambda: measure(sys.executable, JOBS, name, flags=["--force"], timeout=300))


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTH)
def test_the_bottleneck_is_named(name, measured):
    bound, fetch_share, compute_share = TRUTH[name]
    answer = measured(name)
    assert answer["verdict"] is not None, answer["stderr"]
    assert answer["verdict"]["bound"] == bound, answer["stderr"]
    assert answer["verdict"]["general"] == ("io_bound" if bound in ("fetch_bound", "prep_bound") else bound)
    wait = answer["total"]["wait"]
    if fetch_share is not None and name != "burst":
        both = wait["fetch"]["share"] + wait["prep"]["share"]
        assert wait["fetch"]["share"] / both == pytest.approx(fetch_share, abs=0.1), answer["stderr"]
    if compute_share is not None:
        assert answer["total"]["compute"]["share"] == pytest.approx(compute_share, abs=0.1), answer["stderr"]
    assert wait["handoff"]["unknown"]["share"] < 0.02, answer["stderr"]


@pytest.mark.slow
def test_a_slow_first_epoch_is_told_from_the_later_ones(measured):
    answer = measured("slow-first-epoch")
    bounds = [epoch["verdict"]["bound"] for epoch in answer["loaders"][0]["epochs"]]
    assert bounds == ["fetch_bound", "prep_bound", "prep_bound"], answer["stderr"]
    assert "faster storage would help the first epoch only; what limits now is the CPU work per sample" in " ".join(answer["notes"])


@pytest.mark.slow
def test_more_workers_than_cores_is_named(measured):
    if len(os.sched_getaffinity(0)) > 4:
        pytest.skip("the job has 6 workers, and this machine has cores for them")
    answer = measured("prep-crowded")
    assert "more workers (6) than cores" in " ".join(answer["why"]), answer["stderr"]
    assert not any("num_workers" in advice for advice in answer["advice"])


@pytest.mark.slow
def test_one_slow_sample_in_a_hundred_is_named(measured):
    answer = measured("one-slow-sample")
    assert "took more than 10 times the usual: index" in " ".join(answer["notes"]), answer["stderr"]
    assert {int(slow["sample"]) % 24 for slow in answer["loaders"][0]["slow_samples"]} == {11}


@pytest.mark.slow
def test_growing_workers_are_named(measured):
    answer = measured("growing-memory")
    assert "each worker's own memory grows steadily, by" in " ".join(answer["notes"]), answer["stderr"]
