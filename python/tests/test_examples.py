"""Every example runs, and is short."""

import pathlib
import subprocess
import sys

import numpy
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def run(name, *arguments, ranks=None):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks else []
    done = subprocess.run([sys.executable, *launcher, EXAMPLES / name, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_examples_fit_on_a_screen():
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 40, path.name


def test_train_torch(photos):
    pytest.importorskip("torch")
    out = run("train_torch.py", photos)
    assert out.count("epoch") == 3 and "samples/s" in out


@pytest.mark.slow
def test_train_ddp(photos, tmp_path):
    pytest.importorskip("torch")
    parts = []
    for ranks, steps in ((2, 3), (1, 6)):
        lines = sorted(run("train_ddp.py", photos, tmp_path / "checkpoint.pt", ranks=ranks).splitlines())
        assert len(lines) == 2 * ranks and all(line.endswith(f"{24 // ranks} samples in {steps} steps") for line in lines), lines
        parts += [line.split(":")[0] for line in lines]
    assert parts == ["rank 0, epoch 0", "rank 0, epoch 1", "rank 1, epoch 0", "rank 1, epoch 1", "rank 0, epoch 2", "rank 0, epoch 3"]


@pytest.mark.slow
def test_jax_example(photos):
    pytest.importorskip("jax")
    assert "loss" in run("jax_example.py", photos)


def test_resume(photos):
    assert "same batches: True" in run("resume.py", photos)


def test_custom_decode(tmp_path):
    for number in range(12):
        (tmp_path / f"{number}.raw").write_bytes(numpy.full((8, 8), number, numpy.uint16).tobytes())
    assert "(4, 8, 8)" in run("custom_decode.py", tmp_path)


def test_plain_torch(photos):
    pytest.importorskip("torch")
    run("plain_torch.py", photos)
