"""stoker.measure around loops: torch's DataLoader, stoker.Loader, any iterable."""

import os
import re
import subprocess
import sys
import time

import numpy
import pytest
from stoker.measuring import samples_of

import stoker
from stoker import measuring


class FakeTime:
    """The clocks of the hook, moved by hand."""

    def __init__(self, monkeypatch):
        self.wall = self.cpu = 1_000_000_000
        self.switches = 0
        clocks = measuring._hook_clocks()
        monkeypatch.setattr(clocks, "wall", lambda: self.wall)
        monkeypatch.setattr(clocks, "cpu", lambda: self.cpu)
        monkeypatch.setattr(clocks, "delay", lambda: 0)
        monkeypatch.setattr(clocks, "switches", lambda: self.switches)

    def wait(self, ms):
        self.wall += int(ms * 1_000_000)
        self.switches += ms > 0

    def compute(self, ms):
        self.stand_ready(ms)
        self.cpu += int(ms * 1_000_000)

    def stand_ready(self, ms):
        """Without a core; the kernel's figure of the delay does not show it."""
        self.wall += int(ms * 1_000_000)

    def batches(self, count, wait=0, cpu=0):
        for index in range(count):
            self.wait(wait)
            self.compute(cpu)
            yield [index] * 4


@pytest.fixture
def fake_time(monkeypatch):
    measuring._hook()
    return FakeTime(monkeypatch)


def batches(count):
    return ([index] * 4 for index in range(count))


def test_any_iterable_is_measured(fake_time):
    with stoker.measure(fake_time.batches(30, cpu=10)) as m:
        for _ in m:
            pass
    assert m.report()["verdict"]["bound"] == "prep_bound"
    assert m.verdict.startswith("prep_bound (io_bound)")
    with stoker.measure(fake_time.batches(30, wait=9, cpu=1)) as m:
        for index, _ in enumerate(m):
            fake_time.wait(10)
            if index == 20:
                so_far = m.verdict  # inside the loop
    assert so_far.startswith("fetch_bound")
    total = m.report()["total"]
    assert [total["compute"]["share"], total["wait"]["fetch"]["share"], total["wait"]["prep"]["share"]] == pytest.approx([0.5, 0.45, 0.05])
    assert "try: read ahead in other threads" in m.summary()


def test_time_without_a_core_is_not_fetch(fake_time):
    def crowded(count):
        for index in range(count):
            fake_time.compute(1)
            fake_time.stand_ready(9)
            yield [index] * 4

    with stoker.measure(crowded(30)) as m:
        for _ in m:
            fake_time.wait(10)
    assert m.verdict.startswith("prep_bound")
    assert m.report()["total"]["wait"]["fetch"]["share"] == 0


def test_the_sentence_names_the_part_and_not_the_whole_wait(fake_time):
    with stoker.measure(fake_time.batches(30, wait=9, cpu=3)) as m:
        for _ in m:
            fake_time.wait(10)
    assert "the loop waits 9 ms per step inside the loader without computing" in m.summary()


def test_a_stoker_loader_is_measured_by_its_own_stages(photos):
    loader = stoker.Loader(photos, batch_size=2, num_workers=1, transform=[stoker.Resize(16), stoker.CenterCrop(16)], output="numpy")
    with stoker.measure(loader) as m:
        for _ in range(3):
            for _ in m:
                time.sleep(0.02)
        assert len(m) == len(loader)
    report = m.report()
    assert report["total"]["compute"]["ms_per_step"] >= 19, m.summary()
    assert report["loaders"][0]["settings"]["num_workers"] == 1
    assert report["loaders"][0]["settings"]["batch_size"] == 2
    assert report["loaders"][0]["all_steps"] == 3 * len(loader)
    assert len(report["loaders"][0]["epochs"]) == 3
    loader.close()


TORCH = """
import sys, time, torch, stoker
from torch.utils.data import DataLoader, Dataset

class Samples(Dataset):
    def __len__(self): return 64
    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.zeros(3)

if __name__ == "__main__":
    method = sys.argv[1]
    loader = DataLoader(Samples(), batch_size=4, num_workers=1, multiprocessing_context=method)
    for batch in loader: break                       # before the block: not counted
    with stoker.measure(loader) as m:
        for batch in m: time.sleep(0.005)
    print(m.verdict)
    assert m.report()["total"]["wait"]["handoff"]["unknown"]["share"] < 0.02, m.report()
    assert m.report()["loaders"][0]["workers"]["fetch_ms_per_batch"] >= 38  # four samples that sleep 10 ms
    assert m.report()["loaders"][0]["all_steps"] == 16
    with stoker.measure(loader) as again:            # a second block counts anew
        for batch in again: pass
    assert again.report()["loaders"][0]["all_steps"] == 16
    for batch in loader: pass                        # after it: as ever
"""


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_the_workers_of_a_data_loader_are_timed(method, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "job.py").write_text(TORCH)
    done = subprocess.run([sys.executable, "job.py", method], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert re.match(r"\w+_bound .* %", done.stdout), done.stdout  # which one, tests/measure/test_truth.py asks on quiet cores


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = dict(os.environ)
    with stoker.measure(batches(5)) as m:
        for _ in m:
            pass
    assert list(tmp_path.iterdir()) == [] and dict(os.environ) == before
    assert m.report()["loaders"][0]["all_steps"] == 5  # still there


def test_wrong_uses_say_what_is_right():
    with pytest.raises(ValueError, match="'int' is not iterable"):
        stoker.measure(3)
    m = stoker.measure([1, 2])
    with pytest.raises(ValueError, match="outside of its block"):
        iter(m)
    with pytest.raises(ValueError, match="nothing was measured yet"):
        _ = m.verdict
    with m:
        pass
    assert m.verdict == "no loader was seen"
    with pytest.raises(ValueError, match="entered already"):
        m.__enter__()


def test_an_error_in_the_loop_passes_through():
    with pytest.raises(RuntimeError, match="mine"):
        with stoker.measure(batches(10)) as m:
            for _ in m:
                raise RuntimeError("mine")
    assert m.report()["loaders"][0]["all_steps"] == 1


@pytest.mark.parametrize("batch, samples", [
    (numpy.zeros((5, 3)), 5), ((numpy.zeros((5, 3)), numpy.zeros(5)), 5), ({"images": numpy.zeros((4, 2)), "names": ["a"] * 4}, 4),
    (["a", "b", "c"], 3), ([["a", "b", "c"], [0, 1, 1]], 3), ({"texts": ["a", "b"]}, 2), ([], 1), (7, 1), (numpy.float32(7), 1),
])
def test_samples_of_a_batch_are_counted_as_far_as_it_shows(batch, samples):
    assert samples_of(batch) == samples
