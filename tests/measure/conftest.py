import json
import os
import subprocess
import sys

import pytest


@pytest.fixture
def environment():
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("STOKER_", "NO_COLOR"))}
    return {**keep, "LANG": "C"}


@pytest.fixture
def measure(binary, environment, tmp_path):
    """measure("python words", ...) -> the JSON answer; `run` has the process."""

    def run(*command, flags=(), env=None, timeout=120, code=0):
        done = subprocess.run([binary, "measure", "--out", str(tmp_path / "out"), *flags, "--", *map(str, command)], capture_output=True,
                              text=True, timeout=timeout, env={**environment, **(env or {})}, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        answer = json.loads((tmp_path / "out/measure.json").read_text())
        answer["stderr"], answer["stdout"] = done.stderr, done.stdout
        return answer

    return run


@pytest.fixture
def script(tmp_path, measure):
    """Measures a program given as text."""

    def run(text, *words, **options):
        path = tmp_path / "train.py"
        path.write_text(text)
        return measure(sys.executable, path, *words, **options)

    return run
