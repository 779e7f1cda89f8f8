"""`stoker measure --deep`: the step alone, the loader alone and both, against the ledger."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = """
import pathlib, threading, time
import torch
from torch.utils.data import DataLoader, Dataset

class Files(Dataset):
    def __init__(self, sleep):
        self.paths = sorted(str(path) for path in pathlib.Path("files").iterdir())
        self.sleep = sleep
    def __len__(self): return len(self.paths)
    def __getitem__(self, index):
        data = pathlib.Path(self.paths[index]).read_bytes()
        time.sleep(self.sleep)
        return torch.zeros(4) + len(data)

def loader(knobs):
    return DataLoader(Files(knobs["sleep"]), batch_size=4, num_workers=knobs.get("num_workers", 0))

def make(knobs):
    return loader(knobs), lambda batch: time.sleep(knobs["step"])

def make_device(knobs):
    "A device: a step begins when the one before has ended, and goes on while the loop asks for the next batch."
    running = []
    def step(batch):
        if running: running.pop().join()
        running.append(threading.Timer(knobs["step"], lambda: None))
        running[0].start()
    return loader(knobs), step

def make_generator(knobs): return (batch for batch in loader(knobs)), print
def make_nothing(knobs): return loader(knobs)
not_a_function = 3
"""


@pytest.fixture
def deep(binary, environment, tmp_path):
    """deep("train:make", "--knob", ...) -> the finished process, in a folder with a program and its files."""
    stoker = pytest.importorskip("stoker")
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "files").mkdir()
    for i in range(120):
        (tmp_path / "files" / f"{i:03}").write_bytes(bytes([i]) * 20000)

    def run(*words, code=0):
        done = subprocess.run([binary, "measure", "--python", sys.executable, "--deep", *words], capture_output=True, text=True, cwd=tmp_path,
                              timeout=120, env={**environment, "PYTHONPATH": str(pathlib.Path(stoker.__file__).parents[1])})
        assert done.returncode == code, done.stderr
        return done

    return run


def quiet(run, wanted="neither"):
    """The answer, once what is doubtful is what should be. A machine that is busy with other things blurs the runs: try again there."""
    for _ in range(3):
        answer = json.loads(run().stdout)
        if answer["difference"]["doubtful"] == wanted:
            return answer
    if os.getloadavg()[0] > 1.5 * len(os.sched_getaffinity(0)):
        pytest.skip(f"the machine was not quiet: {answer['difference']['why']}")
    return answer


@pytest.mark.parametrize("workers", [0, 1])
def test_a_slow_loader_costs_by_difference_what_the_ledger_says(workers, deep):
    pytest.importorskip("torch")
    answer = quiet(lambda: deep("train:make", "--knob", "sleep=0.006", "--knob", "step=0.012", "--knob", f"num_workers={workers}", "--json"))
    assert answer["schema"] == "stoker.measure-deep/1" and answer["verdict"]["general"] == "io_bound"
    assert answer["difference"]["agrees"] is True and answer["difference"]["doubtful"] == "neither", answer
    assert answer["compute_only"]["ms_per_step"] >= 12 and answer["loader_only"]["warm"]["ms_per_step"] >= 24
    assert answer["loader_only"]["cold=data"]["ms_per_step"] > 0
    assert answer["real"]["ms_per_step"] >= (24 if workers else 36)
    hidden = answer["difference"]["loader_hidden"]
    assert hidden > 0.25 if workers else hidden < 0.25, answer


def test_a_ledger_that_cannot_see_the_device_is_doubted(deep):
    pytest.importorskip("torch")
    answer = quiet(lambda: deep("train.py:make_device", "--knob", "sleep=0.005", "--knob", "step=0.060", "--steps", "20", "--json"), "ledger")
    assert answer["difference"]["doubtful"] == "ledger", answer
    assert "goes on while the loop already waits" in answer["difference"]["why"]


def test_our_own_loader_is_taken_apart_too(deep, tmp_path):
    numpy = pytest.importorskip("numpy")
    numpy.save(tmp_path / "rows.npy", numpy.zeros((400, 64), numpy.float32))
    done = quiet(lambda: deep("rows.npy", "--batch-size", "8", "--step-ms", "10", "--steps", "30", "--json"))
    assert done["verdict"]["bound"] == "compute_bound" and done["steps"] == 30
    assert done["compute_only"]["ms_per_step"] >= 10 and done["real"]["ms_per_step"] >= 10
    assert done["difference"]["agrees"] is True, done
    text = deep("rows.npy", "--batch-size", "8", "--step-ms", "10").stdout
    for label in ("stoker: compute_bound", "  compute only", "  loader only", "  real", "  difference", "  check"):
        assert label in text, text
    assert "cold=data" in text


def test_what_cannot_be_taken_apart_is_named(deep):
    pytest.importorskip("torch")
    fine = ("--knob", "sleep=0", "--knob", "step=0")
    assert "No module named 'nosuch'" in deep("nosuch:make", code=2).stderr
    assert "`train` has no function `nosuch`" in deep("train:nosuch", code=2).stderr
    assert "`train` has no function `not_a_function`" in deep("train:not_a_function", code=2).stderr
    assert "`train:make_nothing` returned DataLoader" in deep("train:make_nothing", *fine, code=2).stderr
    assert "can be read once only" in deep("train:make_generator", *fine, code=2).stderr
    assert "KeyError: 'sleep'" in (broken := deep("train:make", code=2).stderr) and "ended with exit code 1 before they had an answer" in broken
    assert "`train:make` never reads the knob `steep`" in deep("train:make", *fine, "--knob", "steep=1", code=2).stderr
    assert "`--knob` takes NAME=VALUE, not `sleep`" in deep("train:make", "--knob", "sleep", code=2).stderr
    assert "no such file or folder" in deep("train:make", *fine, "--data", "nowhere", code=2).stderr


def test_what_has_no_meaning_with_deep_is_refused(deep):
    assert "cannot" in deep("nowhere/at/all", code=2).stderr
    assert "`--knob` is for a Python entry point" in deep("files", "--knob", "a=1", code=2).stderr
    assert "`--trace` has no meaning with `--deep`" in deep("files", "--trace", "x.json", code=2).stderr
    assert "exclude each other" in deep("files", "--", "true", code=2).stderr
    assert "exclude each other" in deep("files", "--pid", "1", code=2).stderr
