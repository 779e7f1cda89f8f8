"""The loader's life at random (life.py), beside a model of it (life_model.py). A failure shows the steps and the seed."""

import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).parent


def live(tmp_path, seed, seconds):
    """Runs lives in a program of their own, so that one that hangs or crashes leaves its steps. Returns what it printed."""
    journal = tmp_path / "steps"
    print(f"STOKER_LIFE_SEED={seed} STOKER_LIFE_SECONDS={seconds}")
    done = subprocess.run([sys.executable, HERE / "life.py", f"--seed={seed}", f"--seconds={seconds}", f"--journal={journal}"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        steps = journal.read_text().splitlines()
        listed = "\n".join(f"{number:4} {step}" for number, step in enumerate(steps))
        pytest.fail(f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}\nthe steps; repeat them with {steps[0]} STOKER_LIFE_SECONDS=1\n{listed}",
                    pytrace=False)
    return done.stdout


def setting(name, otherwise):
    return int(os.environ.get(name) or otherwise)


def test_a_life_at_random_is_what_the_model_says(tmp_path):
    out = live(tmp_path, setting("STOKER_LIFE_SEED", 1), setting("STOKER_LIFE_SECONDS", 10))
    lives, steps = map(int, re.findall(r"\d+", out))
    assert lives >= 1 and steps >= 20


@pytest.mark.slow
@pytest.mark.skipif("STOKER_LIFE_LONG" not in os.environ, reason="runs for half an hour in `./dev test --slow`")
def test_many_lives_at_random_are_what_the_model_says(tmp_path):
    """Half an hour, or STOKER_LIFE_SECONDS."""
    print(live(tmp_path, setting("STOKER_LIFE_SEED", int(time.time())), setting("STOKER_LIFE_SECONDS", 1800)))
