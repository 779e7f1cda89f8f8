"""stoker tune: what it runs, what it keeps, what it survives, what it chooses."""

import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import write_wav

CASE_A = pathlib.Path(__file__).resolve().parents[1] / "data" / "case_a.csv"

# A job that knows of Stoker: its rate is that of its knobs, its faults are those asked for.
JOB = r"""
import json, os, sys, time
batch, workers, fail = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""
def say(**line): os.write(int(os.environ["STOKER_REPORT_FD"]), (json.dumps(line) + "\n").encode())
say(event="hello")
if fail and batch >= 128:
    if fail == "segv": os.kill(os.getpid(), 11)
    if fail == "oom": sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB is free.")
    if fail == "hip": sys.exit("torch.AcceleratorError: HIP error: an illegal memory access was encountered\nSearch for `hipErrorIllegalAddress' in the docs")
    if fail == "python": raise NameError("name 'lodaer' is not defined")
rate = 100 * min(workers + 1, 4) * batch / (batch + 8)
for block in range(6):
    time.sleep(0.002)
    say(event="block", steps=5, samples=5 * batch, seconds=5 * batch / rate * (1 + 0.002 * (block % 3 - 1)), warmup=block == 0)
say(event="done")
"""
GRID = ["--grid", "batch_size=32,64,128", "--grid", "num_workers=0,1,2,3,4"]


