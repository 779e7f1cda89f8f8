"""stoker completions: bash completes verbs and flags, and what the other shells and man read is in order."""

import re
import shutil
import subprocess

import pytest
from test_manners import VERBS

COMPLETE = """
source <("$STOKER_BIN" completions bash)
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_stoker
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(*words):
    done = subprocess.run(["bash", "-c", COMPLETE, "bash", *words], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split()


def test_bash_completes_verbs_and_flags():
    assert completed("stoker", "") == [*VERBS, "help", "--help", "--version"]
    assert completed("stoker", "me") == ["measure"]
    assert completed("stoker", "load", "data", "--batch") == ["--batch-size"]
    assert "--no-disk" in completed("stoker", "doctor", "--no")
    assert completed("stoker", "load", "da") == []  # bash then completes files
    assert completed("stoker", "measure", "--", "python", "--b") == []
    assert completed("stoker", "nosuchverb", "--b") == []


@pytest.mark.parametrize("shell, check", [("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])])
def test_other_shells_can_read_theirs(stoker, tmp_path, shell, check):
    done = stoker("completions", shell)
    assert done.returncode == 0 and "batch-size" in done.stdout and all(verb in done.stdout for verb in VERBS)
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(done.stdout)
    read = subprocess.run([*check, str(tmp_path / "script")], capture_output=True, text=True)
    assert read.returncode == 0 and not read.stderr, read.stderr


def test_the_manual_page_has_every_verb_and_no_error(stoker):
    done = stoker("completions", "man")
    assert done.returncode == 0
    assert all(f'.SH "stoker {verb}"' in done.stdout for verb in VERBS)
    if not shutil.which("groff"):
        pytest.skip("groff is not installed")
    read = subprocess.run(["groff", "-man", "-ww", "-Tascii"], input=done.stdout, capture_output=True, text=True)
    assert read.returncode == 0 and not read.stderr, read.stderr
    assert "--batch-size N" in re.sub(".\x08", "", read.stdout)  # without the overstrikes of bold letters


def test_another_shell_is_refused_with_those_that_are_known(stoker):
    done = stoker("completions", "tcsh")
    assert done.returncode == 2 and "there are no completions for `tcsh`" in done.stderr and "bash, zsh, fish" in done.stderr
