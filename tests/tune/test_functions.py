"""Functions of a module or file as targets: what they are given, what is measured, how they fail."""

import json
import sys

import pytest
from conftest import rows_of

# A loader without torch: batches of `batch_size` rows, made at `rate` rows per second.
JOB = """
import json, os, time

class Rows:
    def __init__(self, size):
        self.shape = (size,)

class Loader:
    def __init__(self, size, rate):
        self.size, self.rate = size, rate
    def __iter__(self):
        for _ in range(7):  # epochs are short
            time.sleep(self.size / self.rate)
            yield Rows(self.size), None

def build(knobs):
    size, workers = knobs["batch_size"], knobs.get("num_workers", 1)
    loader = Loader(size, 400 * min(workers, 2) ** 3)  # far apart, so that no noise matters
    class Step:
        def transfer(self, batch):
            time.sleep(0.001)
            return batch
        def __call__(self, batch):
            time.sleep(0.002)
    return loader, Step()

def misspelt(knobs):
    return build({"batch_size": knobs["batch_size"], "num_workers": knobs.get("num_workers", 1)})

def tell(knobs):
    with open("knobs.json", "w") as file:
        json.dump(dict(knobs), file)
    return build({"batch_size": 8})

def nothing(knobs):
    return [1, 2, 3]

def short_of_memory(knobs):
    loader, _ = build(knobs)
    def step(batch):
        if knobs["batch_size"] >= 16:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB is free.")
    return loader, step

def greedy(knobs):
    build(knobs)
    raise MemoryError("no room for 7 rows")

def read_once(knobs):
    return (Rows(knobs["batch_size"]) for _ in range(4)), None

def mistaken(knobs):
    return lodaer, None
"""
BROKEN = "import os\n\nimport no_such_module\n\ndef build(knobs):\n    return [], None\n"
FAST = ["--search", "grid", "--warmup-steps", "1", "--bench-steps", "4", "--out", "run"]


@pytest.fixture(autouse=True)
def job(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "broken.py").write_text(BROKEN)