@pytest.fixture
def job(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    return ["--steps-from", "reports", "--", sys.executable, "job.py", "{batch_size}", "{num_workers}"]


def answer(done):
    assert done.returncode in (0, 1, 130), done.stderr
    return json.loads(done.stdout)


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def rows_of(folder):
    with open(folder / "results.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_a_grid_is_run_point_by_point_and_the_cheapest_that_is_as_good_is_chosen(stoker, job, tmp_path):
    found = answer(stoker("tune", "--search", "grid", *GRID, "--out", "run", "--json", *job))
    assert (found["points"], found["ok"], found["failures"]) == (15, 15, {})
    assert found["chosen"]["knobs"]["num_workers"] == "3" and found["best"]["knobs"]["batch_size"] == "128"
    rows = rows_of(tmp_path / "run")
    assert [row["trial"] for row in rows] == [str(number) for number in range(1, 16)]
    assert list(rows[0])[:4] == ["trial", "status", "batch_size", "num_workers"]
    assert all(row["status"] == "ok" and float(row["ci_low"]) <= float(row["images_per_s"]) <= float(row["ci_high"]) for row in rows)
    for name in ("config.json", "results.json", "report.md", "trials/0001/config.json", "trials/0001/steps.jsonl", "trials/0015/stderr"):
        assert (tmp_path / "run" / name).exists(), name
    assert json.loads((tmp_path / "run" / "config.json").read_text())["grid"]["batch_size"] == ["32", "64", "128"]


def test_auto_comes_to_as_good_a_choice_with_fewer_trials(stoker, job, tmp_path):
    found = answer(stoker("tune", *GRID, "--out", "run", "--json", *job))
    ran = [row for row in rows_of(tmp_path / "run") if row["status"] == "ok"]
    best = 100 * 4 * 128 / 136
    assert found["chosen"]["images_per_s"] >= 0.95 * best
    assert len({(row["batch_size"], row["num_workers"]) for row in ran}) < 15


@pytest.mark.parametrize("fail, status", [("segv", "runtime_fault"), ("oom", "oom_device"), ("hip", "runtime_fault")])
def test_points_that_fail_are_named_and_do_not_end_the_search(stoker, job, tmp_path, fail, status):
    found = answer(stoker("tune", "--search", "grid", *GRID, "--out", "run", "--json", *job, fail))
    assert found["failures"].keys() <= {status, "pruned"} and found["failures"][status] >= 1
    assert found["ok"] == 10 and found["chosen"]["knobs"]["batch_size"] in ("32", "64")


def test_a_mistake_in_the_job_ends_the_search_at_once_and_is_shown(stoker, job, tmp_path):
    done = stoker("tune", "--search", "grid", "--grid", "batch_size=128,256", "--grid", "num_workers=1", "--out", "run", *job, "python")
    assert done.returncode == 2 and "name 'lodaer' is not defined" in done.stderr and "run/trials/0001" in done.stderr
    assert len(rows_of(tmp_path / "run")) == 1


def test_a_killed_tuner_goes_on_where_it_was(binary, environment, stoker, job, tmp_path):
    words = ["tune", "--search", "grid", *GRID, "--json"]
    process = subprocess.Popen([binary, *words, "--out", "run", *job], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.time() + 60
    while not (tmp_path / "run" / "results.csv").exists() or len(rows_of(tmp_path / "run")) < 3:
        assert time.time() < deadline and process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    before = rows_of(tmp_path / "run")
    with open(tmp_path / "run" / "results.csv", "a") as file:
        file.write("99,ok,3")  # a row that was cut short
    found = answer(stoker("tune", "--resume", "run", "--json"))  # the folder knows what it is
    after = rows_of(tmp_path / "run")
    assert after[:len(before)] == before and len(after) == 15 == found["ok"]
    assert len({(row["batch_size"], row["num_workers"]) for row in after}) == 15


def children_of(pid):
    return [int(word) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()]


def wait_until(true, process=None):
    deadline = time.time() + 60
    while not true():
        assert time.time() < deadline and (process is None or process.poll() is None)
        time.sleep(0.02)


@pytest.mark.parametrize("guarded", [True, False], ids=["by its guard", "by the next one, without a guard"])
def test_a_trial_of_a_tuner_that_was_killed_is_ended(binary, environment, stoker, tmp_path, guarded):
    (tmp_path / "job.py").write_text("import os,sys,time\nprint(os.getpid(), file=open('pid', 'w'), flush=True)\nif not os.path.exists('quick'): time.sleep(1000)\n"
                                     "for i in range(20): print('rate 5', flush=True)\n")
    words = ["tune", "--search", "grid", "--grid", "lr=1", "--rate-regex", "rate ([0-9]+)", "--warmup-steps", "1", "--out", "run",
             "--", "sh", "-c", f"{sys.executable} job.py; true", "{lr}"]
    process = subprocess.Popen([binary, *words], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"), process)
    left = int((tmp_path / "pid").read_text())
    def its_guards():
        return [pid for pid in children_of(process.pid) if pathlib.Path(f"/proc/{pid}/comm").read_text() == "stoker-guard\n"]

    wait_until(its_guards, process)
    guards = its_guards()
    assert len(guards) == 1
    if not guarded:
        os.kill(guards[0], signal.SIGKILL)
    process.kill()
    process.wait()
    if guarded:
        wait_until(lambda: not runs(left))
    else:
        assert runs(left)
    (tmp_path / "quick").touch()
    assert stoker("tune", "--resume", "run").returncode == 0
    wait_until(lambda: not runs(left) and not runs(guards[0]))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_a_scheduler_leave_a_valid_partial_report(binary, environment, job, tmp_path, number):
    process = subprocess.Popen([binary, "tune", "--search", "grid", *GRID, "--json", "--out", "run", *job], cwd=tmp_path, env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    deadline = time.time() + 60
    while not (tmp_path / "run" / "results.csv").exists() or len(rows_of(tmp_path / "run")) < 2:
        assert time.time() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    out = process.communicate(timeout=60)[0]
    assert process.returncode == 128 + number and "--resume run" in json.loads(out)["unfinished"]
    assert (tmp_path / "run" / "report.md").exists()


def test_another_experiments_folder_is_refused(stoker, job, tmp_path):
    assert stoker("tune", "--search", "grid", "--grid", "batch_size=32", "--grid", "num_workers=1", "--out", "run", *job).returncode == 0
    done = stoker("tune", "--search", "grid", "--grid", "batch_size=64", "--grid", "num_workers=1", "--resume", "run", *job)
    assert done.returncode == 2 and "another experiment (`grid` differ)" in done.stderr
    done = stoker("tune", "--search", "grid", "--grid", "batch_size=32", "--grid", "num_workers=1", "--out", "run", *job)
    assert done.returncode == 2 and "is not empty" in done.stderr


def test_our_own_loader_is_tuned_in_processes_of_its_own(stoker, sounds, tmp_path):
    found = answer(stoker("tune", "data", "--transform", "pad:800", "--grid", "num_workers=0,1", "--grid", "batch_size=4,8", "--search", "grid",
                          "--bench-steps", "4", "--out", "run", "--json", "--apply", "best.json"))
    assert found["ok"] == 4 and found["chosen"]["images_per_s"] > 0 and found["chosen"]["verdict"]
    assert json.loads((tmp_path / "best.json").read_text()).keys() == {"batch_size", "num_workers"}


def test_templates_get_the_knobs_of_each_trial(stoker, tmp_path):
    (tmp_path / "train.yaml").write_text("training:\n  workers: {num_workers}\n  other: {kept}\n")
    (tmp_path / "job.py").write_text("import os,sys\ntext = open(sys.argv[1]).read()\nassert '{kept}' in text\nn = int(text.split('workers: ')[1].split()[0])\n"
                                     "for i in range(20): print(f'rate {100 * n}', flush=True)\n")
    found = answer(stoker("tune", "--search", "grid", "--grid", "num_workers=1,2", "--template", "train.yaml", "--rate-regex", "rate ([0-9]+)", "--warmup-steps", "1",
                          "--out", "run", "--json", "--", sys.executable, "job.py", "{template}"))
    assert found["ok"] == 2 and found["best"]["images_per_s"] == 200


def test_case_a_comes_out_as_its_team_found_it(stoker):
    found = answer(stoker("tune", "--replay", CASE_A, "--json"))
    assert (found["points"], found["ok"], found["knee"]) == (72, 50, 8)
    assert found["best"]["knobs"]["num_workers"] == "24" and found["best"]["images_per_s"] == 502.84
    chosen = found["chosen"]["knobs"]
    assert (chosen["num_workers"], chosen["batch_size"], chosen["pin_memory"].lower()) == ("8", "32", "true")
    assert found["failures"] == {"runtime_fault": 22}


def test_what_would_fail_at_the_end_is_refused_before_the_first_trial(stoker, job, tmp_path):
    (tmp_path / "best.json").write_text("mine")
    for words in (["--apply", "best.json"], ["--apply", "best.txt"], ["--deadline", "soon"], ["--rate-regex", "("], ["--time-limit", "0s"],
                  ["--bench-time", "1h"]):
        done = stoker("tune", *GRID, *words, "--out", "run", *job)
        assert done.returncode == 2 and done.stderr.startswith("error: ") and not (tmp_path / "run").exists(), done.stderr
    assert (tmp_path / "best.json").read_text() == "mine"


def test_colour_is_colour_and_not_its_code(stoker):
    done = stoker("tune", "--replay", CASE_A, "--color", "always")
    assert "\x1b[" in done.stdout and "x1B" not in done.stdout


@pytest.mark.parametrize("words, says", [
    (["data", "--grid", "lr=1", "--", "true", "{lr}"], "two targets"),
    (["--resume", "nothing"], "cannot resume `nothing`"),
    (["nothing"], "cannot open `nothing`"),
    (["data", "--grid", "num_wokers=1,2"], "did you mean `num_workers`?"),
    (["data", "--grid", "num_workers=1,many"], "num_workers is auto or a whole number from 0 to 1,024, not `many`"),
    (["data", "--grid", "storage=buffered,tape"], "tape"),
    (["data", "--grid", ""], "the grid is empty"),
    (["--grid", "lr=1,2", "--", "true"], "nothing in the command takes `lr`"),
    (["--grid", "lr=", "--", "true", "{lr}"], "lr"),
    (["--grid", "lr=1", "--search", "best", "--", "true", "{lr}"], "`--search` is auto or grid"),
    (["--grid", "lr=1", "--", "/no/such/program", "{lr}"], "/no/such/program"),
    (["--replay", "nothing.csv"], "nothing.csv"),
])
def test_wrong_use_is_one_sentence(stoker, sounds, words, says):
    done = stoker("tune", *words)
    assert done.returncode == 2 and done.stderr.count("error: ") == 1 and says in done.stderr, done.stderr


CONFIGS = {
    "train.yaml": "# ours\ntraining:\n  workers: 1  # few\n  name: 'x'\n",
    "train.json": '{"training": {"workers": 1, "name": "x"}}\n',
    "train.toml": '[training]\nworkers = 1 # few\nname = "x"\n',
}


@pytest.mark.parametrize("name", CONFIGS)
def test_keys_of_a_file_are_changed_in_a_copy_for_each_trial(stoker, tmp_path, name):
    (tmp_path / name).write_text(CONFIGS[name])
    (tmp_path / "job.py").write_text("import re,sys\ntext = open(sys.argv[1]).read()\nn = int(re.search(r'workers\\W+([0-9]+)', text)[1])\n"
                                     "for i in range(20): print(f'rate {100 * n}', flush=True)\n")
    found = answer(stoker("tune", "--search", "grid", "--config", name, "--set", "training.workers=2,4", "--rate-regex", "rate ([0-9]+)", "--warmup-steps", "1",
                          "--out", "run", "--json", "--", sys.executable, "job.py", "{config}"))
    assert found["ok"] == 2 and found["best"]["images_per_s"] == 400 and found["best"]["knobs"] == {"training.workers": "4"}
    assert (tmp_path / name).read_text() == CONFIGS[name]
    assert (tmp_path / "run/trials/0001" / name).read_text() == CONFIGS[name].replace("1", "2", 1)


def test_a_key_that_the_file_does_not_have_is_refused_with_the_nearest(stoker, tmp_path):
    (tmp_path / "train.yaml").write_text(CONFIGS["train.yaml"])
    done = stoker("tune", "--config", "train.yaml", "--set", "training.wokers=1,2", "--", "true", "{config}")
    assert done.returncode == 2 and "`train.yaml` has no key `training.wokers`" in done.stderr and "did you mean `training.workers`?" in done.stderr


def test_a_grid_may_come_from_a_file(stoker, job, tmp_path):
    (tmp_path / "grid.yaml").write_text("batch_size: [32, 64]\nnum_workers: 2\n")
    done = stoker("tune", "--grid-file", "grid.yaml", "--dry-run", *job)
    assert done.returncode == 0 and done.stdout.count("num_workers=2") == 2, done.stderr


def test_dry_run_keeps_the_effective_batch(stoker, job):
    done = stoker("tune", "--grid", "batch_size=32,64", "--grid", "num_workers=1", "--grid", "accumulate_steps=1,2,4", "--effective-batch", "128", "--dry-run", *job,
                  "{accumulate_steps}")
    assert done.returncode == 0 and ": 2 points" in done.stdout and done.stdout.count("accumulate_steps=") == 2, done.stdout + done.stderr


def test_a_memory_error_is_the_last_line_of_the_traceback_not_the_source(stoker, tmp_path):
    (tmp_path / "job.py").write_text("def read():\n    raise MemoryError('no room for 7 rows')\nread()\n")
    stoker("tune", "--search", "grid", "--grid", "lr=1", "--out", "run", "--steps-from", "reports", "--", sys.executable, "job.py", "{lr}")
    assert rows_of(tmp_path / "run")[0]["error"] == "MemoryError: no room for 7 rows"


def test_columns_are_not_taken_for_flags(stoker, tmp_path):
    (tmp_path / "rows.csv").write_text("batch_size,warmup_steps,rate\n1,2,3\n")
    done = stoker("tune", "--replay", "rows.csv")
    assert done.returncode == 2 and "`warmup_steps`" in done.stderr and "--warmup-steps" not in done.stderr, done.stderr


def test_a_terminal_shows_the_best_so_far_and_a_map_redrawn_in_place(binary, environment, job, tmp_path):
    import pty

    main, side = pty.openpty()
    process = subprocess.Popen([binary, "tune", "--search", "grid", *GRID, "--out", "run", *job], cwd=tmp_path, stdin=side, stdout=subprocess.PIPE, stderr=side,
                               env={**environment, "TERM": "xterm"})
    os.close(side)
    shown = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    assert process.wait() == 0
    text = shown.decode()
    assert "best     batch_size=" in text and "num_workers \\ batch_size" in text and "\x1b[J" in text
    screen = []  # what is left when each panel was taken back by as many lines as it had
    for part in re.split(r"(\x1b\[\d+A\r\x1b\[J)", text.replace("\r\n", "\n")):
        if part.startswith("\x1b["):
            del screen[len(screen) - int(part[2:part.index("A")]):]
        else:
            screen += part.split("\n")[:-1]
    assert len(screen) == 16 and all("  best " not in line and line for line in screen), screen
    plain = subprocess.run([binary, "tune", "--search", "grid", *GRID, "--out", "run2", *job], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "\x1b[" not in plain.stderr and plain.stderr.count("\n") == 16


def test_dry_run_prints_the_points_and_runs_nothing(stoker, job, tmp_path):
    done = stoker("tune", *GRID, "--dry-run", *job)
    assert done.returncode == 0 and done.stdout.count("num_workers=") == 15 and not (tmp_path / "runs").exists()


def test_dry_run_answers_in_json_too(stoker, job):
    found = answer(stoker("tune", *GRID, "--dry-run", "--json", *job))
    assert found["schema"] == "stoker.tune.dry_run/1" and found["dry_run"] and found["search"] == "auto" and found["seconds_each"] is None
    assert len(found["points"]) == 15 and found["points"][0] == {"batch_size": "32", "num_workers": "0"} and found["trials_at_most"] >= 15


@pytest.mark.parametrize("words, says", [
    (["--transform", "pad:100"], "it is for audio, and these are images"), (["--label", "nope"], "nope"),
    (["--subset", "8", "--grid", "batch_size=16"], "batch_size=16 is more than the 8 samples"),
    (["--step-ms", "5", "--workload", "resnet50-h100"], "both set the step"), (["--workload", "abacus"], "abacus"), (["--step-ms", "-5"], "--step-ms")])
def test_dry_run_refuses_what_the_first_trial_would_refuse(stoker, pictures, tmp_path, words, says):
    for more in (["--dry-run"], ["--out", "run"]):
        done = stoker("tune", "pictures", "--grid", "num_workers=1", *words, *more)
        assert done.returncode == 2 and says in done.stderr and done.stdout == "", (more, done.stderr)
    assert stoker("tune", "pictures", "--grid", "num_workers=1", "--transform", "rrc:32", "--dry-run").returncode == 0


def test_a_batch_that_the_subset_cannot_fill_is_refused(stoker, pictures, tmp_path):
    done = stoker("tune", "pictures", "--subset", "8", "--grid", "batch_size=4,16", "--out", "run")
    assert done.returncode == 2 and "batch_size=16 is more than the 8 samples" in done.stderr and "--inflate" in done.stderr and not (tmp_path / "run").exists()
    found = answer(stoker("tune", "pictures", "--subset", "8", "--inflate", "100", "--search", "grid", "--grid", "batch_size=4,16", "--bench-steps", "4", "--json", "--out", "run"))
    assert found["ok"] == 2


def test_a_rate_that_is_never_printed_is_named(stoker, tmp_path):
    (tmp_path / "job.py").write_text("print('speed 5')\n")
    words = ["--grid", "lr=1", "--", sys.executable, "job.py", "{lr}"]
    done = stoker("tune", "--rate-regex", "rate ([0-9]+)", *words)
    assert done.returncode == 2 and "nothing that it printed matches the regex `rate ([0-9]+)`" in done.stderr
    done = stoker("tune", "--steps-from", "output", *words)
    assert done.returncode == 2 and "it printed no rate such as" in done.stderr and "--rate-regex" in done.stderr
    assert "batch_size is not tuned here, so a printed it/s or s/it counts as one sample per step" in done.stderr


def test_a_choice_beyond_the_knee_says_that_each_worker_brings_little(stoker, tmp_path):
    rates = {1: 100, 2: 190, 4: 350, 8: 400, 16: 420, 32: 440}
    (tmp_path / "rows.csv").write_text("trial,status,num_workers,images_per_s\n" +
                                       "".join(f"{i},ok,{workers},{rate}\n" for i, (workers, rate) in enumerate(rates.items(), 1)))
    found = answer(stoker("tune", "--replay", "rows.csv", "--json"))
    assert found["chosen"]["knobs"]["num_workers"] == "32" and found["knee"] < 32
    assert f"{found['knee']:g} workers: each one beyond it brings little" in stoker("tune", "--replay", "rows.csv").stdout


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)], ids=str)
def test_closed_descriptors_let_nothing_into_the_rows(binary, environment, job, tmp_path, closed):
    words = [binary, "tune", "--search", "grid", *GRID, "--out", "run", *job]
    done = subprocess.run(["sh", "-c", '"$@" ' + " ".join(f"{fd}>&-" for fd in closed), "sh", *words], cwd=tmp_path, env=environment, capture_output=True, timeout=120)
    assert done.returncode == (2 if 1 in closed else 0)  # the rows are there, but the answer cannot be written
    text = (tmp_path / "run" / "results.csv").read_text()
    assert len(rows_of(tmp_path / "run")) == 15 and "why" not in text and (tmp_path / "run" / ".lock").read_text() == ""


def test_what_a_trial_wrote_is_cut_and_kept_as_text(stoker, tmp_path):
    (tmp_path / "job.py").write_text("import sys\nfor i in range(20): sys.stderr.write('x' * 65536 + chr(10))\nsys.stderr.buffer.write(bytes(range(1, 256)))\nsys.exit(3)\n")
    done = stoker("tune", "--grid", "lr=1,2", "--out", "run", "--", sys.executable, "job.py", "{lr}")
    assert done.returncode == 2 and max(map(len, done.stderr.splitlines())) < 500
    assert (tmp_path / "run" / "results.csv").read_text(encoding="utf-8")


HANGS_OR_NOT = "import sys, time\nif sys.argv[1] == 'hang': time.sleep(1000)\nfor i in range(60): print(f'{200 + i % 3}.0it/s', flush=True); time.sleep(0.002)\n"


def test_a_trial_that_shows_nothing_until_its_deadline_hangs_and_the_others_are_tried(stoker, tmp_path):
    (tmp_path / "job.py").write_text(HANGS_OR_NOT)
    words = ["tune", "--search", "grid", "--steps-from", "output", "--deadline", "6s", "--json"]
    found = answer(stoker(*words, "--out", "run", "--grid", "how=hang,good", "--", sys.executable, "job.py", "{how}"))
    assert found["failures"] == {"hang": 1} and found["chosen"]["knobs"] == {"how": "good"}
    assert rows_of(tmp_path / "run")[0]["error"] == "stopped at its deadline, and until then it printed no rate such as `12.3it/s`, `0.08s/it` or `0.08 s/step`"


def test_a_job_that_ends_too_soon_says_how_many_steps_it_made(stoker, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "job.py").write_text("import sys, torch\nfor x in torch.utils.data.DataLoader(torch.zeros(60, 2), batch_size=4, num_workers=int(sys.argv[1])): pass\n")
    done = stoker("tune", "--grid", "workers=0,1", "--out", "run", "--", sys.executable, "job.py", "{workers}")
    assert done.returncode == 2 and "it made 15 steps, and 26 are needed: the first, 5 to warm up, then 20 to measure" in done.stderr and "--bench-steps" in done.stderr


def test_other_programs_on_the_cores_are_named(stoker, job, tmp_path):
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    try:
        found = answer(stoker("tune", *GRID, "--out", "run", "--json", *job))
        stoker("measure", "--out", "measured", "--", sys.executable, "-c", "import time; time.sleep(2.5)")
    finally:
        for one in busy:
            one.kill()
            one.wait()
    used = json.loads((tmp_path / "measured" / "measure.json").read_text())["host"]["cores"]["used_by_others"]
    if used == "unknown" or used < 0.4 * os.cpu_count():
        pytest.skip("a quota, a mask or the sandbox hides what others do, or holds them back")
    assert any(re.search(r"other programs kept [0-9.]+ of [0-9]+ cores busy meanwhile", note) for note in found["notes"])


def test_a_command_that_cannot_be_started_leaves_no_folder(stoker, tmp_path):
    done = stoker("tune", "--grid", "lr=1,2", "--out", "run", "--", "./nothing", "{lr}")
    assert done.returncode == 2 and "nothing" in done.stderr and not (tmp_path / "run").exists()


def test_a_point_that_ran_and_failed_is_named(stoker, job, tmp_path):
    answer(stoker("tune", "--search", "grid", *GRID, "--out", "run", "--json", *job))
    results = tmp_path / "run" / "results.csv"
    text = results.read_text()
    fastest = max(rows_of(tmp_path / "run"), key=lambda row: float(row["images_per_s"]))
    line = next(line for line in text.splitlines() if line.startswith(f"{fastest['trial']},"))
    results.write_text(text + line.replace(f"{fastest['trial']},ok,", "16,runtime_fault,", 1) + "\n")
    found = answer(stoker("tune", "--resume", "run", "--json"))
    point = f"batch_size={fastest['batch_size']} num_workers={fastest['num_workers']}"
    assert any("ran at one time and failed at another" in note and point in note for note in found["notes"]), found["notes"]
    assert found["best"]["knobs"] != {"batch_size": fastest["batch_size"], "num_workers": fastest["num_workers"]}


def test_an_error_of_one_point_is_its_own_where_others_ran(stoker, tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    words = ["tune", "--search", "grid", "--grid", "batch_size=32,128,64", "--grid", "num_workers=1", "--steps-from", "reports", "--out", "run", "--json", "--",
             sys.executable, "job.py", "{batch_size}", "{num_workers}", "python"]
    found = answer(stoker(*words))
    assert found["ok"] == 2 and found["failures"] == {"user_error": 1} and found["chosen"]["knobs"]["batch_size"] in ("32", "64")
    assert "lodaer" in next(row["error"] for row in rows_of(tmp_path / "run") if row["status"] == "user_error")


def test_what_was_mended_is_run_again_when_resumed(stoker, tmp_path):
    (tmp_path / "job.py").write_text("raise NameError('lodaer')")
    words = ["tune", "--search", "grid", "--grid", "batch_size=32,64", "--grid", "num_workers=1", "--steps-from", "reports", "--out", "run", "--", sys.executable, "job.py",
             "{batch_size}", "{num_workers}"]
    assert stoker(*words).returncode == 2
    (tmp_path / "job.py").write_text(JOB)
    found = answer(stoker("tune", "--resume", "run", "--json"))
    assert found["ok"] == 2 and found["failures"] == {} and found["chosen"]


def test_a_finished_run_that_is_resumed_keeps_its_times(stoker, job):
    first = answer(stoker("tune", "--search", "grid", *GRID, "--out", "run", "--json", *job))
    again = answer(stoker("tune", "--resume", "run", "--json"))
    assert again["seconds"] >= first["seconds"] and again["chosen"] == first["chosen"]


def test_a_run_whose_data_has_changed_is_not_resumed(stoker, tmp_path):
    for i in range(40):
        write_wav(tmp_path / "data" / f"{i:02}.wav", frames=400, seed=i)
    words = ["tune", "data", "--search", "grid", "--grid", "num_workers=1", "--grid", "batch_size=4", "--transform", "pad:400", "--bench-steps", "4", "--warmup-steps", "1"]
    assert stoker(*words, "--out", "run").returncode == 0
    assert stoker("tune", "--resume", "run").returncode == 0
    os.rename(tmp_path / "data" / "07.wav", tmp_path / "data" / "70.wav")
    done = stoker("tune", "--resume", "run")
    assert done.returncode == 2 and "cannot resume `run`: its data has changed since: the same number of samples, but other names" in done.stderr
    write_wav(tmp_path / "data" / "71.wav", frames=400, seed=1)
    done = stoker(*words, "--resume", "run")
    assert done.returncode == 2 and "its data has changed since: 40 samples then, 41 now" in done.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config.pop("data")["samples"] == 40
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))  # as an earlier version wrote it
    assert stoker("tune", "--resume", "run").returncode == 0


@pytest.mark.parametrize("words, says", [
    (["--resume", "run", "--grid", "num_workers=1"], "`--grid` has no effect on a run that is resumed"),
    (["--resume", "run", "--search", "grid"], "`--search` has no effect on a run that is resumed"),
    (["--replay", str(CASE_A), "--grid", "num_workers=1"], "`--grid` has no effect on rows that were recorded"),
    (["--grid", "num_workers=1", "--apply", "no/folder.json", "--", "true", "{num_workers}"], "there is no folder `no`"),
    (["job.py", "--grid", "num_workers=1"], "job.py:build"),
    (["pictures", "--grid", "batch_size=8,16"], "batch_size=16 is more than the 12 samples"),
])
def test_what_would_be_ignored_or_wrong_is_refused(stoker, pictures, tmp_path, words, says):
    (tmp_path / "job.py").write_text(JOB)
    done = stoker("tune", *words)
    assert done.returncode == 2 and says in done.stderr, done.stderr


def test_our_loader_is_fed_whole_batches_where_their_size_is_no_knob(stoker, pictures):
    found = answer(stoker("tune", "pictures", "--inflate", "100", "--search", "grid", "--grid", "num_workers=1,2", "--bench-steps", "4", "--json"))
    assert any("batch_size=32" in note for note in found["notes"])
    assert found["best"]["images_per_s"] * found["best"]["step_ms"] / 1000 == pytest.approx(32, rel=0.3)


@pytest.mark.parametrize("printed, rate", [("12,345.5", 12345.5), ("12.5", 12.5)])
def test_rates_are_read_as_people_print_them(stoker, tmp_path, printed, rate):
    (tmp_path / "job.py").write_text(f"for i in range(20): print('rate: {printed} img/s', flush=True)\n")
    found = answer(stoker("tune", "--grid", "lr=1", "--rate-regex", "rate: ([0-9.,]+)", "--json", "--", sys.executable, "job.py", "{lr}"))
    assert found["best"]["images_per_s"] == pytest.approx(rate)


def test_a_program_without_a_loader_is_told_so(stoker, tmp_path):
    done = stoker("tune", "--grid", "lr=1", "--", sys.executable, "-c", "print('10 it/s')", "{lr}")
    assert done.returncode == 2 and "no torch DataLoader" in done.stderr and "--steps-from output" in done.stderr


def test_dotted_keys_are_applied_as_what_they_are_in_the_file(stoker, tmp_path):
    (tmp_path / "train.yaml").write_text("training:\n  workers: 1\n  batch: 8\n")
    (tmp_path / "job.py").write_text("for i in range(20): print('rate 5', flush=True)\n")
    words = ["--config", "train.yaml", "--set", "training.workers=2", "--rate-regex", "rate ([0-9]+)", "--", sys.executable, "job.py", "{config}"]
    for name, text in (("best.yaml", "training:\n  workers: 2\n"), ("best.py", '{"training": {"workers": 2}}\n'), ("best.json", '{\n  "training": {\n    "workers": 2\n  }\n}\n')):
        assert stoker("tune", "--apply", name, *words).returncode == 0
        assert (tmp_path / name).read_text() == text


def test_the_file_of_the_config_is_changed_in_place_with_a_backup(stoker, tmp_path):
    before = "# ours\ntraining:\n  workers: 1  # few\n  batch: 8\n"
    (tmp_path / "train.yaml").write_text(before)
    (tmp_path / "job.py").write_text("for i in range(20): print('rate 5', flush=True)\n")
    words = ["--config", "train.yaml", "--set", "training.workers=2", "--rate-regex", "rate ([0-9]+)", "--", sys.executable, "job.py", "{config}"]
    done = stoker("tune", "--apply", "train.yaml", *words)
    assert done.returncode == 0 and "changed `train.yaml` in place; as it was: `train.yaml.before-tune`" in done.stdout, done.stderr
    assert (tmp_path / "train.yaml").read_text() == before.replace("workers: 1", "workers: 2")
    assert (tmp_path / "train.yaml.before-tune").read_text() == before
    done = stoker("tune", "--apply", "train.yaml", *words)
    assert done.returncode == 2 and "would overwrite `train.yaml.before-tune`" in done.stderr


def test_braces_that_are_no_knob_are_named(stoker, job):
    done = stoker("tune", "--grid", "batch_size=32", "--grid", "num_workers=1", *job, "{lr}")
    assert "note: `{lr}` matches no knob and is passed to the job unchanged; add `--grid lr=...`" in done.stderr and done.returncode == 0


def test_a_deadline_that_is_too_short_for_the_steps_says_so(stoker, tmp_path):
    (tmp_path / "job.py").write_text("import time\nwhile True: print('rate 5', flush=True); time.sleep(1)\n")
    found = answer(stoker("tune", "--search", "grid", "--grid", "lr=1", "--rate-regex", "rate ([0-9]+)", "--deadline", "5s", "--json", "--out", "run", "--", sys.executable,
                          "job.py", "{lr}"))
    assert found["failures"] == {"hang": 1}
    assert "while it was still being measured" in rows_of(tmp_path / "run")[0]["error"]


def test_the_time_limit_counts_the_first_run_too(stoker, tmp_path):
    (tmp_path / "job.py").write_text("import torch.utils.data, time\nfor batch in torch.utils.data.DataLoader(range(10**6)): time.sleep(0.5)\n")
    done = stoker("tune", "--time-limit", "4s", "--", sys.executable, "job.py")
    assert done.returncode == 2 and "`--time-limit 4s` is over, and the first run of the job has not ended" in done.stderr, done.stderr


def test_a_pattern_with_named_groups_reads_the_rate(stoker, tmp_path):
    (tmp_path / "job.py").write_text("for i in range(30): print(f'TS {i} | 0.5', flush=True)\n")
    words = ["--search", "grid", "--warmup-steps", "1", "--json", "--out", "run", "--log-pattern", r"TS (?<step>\d+) [|] (?<step_s>[\d.]+)"]
    found = answer(stoker("tune", "--grid", "batch_size=4", *words, "--", sys.executable, "job.py", "{batch_size}"))
    assert found["chosen"]["images_per_s"] == 8
    assert json.loads((tmp_path / "run" / "config.json").read_text())["log_pattern"] == words[-1]
    for pattern, message in (("(?<queue>[0-9]+)", "has no group that is a rate"), ("(?<=TS)(?<step_s>1)", "look-behind")):
        done = stoker("tune", "--grid", "lr=1", "--log-pattern", pattern, "--", "true", "{lr}")
        assert done.returncode == 2 and "--log-pattern" in done.stderr and message in done.stderr, done.stderr


def test_the_time_limit_also_ends_a_trial_that_runs(stoker, tmp_path):
    (tmp_path / "job.py").write_text("import os,sys,time\nif sys.argv[1] == '2':\n    print(os.getpid(), file=open('pid', 'w'), flush=True); time.sleep(1000)\n"
                                     "for i in range(20): print('rate 5', flush=True)\n")
    found = answer(stoker("tune", "--search", "grid", "--grid", "lr=1,2,3", "--rate-regex", "rate ([0-9]+)", "--time-limit", "6s", "--json", "--out", "run",
                          "--apply", "best.json", "--", sys.executable, "job.py", "{lr}"))
    assert json.loads((tmp_path / "best.json").read_text()) == {"lr": 1}
    assert "the time limit ended the search" in found["unfinished"] and found["ok"] == 1 and found["chosen"]["knobs"]["lr"] == "1"
    assert not runs(int((tmp_path / "pid").read_text()))
    assert [row["lr"] for row in rows_of(tmp_path / "run")] == ["1"]
