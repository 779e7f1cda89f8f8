"""Case A's job from end to end: 16-bit slices, an index.csv, a subset inflated 1,000 times, faults at large batches with workers, and a
tuner that is killed at any time."""

import json
import random
import subprocess
import sys
import time

import numpy
import pytest
from conftest import rows_of

pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

# As the team's GPU runtime did it: sometimes an exception, sometimes a crash.
JOB = """
import os, stoker.targets
def build(knobs):
    loader, step = stoker.targets.ct_slices(knobs)
    def faulty(batch):
        if knobs["batch_size"] >= 256 and knobs["num_workers"] > 0:
            if knobs["num_workers"] % 8:
                os.abort()
            raise RuntimeError("HIP error: an illegal memory access was encountered\\nSearch for `hipErrorIllegalAddress' in the docs")
        step(step.transfer(batch))
    return loader, faulty
"""


def make_slices(folder, count):
    generator = numpy.random.default_rng(2)
    folder.mkdir()
    lines = ["path"]
    for number in range(count):
        Image.fromarray(generator.integers(31000, 36000, (32, 32), numpy.uint16)).save(folder / f"{number:04}.png")
        lines.append(f"{number:04}.png")
    (folder / "index.csv").write_text("\n".join(lines) + "\n")


def run_until_done(binary, environment, folder, words, kills, patience):
    """Starts the tuner and kills it `kills` times at random moments; then lets it end. Checks each time that no row was lost."""
    chance, seen = random.Random(3), []
    for kill in range(kills + 1):
        command = [binary, "tune", *(words if kill == 0 else ["--resume", "run"]), "--json"]
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if kill < kills:
            deadline = time.monotonic() + patience
            wanted = len(seen) + 1
            results = folder / "run/results.csv"
            while process.poll() is None and time.monotonic() < deadline and not (results.exists() and len(rows_of(folder / "run")) >= wanted):
                time.sleep(0.02)
            time.sleep(chance.uniform(0, 0.7))
            process.kill()
            process.communicate()
        else:
            out, errors = process.communicate(timeout=patience)
            assert process.returncode == 0, errors
        now = [(row["trial"], row["status"], row["images_per_s"]) for row in rows_of(folder / "run")]
        assert now[:len(seen)] == seen, "a row was lost or changed"
        seen = now
    return json.loads(out)


def words(batches, workers):
    return ["job.py:build", "slices/index.csv", "--subset", "1000", "--subset-seed", "42", "--inflate", "1000", "--with", "img_size=8", "--search", "grid",
            "--grid", f"batch_size={batches}", "--grid", f"num_workers={workers}", "--grid", "pin_memory=true,false", "--warmup-steps", "1",
            "--bench-steps", "2", "--python", sys.executable, "--out", "run"]


def check(found, folder, points, faults):
    rows = rows_of(folder / "run")
    keys = {(row["batch_size"], row["num_workers"], row["pin_memory"]) for row in rows}
    assert len(rows) == len(keys) == points == found["points"]
    assert found["failures"] == {"runtime_fault": faults} and found["ok"] == points - faults
    assert all((row["status"] == "runtime_fault") == (int(row["batch_size"]) >= 256 and int(row["num_workers"]) > 0) for row in rows)
    assert int(found["chosen"]["knobs"]["batch_size"]) < 256 or found["chosen"]["knobs"]["num_workers"] == "0"
    assert json.loads((folder / "run/subset.json").read_text())["count"] == min(1000, json.loads((folder / "run/config.json").read_text())["subset_size"])


@pytest.mark.parametrize("batches, workers, kills", [
    ("32,256", "0,4", 2),
    pytest.param("32,64,128,192,256,512", "0,4,8,16,24,32", 20, marks=pytest.mark.slow),
])
def test_it_completes_unattended_and_loses_nothing_when_it_is_killed(binary, environment, tmp_path, batches, workers, kills):
    make_slices(tmp_path / "slices", 1000)
    (tmp_path / "job.py").write_text(JOB)
    found = run_until_done(binary, environment, tmp_path, words(batches, workers), kills, 1800)
    counts = batches.count(",") + 1, workers.count(",") + 1
    check(found, tmp_path, counts[0] * counts[1] * 2, sum(int(batch) >= 256 for batch in batches.split(",")) * (counts[1] - 1) * 2)
