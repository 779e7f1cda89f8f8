"""`stoker measure --deep`: the step alone, the loader alone and both, against the ledger."""

import json
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
    """deep("train:make", "--with", ...) -> the finished process, in a folder with a program and its files."""
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


SLOW_LOADER = ("train:make", "--with", "sleep=0.006", "--with", "step=0.012", "--json")


def parsed(done):
    return json.loads(done.stdout)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_slow_loader_is_taken_apart(workers, deep):
    """The least that each part takes holds on a busy machine too; how the parts compare is for quiet cores."""
    pytest.importorskip("torch")
    answer = parsed(deep(*SLOW_LOADER, "--with", f"num_workers={workers}", "--steps", "10"))
    assert answer["schema"] == "stoker.measure-deep/1" and answer["verdict"]["bound"].endswith("_bound") and answer["steps"] > 0
    assert answer["compute_only"]["ms_per_step"] >= 12 and answer["loader_only"]["warm"]["ms_per_step"] >= (24 if workers == 0 else 20)
    assert answer["loader_only"]["cold=data"]["ms_per_step"] > 0
    assert answer["real"]["ms_per_step"] >= (36 if workers == 0 else 20)
    difference = answer["difference"]
    assert difference["doubtful"] in ("neither", "ledger", "difference") and 0 <= difference["loader_hidden"] <= 1
    assert difference["agrees"] is (difference["doubtful"] == "neither")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_a_slow_loader_costs_by_difference_what_the_ledger_says(workers, deep, quiet_cores):
    pytest.importorskip("torch")
    answer = quiet_cores(lambda: parsed(deep(*SLOW_LOADER, "--with", f"num_workers={workers}")))
    assert answer["verdict"]["general"] == "io_bound"
    assert answer["difference"]["agrees"] is True and answer["difference"]["doubtful"] == "neither", answer
    hidden = answer["difference"]["loader_hidden"]
    assert hidden > 0.25 if workers else hidden < 0.25, answer


@pytest.mark.slow
def test_a_ledger_that_cannot_see_the_device_is_doubted(deep, quiet_cores):
    pytest.importorskip("torch")
    answer = quiet_cores(lambda: parsed(deep("train.py:make_device", "--with", "sleep=0.005", "--with", "step=0.060", "--steps", "20", "--json")))
    assert answer["difference"]["doubtful"] == "ledger", answer
    assert "goes on while the loop already waits" in answer["difference"]["why"]


OUR_LOADER = ("rows.npy", "--batch-size", "8", "--step-ms", "10", "--steps", "30")


@pytest.fixture
def rows(tmp_path):
    numpy = pytest.importorskip("numpy")
    numpy.save(tmp_path / "rows.npy", numpy.zeros((400, 64), numpy.float32))


def test_our_own_loader_is_taken_apart_too(deep, rows):
    done = parsed(deep(*OUR_LOADER, "--json"))
    assert done["steps"] == 30 and done["verdict"]["bound"].endswith("_bound")
    assert done["compute_only"]["ms_per_step"] >= 10 and done["real"]["ms_per_step"] >= 10
    text = deep(*OUR_LOADER[:-2]).stdout
    for label in ("_bound", "  compute only", "  loader only", "  real", "  difference", "  check"):
        assert label in text, text
    assert "cold=data" in text


@pytest.mark.slow
def test_our_own_loader_costs_by_difference_what_the_ledger_says(deep, rows, quiet_cores):
    done = quiet_cores(lambda: parsed(deep(*OUR_LOADER, "--json")))
    assert done["verdict"]["bound"] == "compute_bound" and done["difference"]["agrees"] is True, done


def test_what_cannot_be_taken_apart_is_named(deep):
    pytest.importorskip("torch")
    fine = ("--with", "sleep=0", "--with", "step=0")
    assert "No module named 'nosuch'" in deep("nosuch:make", code=2).stderr
    assert "`train` has no function `nosuch`" in deep("train:nosuch", code=2).stderr
    assert "`train` has no function `not_a_function`" in deep("train:not_a_function", code=2).stderr
    assert "`train:make_nothing` returned DataLoader" in deep("train:make_nothing", *fine, code=2).stderr
    assert "can be read once only" in deep("train:make_generator", *fine, code=2).stderr
    assert "KeyError: 'sleep'" in (broken := deep("train:make", code=2).stderr) and "ended with exit code 1 before they had an answer" in broken
    assert "`train:make` never reads the knob `steep`" in deep("train:make", *fine, "--with", "steep=1", code=2).stderr
    assert "`--with` takes NAME=VALUE, not `sleep`" in deep("train:make", "--with", "sleep", code=2).stderr
    assert "no such file or folder" in deep("train:make", *fine, "--data", "nowhere", code=2).stderr


def test_what_has_no_meaning_with_deep_is_refused(deep):
    assert "cannot" in deep("nowhere/at/all", code=2).stderr
    assert "`--with` is for a Python entry point" in deep("files", "--with", "a=1", code=2).stderr
    assert "`--trace` has no meaning with `--deep`" in deep("files", "--trace", "x.json", code=2).stderr
    assert "exclude each other" in deep("files", "--", "true", code=2).stderr
    assert "exclude each other" in deep("files", "--pid", "1", code=2).stderr
