"""Every example runs, and is short."""

import pathlib
import re
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
    paths = list(EXAMPLES.glob("*.py"))
    assert paths
    for path in paths:
        assert len(path.read_text().splitlines()) <= 40, path.name


def test_train_torch(photos):
    pytest.importorskip("torch")
    out = run("train_torch.py", photos)
    assert out.count("epoch") == 3 and "samples/s" in out


SHARED = [(0, 0, 12, 3), (0, 1, 12, 3), (1, 0, 12, 3), (1, 1, 12, 3), (0, 2, 24, 6), (0, 3, 24, 6)]  # two ranks, then one: rank, epoch, samples, steps


@pytest.mark.slow
@pytest.mark.parametrize("name, needs", [("train_ddp.py", "torch"), ("train_fsdp.py", "torch"), ("train_accelerate.py", "accelerate")])
def test_examples_of_torchrun_resume_with_another_number_of_ranks(photos, tmp_path, name, needs):
    pytest.importorskip(needs)
    lines = []
    for ranks in (2, 1):
        out = run(name, photos, tmp_path / "checkpoint.pt", ranks=ranks)  # what the ranks print may share a line
        lines += sorted(re.findall(r"rank \d, epoch \d: \d+ samples in \d+ steps", out))
    assert lines == [f"rank {rank}, epoch {epoch}: {samples} samples in {steps} steps" for rank, epoch, samples, steps in SHARED]


@pytest.mark.slow
def test_train_lightning(photos, tmp_path):
    pytest.importorskip("pytorch_lightning")
    lines = []
    for ranks in (2, 1):
        lines += sorted(re.findall(r"rank \d, epoch \d: \d+ samples", run("train_lightning.py", photos, tmp_path / "checkpoint.ckpt", ranks)))
    assert lines == [f"rank {rank}, epoch {epoch}: {samples} samples" for rank, epoch, samples, _ in SHARED]


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
