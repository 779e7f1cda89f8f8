"""What every test of the program needs."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def binary():
    """The program: STOKER_BIN, else the release build."""
    path = pathlib.Path(os.environ.get("STOKER_BIN", ROOT / "build/release/stoker")).resolve()
    if not path.exists():
        pytest.fail(f"there is no program at {path}: ./dev build makes it")
    return str(path)
