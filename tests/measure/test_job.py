"""What a measured job sees (nothing), and what is said when it goes wrong."""

import collections
import gzip
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

import pytest

torch = pytest.importorskip("torch")

LOOP = """
import os, sys, time, torch
from torch.utils.data import DataLoader, Dataset

class Samples(Dataset):
    def __len__(self): return 80
    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.rand(4), index
"""


def test_output_and_exit_code_are_the_jobs_own(binary, environment, tmp_path):
    text = LOOP + """
torch.manual_seed(7)
for batch, index in DataLoader(Samples(), batch_size=8, shuffle=True, num_workers=2):
    print(float(batch.sum()), index.tolist())
print("to stderr", file=sys.stderr)
sys.exit(3)
"""
    (tmp_path / "train.py").write_text(text)
    command = [sys.executable, "train.py"]
    plain = subprocess.run(command, capture_output=True, env=environment, cwd=tmp_path)
    measured = subprocess.run([binary, "measure", "--", *command], capture_output=True, env=environment, cwd=tmp_path)
    assert measured.stdout == plain.stdout and plain.stdout.count(b"\n") == 10
    assert measured.returncode == plain.returncode == 3
    assert measured.stderr.startswith(plain.stderr + b"stoker: ") and b"_bound" in measured.stderr
    assert b"why      the job ended with exit code 3" in measured.stderr


def test_a_crash_leaves_the_ledger_so_far(script):
    answer = script(LOOP + """
for step, batch in enumerate(DataLoader(Samples(), batch_size=8)):
    if step == 3: raise RuntimeError("at step 3")
""", code=1)
    assert "RuntimeError: at step 3" in answer["stderr"]
    assert answer["loaders"][0]["all_steps"] == 4
    assert "the job ended with exit code 1; this is what was measured until then" in " ".join(answer["why"])


KILLED = LOOP + """
for step, batch in enumerate(DataLoader(Samples(), batch_size=4, num_workers=1)):
    if step == 15: os.kill(os.getpid(), 9)
"""


def test_a_kill_leaves_the_ledger_so_far(script):
    answer = script(KILLED, code=128 + 9)
    assert answer["loaders"][0]["all_steps"] == 16
    assert answer["signal"] == 9
    assert answer["verdict"] is not None and answer["loaders"][0]["workers"]["fetch_ms_per_batch"] >= 7.5  # four samples that sleep 2 ms


@pytest.mark.slow
def test_the_verdict_of_a_job_that_was_killed(script, quiet_cores):
    assert quiet_cores(lambda: script(KILLED, code=128 + 9, flags=["--force"]))["verdict"]["bound"] == "fetch_bound"


def test_descriptors_closed_by_the_job_do_not_matter(script):
    answer = script(LOOP + """
os.closerange(3, 1024)
files = [open(f"mine{i}", "w+") for i in range(8)]   # take the numbers that were closed
for _ in range(2):
    for batch in DataLoader(Samples(), batch_size=8, num_workers=1): os.closerange(200, 1024)
for file in files:
    file.write("x"); file.seek(0); assert file.read() == "x"
""")
    assert answer["verdict"] is not None
    assert answer["loaders"][0]["all_steps"] == 20


def test_a_job_that_forks_after_start_is_seen_in_both_processes(script):
    answer = script(LOOP + """
loader = DataLoader(Samples(), batch_size=8)
for batch in loader: pass
if os.fork() == 0:
    for batch in loader: pass
    os._exit(0)
os.wait()
""")
    assert sorted(loader["all_steps"] for loader in answer["loaders"]) == [10, 10]
    assert len({loader["pid"] for loader in answer["loaders"]}) == 2


