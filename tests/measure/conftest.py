import json
import os
import pathlib
import resource
import subprocess
import sys
import time

import pytest

QUIET = 0.1  # of the cores, that other programs may keep busy where a test needs quiet ones


def core_seconds():
    """Core seconds so far: used by all programs, used by children of this process that have ended, and passed on all cores."""
    times = [int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    ours = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(times[:3]), ours.ru_utime + ours.ru_stime, sum(times)


class Others:
    """How much of the cores other programs keep busy inside the block: `share`, of 1; None where the kernel does not count."""

    def __enter__(self):
        self._before, self._began = core_seconds(), time.monotonic()
        return self

    def __exit__(self, *_):
        used, ours, passed = (after - before for before, after in zip(self._before, core_seconds()))
        self.share = max(0.0, used - ours) / passed if passed > (time.monotonic() - self._began) / 2 else None

    @property
    def text(self):
        return "this kernel does not count" if self.share is None else f"other programs keep {self.share:.0%} of the cores busy"


@pytest.fixture
def quiet_cores():
    """For tests whose figures are sure only on cores of their own: `quiet_cores(run)` waits for those, and returns what `run()` does once
    nobody disturbed it. If the cores do not become quiet, it returns the result of the least disturbed of four runs: the test still judges
    it, and a failure shows how busy the cores were."""

    def wait():
        for _ in range(10):
            with Others() as others:
                time.sleep(0.5)
            if others.share is not None and others.share <= QUIET:
                return

    def undisturbed(run):
        runs = []
        for _ in range(4):
            wait()
            with Others() as others:
                result = run()
            if others.share is not None and others.share <= QUIET:
                return result
            runs.append((1.0 if others.share is None else others.share, others.text, result))
        _, text, result = min(runs, key=lambda made: made[0])
        print(f"needs quiet cores: {text}")  # pytest shows it with a failure
        return result

    return undisturbed


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
