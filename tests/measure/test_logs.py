"""What logs of jobs say, replayed from the situations of three teams: steps that a log only names, runs of a builder that print several
rates, and epochs of different speed."""

import json
import pathlib
import re
import subprocess

import pytest


@pytest.fixture
def logs(binary, environment, tmp_path):
    """logs({"name.log": text}, *flags) -> the process; the logs are named in their order."""

    def run(texts, *flags, code=0):
        words = []
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
            words += ["--log", name]
        done = subprocess.run([binary, "measure", *words, *flags], capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60)
        assert done.returncode == code, done.stderr
        return done

    return run


VOLUMES = "".join(f"2026-01-05 10:{s // 60:02}:{s % 60:02} INFO Train step {step}/4000 loss=0.5{step}\n"
                  for step, s in ((10, 0), (20, 180), (30, 360), (40, 541))) + "slurmstepd: error: Detected 1 oom_kill event\nKilled\n"


def test_steps_that_the_log_only_names_are_timed_by_its_clock(logs):
    answer = json.loads(logs({"train_full.log": VOLUMES}, "--json").stdout)
    log = answer["logs"][0]
    assert log["step_s"] == pytest.approx(18, abs=0.1) and log["of_steps"] == 4000
    assert len(log["trouble"]) == 2, "as grep -i 'killed\\|oom\\|out of memory' finds"
    text = logs({"train_full.log": VOLUMES}).stdout
    assert "18 s per step" in text and "Killed" in text


def test_a_pattern_with_named_groups_reads_any_log(logs):
    text = "[rank0] TS 1 | 17.9 | q 0\n[rank0] TS 2 | 18.1 | q 1\n"
    pattern = r"TS (?P<step>\d+) \| (?P<step_s>[\d.]+) \| q (?P<queue>\d+)"
    answer = json.loads(logs({"train.log": text}, "--json", "--log-pattern", pattern).stdout)
    assert answer["logs"][0]["step_s"] == 18.1
    assert answer["logs"][0]["figures"] == [{"name": "queue", "unit": None, "median": 0.5, "values": [0.0, 1.0]}]
    assert "matches --log-pattern" in logs({"train.log": text}, "--log-pattern", "(?<step_s>nothing)").stdout
    done = logs({"train.log": text}, "--log-pattern", "TS ([0-9]+)", code=2)
    assert "--log-pattern" in done.stderr and "no named group" in done.stderr and "hint:" in done.stderr
    assert "no regular expression" in logs({"train.log": text}, "--log-pattern", "(?<a>[", code=2).stderr


def test_no_pattern_hangs_or_crashes_and_what_is_lacking_is_named(logs):
    text = "step " + "a" * 1500 + "!\nTS 1 | 17.9\n"
    assert "matches --log-pattern" in logs({"train.log": text}, "--log-pattern", "(?<step_s>(a+)+)$").stdout
    deep = "(" * 30_000 + "(?<a>x)" + ")" * 30_000
    assert "characters; the most are 4096" in logs({"train.log": text}, "--log-pattern", deep, code=2).stderr
    done = logs({"train.log": text}, "--log-pattern", r"(?<=TS )(?<step>\d+)", code=2)
    assert "--log-pattern" in done.stderr and "(look-behind), which the engine lacks" in done.stderr
    assert "the nearest name with a meaning is `step_s`" in logs({"train.log": text}, "--log-pattern", "(?<step_se>1)", code=2).stderr


def test_logs_in_colour_and_in_utf_16_are_read(logs, tmp_path):
    assert json.loads(logs({"a.log": "\x1b[32mTrain step\x1b[0m 7 took \x1b[1m17.9\x1b[0m seconds\n"}, "--json").stdout)["logs"][0]["step_s"] == 17.9
    (tmp_path / "wide.log").write_bytes("Train step 7 took 17.9 seconds\r\n".encode("utf-16"))
    assert json.loads(logs({}, "--log", "wide.log", "--json").stdout)["logs"][0]["step_s"] == 17.9


BEFORE = "TRAINING\n- Disk I/O: 11.5s (95.6%)\n- GPU: 0.5s (4.4%)\n- Queue Depth: avg=2.2\n- GPU Throughput: 77,000 files/s\n"
AFTER = "TRAINING\n- Disk I/O: 29.6s (98.3%)\n- GPU: 0.5s (1.7%)\n- Queue Depth: avg=5.9\n- GPU Throughput: 121,000 files/s\n"


def test_several_rates_of_several_runs_stand_side_by_side(logs):
    texts = {"results_8_2048.log": BEFORE, "results_16_1024.log": AFTER}
    answer = json.loads(logs(texts, "--json").stdout)
    compared = {one["name"]: one for one in answer["compared"]}
    assert compared["Disk I/O"]["values"] == [11.5, 29.6] and compared["Disk I/O"]["best"] == 0
    assert compared["GPU Throughput"]["values"] == [77000, 121000] and compared["GPU Throughput"]["best"] == 1
    assert compared["Queue Depth"]["best"] is None
    assert any("page cache" in note for note in answer["notes"]), "cold against warm is not excluded"
    lines = logs(texts).stdout.splitlines()
    assert lines[0].endswith("Disk I/O differs most: 2.57x, best in results_8_2048.log")
    assert any(line.split()[:5] == ["Disk", "I/O", "(s)", "11.5", "29.6"] for line in lines)
    assert any("77,000" in line and "121,000" in line and "1.57x" in line for line in lines)


EPOCHS = ("Epoch 0: 100%|##| 195/195 [07:37<00:00,  0.43it/s]\nEpoch 1: 100%|##| 195/195 [02:16<00:00,  1.42it/s]\n"
          "Epoch 2: 100%|##| 195/195 [01:56<00:00,  1.60it/s]\n")


def test_epochs_of_a_log_are_a_table(logs):
    lines = [line.split() for line in logs({"train.log": EPOCHS}).stdout.splitlines()]
    assert ["epoch", "it/s"] in lines and ["0", "0.43"] in lines and ["1", "1.42"] in lines and ["2", "1.60"] in lines


def test_logs_and_jobs_are_not_mixed_up(logs, binary, environment, tmp_path):
    done = logs({"a.log": BEFORE}, "--", "true", code=2)
    assert "exclude each other" in done.stderr
    done = logs({"a.log": BEFORE, "b.log": AFTER}, "--pid", "1", code=2)
    assert "more than once" in done.stderr
    done = subprocess.run([binary, "measure", "--log", "none.log"], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 2 and "none.log" in done.stderr
    done = subprocess.run([binary, "measure", "--log-pattern", "(?<a>b)"], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 2 and "--log train.log" in done.stderr
    assert "no figure that is known" in logs({"a.log": "nothing here\n"}).stdout


def patterns_of_the_docs():
    """(an example line, the pattern for it) of each row of the table in docs/reference/measure.md."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/reference/measure.md").read_text()
    return re.findall(r"^\| [^`|]*`([^`]+)` \| `([^`]*step[^`]*)` \|$", page, re.M)


def test_the_patterns_of_the_docs_find_the_times_in_their_examples(logs):
    found = patterns_of_the_docs()
    assert len(found) == 5
    for line, pattern in found:
        done = logs({"x.log": 3 * (line + "\n")}, "--log-pattern", pattern)
        assert re.search(r"stoker: 0\.\d+ s per step", done.stdout), (line, done.stdout)