def test_training_and_validation_are_told_apart_also_in_the_trace(script, tmp_path):
    answer = script(LOOP + """
train_loader = DataLoader(Samples(), batch_size=8, num_workers=1)
evaluation = DataLoader(
    Samples(), batch_size=16)
for epoch in range(2):
    for batch in train_loader: time.sleep(0.001)
    with torch.no_grad():
        for batch in evaluation: time.sleep(0.05)
""", flags=["--trace", "trace.json.gz"])
    train, val = answer["loaders"]
    assert (train["role"], train["name"], train["line"], train["settings"]["batch_size"]) == ("train", "train_loader", 11, 8)
    assert (val["role"], val["name"], val["line"], val["settings"]["num_workers"]) == ("val", "evaluation", 12, 0)
    assert train["total"]["compute"]["ms_per_step"] < 10  # validation is not its compute
    assert answer["main_loader"] == 0
    events = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))["traceEvents"]
    spans = collections.Counter(event["name"] for event in events if event["ph"] == "X")
    assert spans["wait"] == spans["samples"] == spans["collate"] == 20 and spans["compute (val)"] == 10
    ends = {phase: [event["ts"] for event in events if event["ph"] == phase] for phase in "sf"}
    assert len(ends["s"]) == 20 and all(start <= end for start, end in zip(ends["s"], ends["f"]))


def test_a_short_jobs_memory_and_arithmetic_are_known(script):
    answer = script(LOOP + """
model = torch.nn.Linear(4, 2)
for batch, index in DataLoader(Samples(), batch_size=2, num_workers=1):
    with torch.autocast("cpu", torch.bfloat16): model(batch)
    time.sleep(0.05)
""")
    workers = [process for process in answer["host"]["processes"] if process["role"] == "worker"]
    assert len(workers) == 1 and workers[0]["uss_bytes"] > 1e6 and workers[0]["pss_bytes"] > 1e6, answer["host"]
    assert answer["host"]["memory"]["pss_peak_bytes"] > workers[0]["pss_bytes"]
    loader = answer["loaders"][0]
    assert loader["autocast"] == {"entered": True, "dtype": "bfloat16", "device": "cpu"} and loader["channels_last_model"] is False
    assert "autocast bfloat16 (cpu), float32_matmul_precision highest, batches not channels_last" in re.sub(r"\s+", " ", answer["stderr"])
    assert answer["total"]["h2d"] is None  # there is no device
    assert answer["stderr"].count("no device") == 1 and "accelerator unknown" not in answer["stderr"]


def test_a_job_without_a_loader_is_told_so(script):
    answer = script("import time; time.sleep(1.5); print('hello')", flags=["--patience", "500ms"])
    assert "note: no loader was seen in 500 ms; no Python with torch was seen" in answer["stderr"]
    assert answer["stdout"] == "hello\n"
    assert answer["verdict"] is None and answer["loaders"] == []


def test_a_job_without_a_loader_is_shown_the_remedy(script):
    answer = script("print('hello')")
    assert answer["headline"] == "no loader was seen"
    assert any("with stoker.measure(batches) as m" in advice for advice in answer["advice"])


