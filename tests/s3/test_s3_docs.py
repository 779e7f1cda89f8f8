"""What docs/reference/s3.md shows first is run as it is written, against a real server, with the test's own address."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import BUCKET, Store
from PIL import Image

import stoker

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADDRESS = "s3://my-bucket/imagenet/train"


@pytest.fixture
def photos(s3, tmp_path):
    """The address of 24 JPEG files in three classes."""
    store = Store(s3, "docs")
    for i in range(24):
        path = tmp_path / "photos" / "abc"[i % 3] / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.random.default_rng(i).integers(0, 256, (64, 80, 3), dtype=np.uint8)).save(path)
    store.upload(tmp_path / "photos", "imagenet/train")
    return f"s3://{BUCKET}/docs/imagenet/train"


def first_block_with(page, word):
    """The language and the lines of the first block that has the word."""
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S):
        if word in text:
            return language, text
    pytest.fail(f"{page} has no block with {word}")


@pytest.mark.parametrize("page", ["docs/reference/s3.md"])
def test_the_first_example_runs_as_written(page, photos, binary, tmp_path):
    language, text = first_block_with(page, ADDRESS)
    text = text.replace(ADDRESS, photos)
    program = tmp_path / "example"
    program.write_text(text)
    words = [sys.executable, str(program)] if language == "python" else ["bash", "-e", str(program)]
    path = os.pathsep.join([str(pathlib.Path(binary).parent), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(words, cwd=tmp_path, env={**os.environ, "PATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, text + done.stderr
    assert "24" in done.stdout


def test_the_figures_of_a_store_are_those_of_one_loader(photos):
    def read(subset):
        with stoker.Loader(photos, batch_size=8, subset=subset, output="numpy", cache_dir=False, transform=[stoker.Resize((32, 32))]) as loader:
            list(loader)
        return loader

    one = read(24)
    figures = one.stats()["store"]
    other = read(8)
    assert 24 <= figures["requests"] and figures["store_bytes"] > 0
    assert one.stats()["store"] == figures, "what another loader asks for does not count here"
    assert other.stats()["store"]["requests"] >= 8 and other.stats()["store"] != figures
