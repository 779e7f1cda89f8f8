"""The verdict on jobs whose bottleneck is known, and the split of their waiting: within 10 points of the truth."""

import os
import pathlib
import resource
import sys
import time

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
# One of each kind for every run of the tests; --slow runs them all.
QUICK = ("fetch-fork", "mixed-main", "prep-programs", "compute-fork", "handoff-objects-fork", "burst")


def crowded(answer):
    """The share of the time to make a batch in which its worker was ready and had no core."""
    workers = answer["loaders"][answer["main_loader"]]["workers"]
    built = sum(workers[f"{part}_ms_per_batch"] for part in ("fetch", "prep", "collate"))
    return workers["delay_ms_per_batch"] / built if built else 0


def machine_cpu_s():
    """Core seconds that programs have used, all of them together; those of the children of this one that have ended; and all that passed."""
    times = [int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    ours = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(times[:3]), ours.ru_utime + ours.ru_stime, sum(times)


def measured(measure, name):
    """Where other programs take the cores, a job that waits for bytes waits for a core as well, and rightly says so: try again. A batch that
    is ready waits for one too, so a job whose batches are not late by themselves must have had most of the cores for itself; and how long a
    program waits that a sample runs, no figure of its worker says."""
    for _ in range(4):
        before, began = machine_cpu_s(), time.monotonic()
        answer = measure(sys.executable, JOBS, name, flags=["--force"])
        used, ours, passed = (after - was for was, after in zip(before, machine_cpu_s()))
        others = (used - ours) / passed if passed > (time.monotonic() - began) / 2 else 1  # a sandbox may not count: nobody knows then
        assert answer["loaders"], answer["stderr"]
        late = answer["verdict"] is not None and answer["verdict"]["bound"] == "handoff_bound" and TRUTH.get(name, [""])[0] != "handoff_bound"
        shared = others > 0.1 if late else others > 0.4 if "programs" in name else False
        if (name.startswith("prep") or crowded(answer) < 0.1) and not shared:
            return answer
    pytest.skip(f"other programs took {others:.0%} of the cores: {answer['stderr']}")


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTH)
def test_the_bottleneck_is_named(name, measure):
    check(name, measure)


@pytest.mark.parametrize("name", QUICK)
def test_the_bottleneck_of_one_of_each_kind_is_named(name, measure):
    check(name, measure)


def check(name, measure):
    bound, fetch_share, compute_share = TRUTH[name]
    answer = measured(measure, name)
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
def test_a_slow_first_epoch_is_told_from_the_later_ones(measure):
    answer = measured(measure, "slow-first-epoch")
    bounds = [epoch["verdict"]["bound"] for epoch in answer["loaders"][0]["epochs"]]
    assert bounds == ["fetch_bound", "prep_bound", "prep_bound"], answer["stderr"]
    assert "faster storage would help the first epoch only; what limits now is the CPU work per sample" in " ".join(answer["notes"])


@pytest.mark.slow
def test_more_workers_than_cores_is_named(measure):
    import os

    if len(os.sched_getaffinity(0)) > 4:
        pytest.skip("the job has 6 workers, and this machine has cores for them")
    answer = measured(measure, "prep-crowded")
    assert "more workers (6) than cores" in " ".join(answer["why"]), answer["stderr"]
    assert not any("num_workers" in advice for advice in answer["advice"])


@pytest.mark.slow
def test_one_slow_sample_in_a_hundred_is_named(measure):
    answer = measured(measure, "one-slow-sample")
    assert "took more than 10 times the usual: index" in " ".join(answer["notes"]), answer["stderr"]
    assert {int(slow["sample"]) % 24 for slow in answer["loaders"][0]["slow_samples"]} == {11}


@pytest.mark.slow
def test_growing_workers_are_named(measure):
    answer = measured(measure, "growing-memory")
    assert "each worker's own memory grows by" in " ".join(answer["notes"]), answer["stderr"]