def test_a_job_that_failed_says_so_first(script):
    answer = script("raise SystemExit(3)", code=3)
    assert answer["headline"] == "the job ended with exit code 3, before a loader was seen"
    assert re.sub(r"\s+", " ", answer["stderr"]).startswith("stoker: the job ended with exit code 3")
    answer = script(LOOP + """
for batch, index in DataLoader(Samples(), batch_size=2):
    pass
raise SystemExit(3)
""", code=3, flags=["--force"])
    assert answer["why"][0] == "the job ended with exit code 3; this is what was measured until then"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_job_first_and_the_report_is_written(number, binary, environment, tmp_path):
    (tmp_path / "train.py").write_text(LOOP + """
import pathlib
import signal
def leave(*_): raise SystemExit("left after a signal")
signal.signal(signal.SIGTERM, leave)
try:
    for step, batch in enumerate(DataLoader(Samples(), batch_size=1)):
        if step == 20: print("running", flush=True)
        time.sleep(0.5 if step >= 20 else 0)
except KeyboardInterrupt:
    leave()
""")
    run = subprocess.Popen([binary, "measure", "--json", "--", sys.executable, "train.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, env=environment, cwd=tmp_path)
    assert run.stdout.readline() == "running\n"
    run.send_signal(number)
    out, err = run.communicate(timeout=60)
    assert "left after a signal" in err
    answer = json.loads(out)
    assert run.returncode == answer["exit_code"] == 1
    assert answer["interrupted"] is (number == signal.SIGINT)
    assert answer["loaders"][0]["all_steps"] >= 20


def test_steps_answers_early_and_lets_the_job_go_on(script):
    answer = script(LOOP + """
loader = DataLoader(Samples(), batch_size=4)
for epoch in range(12):
    for batch in loader: pass
print("finished")
""", flags=["--steps", "25", "--every", "1s"])
    assert answer["stdout"] == "finished\n"
    assert re.search(r"^stoker: step \d+: .* = compute .* ready 0.0$", answer["stderr"], re.M), answer["stderr"]
    assert 25 <= answer["loaders"][0]["all_steps"] < 240


def test_stop_ends_the_job_after_the_steps(script):
    answer = script(LOOP + """
while True:
    for batch in DataLoader(Samples(), batch_size=4): pass
""", flags=["--steps", "25", "--stop"])
    assert answer["loaders"][0]["all_steps"] >= 25


def test_nothing_is_overwritten_without_force(binary, environment, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/measure.json").write_text("mine")

    def run(*flags):
        return subprocess.run([binary, "measure", "--out", "out", *flags, "--", "true"], capture_output=True, text=True, env=environment, cwd=tmp_path)

    refused = run()
    assert refused.returncode == 2 and "out/measure.json" in refused.stderr
    assert (tmp_path / "out/measure.json").read_text() == "mine"
    assert run("--force").returncode == 0
    assert json.loads((tmp_path / "out/measure.json").read_text())["schema"] == "stoker.measure/1"


def test_a_command_that_does_not_exist_is_named(binary, environment, tmp_path):
    done = subprocess.run([binary, "measure", "--", "no-such-program"], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot run `no-such-program`: No such file or directory\n")


def test_nothing_is_left_in_the_temporary_folder(binary, environment, tmp_path):
    (tmp_path / "train.py").write_text(LOOP + "for batch in DataLoader(Samples(), batch_size=20, num_workers=2): pass")
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="s") as folder:  # a short name: workers make sockets there
        done = subprocess.run([binary, "measure", "--", sys.executable, "train.py"], capture_output=True, text=True, cwd=tmp_path, timeout=120,
                              env={**environment, "TMPDIR": folder})
        assert done.returncode == 0, done.stderr
        assert [path.name for path in pathlib.Path(folder).glob("stoker*")] == []


@pytest.mark.slow
def test_the_slowest_rank_is_named(script, quiet_cores):
    answer = quiet_cores(lambda: script(LOOP + """
import torch.distributed as dist
if "RANK" not in os.environ:
    import torch.distributed.run
    torch.distributed.run.main(["--nproc-per-node", "2", __file__])
    sys.exit(0)
dist.init_process_group("gloo")
class Slower(Samples):
    def __getitem__(self, index):
        time.sleep(0.02 if dist.get_rank() == 1 else 0.001)
        return torch.zeros(4)
for batch in DataLoader(Slower(), batch_size=4):
    dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
""", flags=["--force"]))
    assert answer["slowest_rank"] == 1
    assert {loader["rank"] for loader in answer["loaders"]} == {0, 1}
    assert answer["verdict"]["bound"] == "fetch_bound"
    assert "of rank 1 alone, which waits most for its own loader; the job has 2 ranks" in " ".join(answer["notes"])


@pytest.mark.slow
def test_nodes_of_one_job_write_their_parts_and_a_report_names_the_slowest_rank(binary, environment, tmp_path):
    (tmp_path / "train.py").write_text(LOOP + """
import torch.distributed as dist
dist.init_process_group("gloo")
class Slower(Samples):
    def __getitem__(self, index):
        time.sleep(0.02 if dist.get_rank() == 1 else 0.001)
        return torch.zeros(4)
for batch in DataLoader(Slower(), batch_size=4):
    dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
""")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    launch = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port", port]
    nodes = [subprocess.Popen([binary, "measure", "--shared", "out", "--node", f"node-{number}", "--", *launch, "--node-rank", str(number), "train.py"],
                              cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for number in (0, 1)]
    said = [node.communicate(timeout=240)[1] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said
    done = subprocess.run([binary, "report", "out"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "Rank 1 on node node-1 is the slowest of 2" in text and "(fetch_bound)" in text
    again = subprocess.run([binary, "measure", "--shared", "out", "--node", "node-1", "--", "true"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert again.returncode == 2 and "out/node-1/measure.json" in again.stderr


@pytest.mark.parametrize("flags, says", [(["--out", "x"], "exclude each other"), (["--node", "a/b"], "cannot name the folder of a node")])
def test_a_shared_folder_needs_a_name_for_the_node(binary, environment, tmp_path, flags, says):
    done = subprocess.run([binary, "measure", "--shared", "out", *flags, "--", "true"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and says in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_loader_made_anew_each_epoch_is_one_loader(script):
    answer = script(LOOP + """
def make(size): return DataLoader(Samples(), batch_size=size)
for epoch in range(3):
    for batch in make(8): pass
first, second = make(8), make(8)
for batches in zip(first, second): pass
""")
    assert sorted(loader["all_steps"] for loader in answer["loaders"]) == [10, 10, 30]
    assert [len(loader["epochs"]) for loader in answer["loaders"] if loader["all_steps"] == 30] == [3]


def test_a_stoker_loader_of_the_job_is_seen_beside_others(script, tmp_path):
    stoker = pytest.importorskip("stoker")
    import numpy

    numpy.save(tmp_path / "rows.npy", numpy.zeros((64, 8), numpy.float32))
    answer = script(LOOP + """
import stoker
loader = stoker.Loader("rows.npy", batch_size=4, num_workers=2)
for epoch in range(2):
    for batch in loader: time.sleep(0.01)
with torch.no_grad():
    for batch in DataLoader(Samples(), batch_size=20): pass
""", env={"PYTHONPATH": str(pathlib.Path(stoker.__file__).parents[1])})
    ours, torchs = answer["loaders"]
    assert (ours["settings"]["type"], ours["all_steps"], ours["settings"]["batch_size"], ours["settings"]["num_workers"]) == ("Loader", 32, 4, 2)
    assert (ours["name"], pathlib.Path(ours["file"]).name, ours["line"]) == ("loader", "train.py", 12)
    assert (torchs["settings"]["type"], torchs["all_steps"], torchs["role"]) == ("DataLoader", 4, "val")
    assert answer["verdict"] is not None, answer["stderr"]


def test_a_job_that_runs_already_is_seen_from_outside(binary, environment, tmp_path):
    (tmp_path / "train.py").write_text(LOOP + """
class Burning(Samples):
    def __len__(self): return 100000
    def __getitem__(self, index):
        end = time.thread_time() + 0.01
        while time.thread_time() < end: pass
        return torch.zeros(4)
for step, batch in enumerate(DataLoader(Burning(), batch_size=4, num_workers=1)):
    if step == 2: print("running", flush=True)
""")
    (tmp_path / "train.log").write_text("12/100 [03:36<26:24, 18.02s/it]\nRuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n")
    with subprocess.Popen([sys.executable, "train.py"], stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as job:
        try:
            assert job.stdout.readline() == "running\n"
            done = subprocess.run([binary, "measure", "--pid", str(job.pid), "--time", "3s", "--log", "train.log", "--json"], capture_output=True,
                                  text=True, env=environment, cwd=tmp_path)
            assert job.poll() is None, "it was left running"
        finally:
            job.kill()
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["headline"].startswith("prep_bound (io_bound), most likely"), answer
    assert answer["workers"]["count"] == 1
    assert answer["log"]["step_s"] == 18.02 and len(answer["log"]["trouble"]) == 1
    assert "only a launch under `stoker measure` can tell" in answer["notes"][-1]


def test_a_process_that_is_not_there_is_named(binary, environment, tmp_path):
    def run(*words):
        return subprocess.run([binary, "measure", *words], capture_output=True, text=True, env=environment, cwd=tmp_path)

    done = run("--pid", "999999999")
    assert done.returncode == 2 and "there is no process 999999999 that can be seen" in done.stderr
    done = run("--pid", "1", "--log", "no.log")
    assert done.returncode == 2 and "no.log" in done.stderr
    done = run("--pid", "1", "--", "true")
    assert done.returncode == 2 and "exclude each other" in done.stderr
