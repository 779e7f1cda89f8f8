"""stoker demo --s3: it tells the story against a server of its own, and leaves neither processes nor folders behind."""

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest


@pytest.fixture
def environment(weed, tmp_path, monkeypatch):
    """A PATH that has the server, folders of the test's own, and keys of another store, which must not be used."""
    (tmp_path / "tmp").mkdir()
    return {**os.environ, "LANG": "C.UTF-8", "PATH": os.pathsep.join([str(pathlib.Path(weed).parent), os.environ["PATH"]]), "TMPDIR": str(tmp_path / "tmp"),
            "XDG_CACHE_HOME": str(tmp_path / "user-cache"), "AWS_PROFILE": "of-nobody", "AWS_SESSION_TOKEN": "of-nobody"}


def servers(folder):
    """The processes whose command line names the folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found += [entry.name] * (str(folder).encode() in (entry / "cmdline").read_bytes())
            except OSError:
                pass  # it has ended
    return found


def test_the_story_is_told_and_nothing_stays_but_what_is_asked_for(binary, environment, tmp_path):
    done = subprocess.run([binary, "demo", "--s3", "--quick", "--dir", "data"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert re.findall(r"^(\d)\. (\w+)", done.stdout, re.M) == [("1", "Epoch"), ("2", "Stage"), ("3", "Tune"), ("4", "Plan"), ("5", "Report")]
    assert re.search(r"^   0 from S3 +[\d.]+ +[\d,]+ +\d+ % +\d+ +[\d.]+ MiB +\d+$", done.stdout, re.M), done.stdout
    assert re.search(r"^   1 from the cache +[\d.]+ +[\d,]+ +\d+ % +\d+ .* \d+$", done.stdout, re.M), done.stdout
    assert "the same command again: 0 fetched, 120 there unchanged" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "<svg" in (tmp_path / "data/report.html").read_text()
    assert not list((tmp_path / "tmp").iterdir()) and not servers(tmp_path)


@pytest.mark.slow
def test_its_json_has_the_figures(binary, environment, tmp_path):
    done = subprocess.run([binary, "demo", "--s3", "--quick", "--json"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["schema"] == "stoker.demo_s3/1" and told["images"] == 320
    first, second = told["epochs"]
    assert (first["from"], second["from"]) == ("store", "cache") and first["store"]["requests"] >= 320
    assert first["store"]["store_bytes"] >= told["bytes"] and second["store"]["cache_hits"] > second["store"]["requests"]
    assert len(told["stage"]["classes"]) == 3 and told["stage"]["fetched_again"] == 0
    assert [cost["access"] for cost in told["plan"]["costs"]] == ["from the store", "disk cache", "staged once"]
    assert told["plan"]["headline"] and told["tune"]["ok"] == 3
    assert not list((tmp_path / "tmp").iterdir()) and not servers(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)], ids=lambda number: number.name)
def test_a_signal_ends_the_server_and_removes_its_folder(binary, environment, tmp_path, number):
    process = subprocess.Popen([binary, "demo", "--s3"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("put 320 JPEG images")
    assert servers(tmp_path)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert not list((tmp_path / "tmp").iterdir()) and not servers(tmp_path)
