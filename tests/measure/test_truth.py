"""The verdict on jobs whose bottleneck is known, and the split of their waiting: within 10 points of the truth."""

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
QUICK = ("fetch-fork", "mixed-main", "compute-fork", "handoff-objects-fork", "burst")

CASES = [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in TRUTH]


@pytest.mark.parametrize("name", CASES)
def test_the_bottleneck_is_named(name, measure):
    bound, fetch_share, compute_share = TRUTH[name]
    answer = measure(sys.executable, JOBS, name)
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
