"""`stoker tune` with targets in Python: needs the program (STOKER_BIN) and the package."""

import csv
import json
import os
import subprocess
import sys

import pytest


@pytest.fixture
def environment(tmp_path_factory):
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("STOKER_", "NO_COLOR"))}
    return {**keep, "LANG": "C", "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def tune(binary, environment, tmp_path):
    """tune("job.py:build", ...) -> the finished process; unless json_ is off its answer."""

    def run(*words, json_=True, timeout=300, code=0):
        python = [] if "--python" in words else ["--python", sys.executable]
        command = [binary, "tune", *map(str, words), *python, *(["--json"] if json_ else [])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, cwd=tmp_path)
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout) if json_ and code in (0, 1) else done

    return run


def rows_of(folder):
    with open(folder / "results.csv", newline="") as file:
        return list(csv.DictReader(file))
