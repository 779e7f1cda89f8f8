"""Small data sets that the tests make themselves."""

import io
import os
import pathlib
import subprocess
import sys
import textwrap

import numpy
import pytest
from PIL import Image

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests"))  # hostile_names


@pytest.fixture(autouse=True, scope="session")
def listings_in_a_folder_of_the_test(tmp_path_factory):
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


def picture(seed: int, width: int = 48, height: int = 40) -> Image.Image:
    """Smooth colours with some noise, so that JPEG has something to do."""
    random = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width]
    base = numpy.stack([127 + 120 * numpy.sin(x / 9 + seed), 127 + 120 * numpy.cos(y / 7 + seed), 2.0 * (x + y) % 256], -1)
    return Image.fromarray(numpy.clip(base + random.normal(0, 6, base.shape), 0, 255).astype(numpy.uint8))


def encoded_picture(seed: int, kind: str = "png") -> bytes:
    """A small picture as a file."""
    out = io.BytesIO()
    picture(seed, 12, 10).save(out, kind)
    return out.getvalue()


@pytest.fixture(scope="session")
def photos(tmp_path_factory) -> pathlib.Path:
    """Three classes of eight JPEG pictures, all 48 x 40."""
    root = tmp_path_factory.mktemp("photos")
    for number in range(24):
        folder = root / ("cat", "dog", "emu")[number % 3]
        folder.mkdir(exist_ok=True)
        picture(number).save(folder / f"{number:03}.jpg", quality=90)
    return root


@pytest.fixture
def array(tmp_path):
    """``array(n)`` writes an .npy of n samples; sample i is four float32 of value i."""

    def make(count: int, width: int = 4, name: str = "array.npy") -> pathlib.Path:
        path = tmp_path / name
        numpy.save(path, numpy.repeat(numpy.arange(count, dtype=numpy.float32)[:, None], width, 1))
        return path

    return make


@pytest.fixture(scope="session")
def big_array(tmp_path_factory) -> pathlib.Path:
    """2,000 samples of 64 KiB."""
    path = tmp_path_factory.mktemp("big") / "big.npy"
    numpy.save(path, numpy.repeat(numpy.arange(2000, dtype=numpy.float32)[:, None], 16384, 1))
    return path


@pytest.fixture
def run_python():
    """Runs a program in a new interpreter; returns the finished process."""

    def run(program: str, *arguments: object, timeout: float = 120, check: bool = True) -> subprocess.CompletedProcess:
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)], capture_output=True,
                              text=True, timeout=timeout)
        assert not check or done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run


def rows(loader) -> list[int]:
    """The sample numbers of an ``array`` data set, as they come."""
    return [int(value) for data, _ in loader for value in numpy.asarray(data)[:, 0]]