@pytest.mark.parametrize("target", ["job.py:build", "job:build"])
def test_a_function_is_run_with_each_point_in_a_process_of_its_own(tune, tmp_path, target):
    found = tune(target, "--grid", "batch_size=8,16", "--grid", "num_workers=1,2", *FAST)
    assert (found["points"], found["ok"]) == (4, 4) and found["chosen"]["knobs"]["num_workers"] == "2"
    rows = rows_of(tmp_path / "run")
    for row in rows:
        parts = [float(row[name]) for name in ("data_ms", "h2d_ms", "compute_ms")]
        assert all(parts) and sum(parts) <= 1.1 * float(row["step_ms"])
        assert float(row["trial_seconds"]) > 0 and not row["error"]
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["function"] == target and config["environment"].keys() >= {
        "torch", "cuda", "hip", "driver", "device_name", "cpu", "cores", "memory_bytes", "stoker"}
    lines = [json.loads(line) for line in (tmp_path / "run/trials/0001/steps.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines][::len(lines) - 1] == ["hello", "done"] and any(line.get("warmup") for line in lines)
    assert json.loads((tmp_path / "run" / "results.json").read_text())["tuner_cpu_share"] >= 0


def test_knobs_are_numbers_truths_and_words(tune, tmp_path):
    tune("job.py:tell", "--grid", "batch_size=8", "--grid", "amp=bf16", "--grid", "pin_memory=true", "--with", "lr=0.5", "--with", "name=none",
         "--with", "path=a=b", "--subset", "3", "--inflate", "10", *FAST)
    assert json.loads((tmp_path / "knobs.json").read_text()) == {
        "batch_size": 8, "amp": "bf16", "pin_memory": True, "lr": 0.5, "name": None, "path": "a=b", "subset": 3, "inflate": 10}


def test_a_file_that_cannot_be_imported_ends_the_search_with_its_traceback(tune, tmp_path):
    done = tune("broken.py:build", "--grid", "batch_size=8,16", *FAST, json_=False, code=2)
    assert "No module named 'no_such_module'" in done.stderr and "broken.py, line 3" in done.stderr
    assert "  |     import no_such_module" in done.stderr, done.stderr
    rows = rows_of(tmp_path / "run")
    assert len(rows) == 1 and rows[0]["status"] == "user_error"


@pytest.mark.parametrize("target, says", [
    ("job.py:biuld", "did you mean `job.py:build`?"),
    ("job.py:nothing", "returned list; a target returns (loader, step)"),
    ("job.py:mistaken", "name 'lodaer' is not defined"),
    ("job.py:read_once", "the loader was read to its end and cannot be read again"),
    ("no_module_of_that_name:build", "No module named 'no_module_of_that_name'"),
])
def test_mistakes_are_named(tune, target, says):
    assert says in tune(target, "--grid", "batch_size=8", *FAST, json_=False, code=2).stderr


def test_a_knob_that_nobody_reads_is_refused_with_the_nearest_name(tune):
    done = tune("job.py:misspelt", "--grid", "batch_size=8", "--grid", "num_wokers=1,2", *FAST, json_=False, code=2)
    assert "never reads the knob `num_wokers`; did you mean `num_workers`?" in done.stderr


def test_memory_that_runs_out_in_a_step_does_not_end_the_search(tune, tmp_path):
    found = tune("job.py:short_of_memory", "--grid", "batch_size=8,16,32", *FAST)
    assert found["ok"] == 1 and found["failures"] == {"oom_device": 1, "pruned": 1}


def test_a_memory_error_is_told_in_its_own_words(tune, tmp_path):
    found = tune("job.py:greedy", "--grid", "batch_size=8", *FAST, code=1)
    assert found["failures"] == {"oom_host": 1} and rows_of(tmp_path / "run")[0]["error"].startswith("MemoryError: no room for 7 rows")


@pytest.mark.parametrize("words, says", [
    (["nothing.py:build", "--grid", "lr=1"], "cannot open `nothing.py`"),
    (["job.py:build", "nodata", "--grid", "lr=1"], "cannot open `nodata`"),
    (["job.py:build"], "there is no knob to tune"),
    (["job.py:build", "--grid", "lr=1", "--with", "lr=2"], "`lr` is a knob and a setting at once"),
    (["job.py:build", "--grid", "lr=1", "--transform", "rrc:224"], "`--transform` is for our own loader, not for `job.py:build`"),
    (["job.py:build", "--grid", "lr=1", "--with", "img_size"], "`--with img_size`"),
])
def test_wrong_use_is_told_before_anything_runs(tune, tmp_path, words, says):
    done = tune(*words, "--out", "run", json_=False, code=2)
    assert says in done.stderr and done.stderr.count("error: ") == 1 and not (tmp_path / "run").exists()


def test_an_interpreter_without_the_package_is_refused(tune, tmp_path):
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    done = tune("job.py:build", "--grid", "batch_size=8", *FAST, "--python", bare, json_=False, code=2)
    assert "has no package `stoker`" in done.stderr and "--python" in done.stderr


def test_a_copy_of_its_config_is_given_to_the_function(tune, tmp_path):
    (tmp_path / "train.yaml").write_text("loader:\n  workers: 1  # few\n  batch: 8\n")
    (tmp_path / "from_file.py").write_text(
        "import job\ndef build(knobs):\n    text = open(knobs['config']).read()\n    assert '# few' in text\n"
        "    return job.build({'batch_size': 8, 'num_workers': int(text.split('workers: ')[1].split()[0])})\n")
    found = tune("from_file.py:build", "--config", "train.yaml", "--set", "loader.workers=1,2", *FAST)
    assert found["ok"] == 2 and found["chosen"]["knobs"] == {"loader.workers": "2"}
