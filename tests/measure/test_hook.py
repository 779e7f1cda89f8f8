"""The hook alone: pure Python, inert without torch, harmless when it fails."""

import ast
import itertools
import json
import pathlib
import subprocess
import sys
import time

import pytest

HOOK = pathlib.Path(__file__).resolve().parents[2] / "python/stoker/hook"
sys.path.insert(0, str(HOOK))
from stoker_hook import clocks, copies, device, lane, recorder  # noqa: E402

sys.path.remove(str(HOOK))


def python(text, environment, *, path=HOOK, records=None, **options):
    env = {**environment, "PYTHONPATH": str(path)}
    if records is not None:
        env["STOKER_MEASURE_DIR"] = str(records)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=env, **options)


def lines(folder):
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().rstrip("\0").splitlines()]


@pytest.mark.parametrize("path", sorted(HOOK.rglob("*.py")), ids=lambda path: path.name)
def test_every_file_is_python_3_8(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    imported = {name.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert imported <= set(sys.stdlib_module_names) | {"stoker_hook", "sitecustomize"}


def test_a_python_without_torch_is_left_alone(environment, tmp_path):
    done = python("import sys, json; print([m for m in sys.modules if 'stoker' in m], [p for p in sys.path if 'hook' in p])", environment,
                  records=tmp_path)
    assert done.stdout == "['stoker_hook'] []\n" and done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_the_users_sitecustomize_runs_too(environment, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/sitecustomize.py").write_text("import sys\nsys.mine = __file__\n")
    done = python("import sys, sitecustomize; print(sys.mine == sitecustomize.__file__)", environment, path=f"{HOOK}:{tmp_path / 'mine'}", records=tmp_path)
    assert done.stdout == "True\n" and done.stderr == ""


def test_an_error_in_the_users_sitecustomize_is_reported_as_ever(environment, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import no_such_module\n")
    with_hook = python("pass", environment, path=f"{HOOK}:{tmp_path}", records=tmp_path)
    without = python("pass", environment, path=tmp_path)
    assert "no_such_module" in without.stderr and with_hook.stderr == without.stderr


@pytest.mark.parametrize("records", ["/nonexistent/folder", "/dev/null", "/dev/full"])
def test_a_folder_that_cannot_be_written_does_not_harm_the_job(records, environment):
    pytest.importorskip("torch")
    done = python("from torch.utils.data import DataLoader\nprint(sum(b.sum().item() for b in DataLoader(list(range(100)), batch_size=10, num_workers=1)))",
                  environment, records=records)
    assert done.stdout == "4950\n", done.stderr
    assert done.stderr == ""


def test_lines_survive_a_kill_and_a_fork_has_its_own_file(environment, tmp_path):
    done = python("""
import os, sys
sys.path.insert(0, %r)
from stoker_hook.recorder import Recorder
recorder = Recorder(%r)
recorder.write('{"who":"parent"}')
if os.fork() == 0:
    recorder.write('{"who":"child"}')
    os.kill(os.getpid(), 9)
os.wait()
os.closerange(3, 256)
recorder.write('{"who":"parent again"}')
os.kill(os.getpid(), 9)
""" % (str(HOOK), str(tmp_path)), environment)
    assert done.returncode == -9
    assert sorted(line["who"] for line in lines(tmp_path)) == ["child", "parent", "parent again"]
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


def test_files_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "FIRST_BYTES", 4096)
    monkeypatch.setattr(recorder, "SEGMENT_BYTES", 8192)
    monkeypatch.setattr(recorder, "SEGMENTS_KEPT", 3)
    writer = recorder.Recorder(str(tmp_path))
    for i in range(5000):
        writer.write('{"i":%d}' % i)
    writer.close()
    kept = [line["i"] for line in lines(tmp_path)]
    assert len(list(tmp_path.iterdir())) == 3
    assert kept == list(range(kept[0], 5000)) and len(kept) > 1000


class FakeCuda:
    """A device that finishes events when told, with a clock of its own in ms."""

    def __init__(self):
        self.now = 0.0
        self.finished = True
        self.recorded = []
        self.capturing = False
        outer = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.at = outer.now
                outer.recorded.append(self)

            def query(self):
                return outer.finished

            def elapsed_time(self, other):
                assert outer.finished, "that would wait"
                return other.at - self.at

            def synchronize(self):
                raise AssertionError("nothing is waited for")

        self.Event = Event

    def is_initialized(self):
        return True

    def is_current_stream_capturing(self):
        return self.capturing


def test_the_device_clock_waits_for_nothing(tmp_path):
    class Torch:
        cuda = FakeCuda()

    class State:
        number = batch = 0

    writer = recorder.Recorder(str(tmp_path))
    clock = device.DeviceClock(Torch, writer, copies.Copies(Torch))
    Torch.cuda.finished = False
    for batch in range(4):
        State.batch = batch
        clock.before(State)
        Torch.cuda.now += 3  # the device has nothing to do for 3 ms
        clock.after(State)
        Torch.cuda.now += 20
    assert lines(tmp_path) == []
    Torch.cuda.finished = True
    clock.before(State)
    clock.after(State)
    got = [(line["b"], line["wait"], line["work"]) for line in lines(tmp_path)]
    assert got[:4] == [(0, 3000000, 0), (1, 3000000, 20000000), (2, 3000000, 20000000), (3, 3000000, 20000000)]
    Torch.cuda.capturing = True
    before = len(Torch.cuda.recorded)
    clock.before(State)
    clock.after(State)
    assert len(Torch.cuda.recorded) == before


class FakeTensor:
    """What `to` and `cuda` of the stand-in's tensors take, in ms of the device's clock."""

    cuda_clock = None

    def __init__(self, is_cuda=False):
        self.is_cuda = is_cuda

    def to(self, where, non_blocking=False):
        """moves it"""
        if where == "cuda" and not self.is_cuda:
            type(self).cuda_clock.now += 4
        return type(self)(where == "cuda")

    def cuda(self):
        return FakeTensor.to(self, "cuda")


def fake_torch(monkeypatch, folder):
    class Tensor(FakeTensor):
        pass

    class Torch:
        cuda = FakeCuda()
        __name__ = "faketorch"

    Torch.Tensor = Tensor
    Tensor.cuda_clock = Torch.cuda
    Torch.cuda.stream = "main"
    Torch.cuda.current_stream = lambda: Torch.cuda.stream
    return Torch, copies.Copies(Torch), recorder.Recorder(str(folder))


def test_copies_to_the_device_are_told_apart_and_others_are_left_alone(tmp_path, monkeypatch):
    Torch, seen, writer = fake_torch(monkeypatch, tmp_path)
    seen.install()
    clock = device.DeviceClock(Torch, writer, seen)
    assert Torch.Tensor.to.__doc__ == "moves it" and Torch.Tensor.to.__name__ == "to"

    class State:
        number = batch = 0

    assert Torch.Tensor().to("cuda").is_cuda  # before any batch: a model, say
    for batch in range(3):
        State.batch = batch
        clock.before(State)
        clock.after(State)
        images, labels = Torch.Tensor(), Torch.Tensor()
        assert images.to("cuda", non_blocking=True).is_cuda and labels.cuda().is_cuda
        assert not images.to("float16").is_cuda          # on the host: no copy to the device
        images.to("cuda").to("cuda")                     # there already
        Torch.cuda.stream = "aside"                      # runs beside the step
        images.to("cuda")
        Torch.cuda.stream = "main"
        Torch.cuda.now += 20
    clock.before(State)
    clock.after(State)
    got = [(line["b"], line["work"], line["h2d"], line["copies"]) for line in lines(tmp_path)]
    assert got[1:] == [(batch, 36000000, 12000000, 3) for batch in (1, 2, 2)]


def test_nothing_is_timed_while_a_graph_is_captured(tmp_path, monkeypatch):
    Torch, seen, _ = fake_torch(monkeypatch, tmp_path)
    seen.install()
    seen.begin()
    recorded = len(Torch.cuda.recorded)
    Torch.cuda.capturing = True
    assert Torch.Tensor().to("cuda").is_cuda
    assert len(Torch.cuda.recorded) == recorded and seen.take() == []


def test_a_copy_that_fails_fails_as_ever(tmp_path, monkeypatch):
    Torch, seen, _ = fake_torch(monkeypatch, tmp_path)
    seen.install()
    seen.begin()
    with pytest.raises(TypeError, match="required positional argument"):
        Torch.Tensor().to()
    Torch.cuda.Event = None  # an error of the hook
    assert Torch.Tensor().to("cuda").is_cuda


def test_methods_of_tensors_are_replaced_only_where_a_device_is(environment, tmp_path):
    pytest.importorskip("torch")
    done = python("import torch; print(torch.Tensor.to is torch._C.TensorBase.to, torch.version.cuda or torch.version.hip)", environment, records=tmp_path)
    if done.stdout.split()[1] != "None":
        pytest.skip("this torch can have a device")
    assert done.stdout == "True None\n", done.stderr


ARITHMETIC = """
import sys, torch
from torch.utils.data import DataLoader
enter, to = torch.autocast.__enter__, torch.nn.Module.to
with torch.autocast("cpu", torch.bfloat16, enabled=False): pass
model = torch.nn.Conv2d(3, 4, 3).to(torch.float32).to(memory_format=torch.channels_last)
def forward(x):
    with torch.autocast("cpu", torch.bfloat16):
        return x @ x
print(torch.jit.script(forward)(torch.ones(2, 2)).dtype, torch.compile(forward, backend="eager", fullgraph=True)(torch.ones(2, 2)).dtype)
for batch in DataLoader(list(range(100)), batch_size=10):
    assert forward(torch.ones(2, 2)).dtype is torch.bfloat16
print(torch.autocast.__enter__ is enter, torch.nn.Module.to is to, torch.nn.Module.to.__qualname__)
"""


def test_autocast_and_channels_last_are_noted_once_and_their_methods_put_back(environment, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(ARITHMETIC)  # TorchScript reads the source
    done = python("import runpy; runpy.run_path('train.py')", environment, records=tmp_path, cwd=tmp_path)
    assert done.stdout == "torch.bfloat16 torch.bfloat16\nFalse False Module.to\n", done.stderr
    assert [line for line in lines(tmp_path) if line["k"] in ("autocast", "channels_last")] == [
        {"k": "channels_last"}, {"k": "autocast", "device": "cpu", "dtype": "bfloat16"}]


def test_a_job_that_sets_precision_by_the_new_names_is_described_too(environment, tmp_path):
    torch = pytest.importorskip("torch")
    if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        pytest.skip("this torch has the old names only")
    done = python("import torch\nfrom torch.utils.data import DataLoader\ntorch.backends.cuda.matmul.fp32_precision = 'tf32'\n"
                  "for batch in DataLoader(list(range(100)), batch_size=10): pass", environment, records=tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    assert [line["bytes"] for line in lines(tmp_path) if line["k"] == "described"] == [80]


def test_a_warning_of_torch_names_the_line_that_it_names_without_the_hook(environment, tmp_path):
    pytest.importorskip("torch")
    text = "from torch.utils.data import DataLoader\nfor count in (1000, 2000): DataLoader(list(range(8)), num_workers=count)"
    plain = python(text, environment, path=tmp_path)
    measured = python(text, environment, records=tmp_path)
    assert plain.stderr.count("UserWarning: This DataLoader will create") == 2
    assert measured.stderr == plain.stderr


PACKAGES = {
    "torch/__init__.py": "",
    "torch/utils/data/dataloader.py": "import sys\nsys.path.append({hook!r})\nfrom stoker_hook import places\n\n\ndef make():\n    return places.caller()\n",
    "lightning/__init__.py": "",
    "lightning/trainer.py": "from torch.utils.data import dataloader\n\n\ndef fit():\n    return dataloader.make()\n",
}


@pytest.mark.parametrize("linked", [False, True], ids=["plain", "linked"])
@pytest.mark.parametrize("through", ["torch.utils.data.dataloader.make()", "lightning.trainer.fit()"])
def test_a_loader_is_placed_in_the_users_file_wherever_torch_lies(through, linked, environment, tmp_path):
    """torch and what is built on it come from a folder that no interpreter knows, through PYTHONPATH."""
    for name, text in PACKAGES.items():
        path = tmp_path / "elsewhere" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(hook=str(HOOK)))
    packages = tmp_path / "elsewhere"
    if linked:
        packages = tmp_path / "link"
        packages.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "train.py").write_text("import json\nimport torch.utils.data.dataloader\nimport lightning.trainer\n"
                                       f"train_loader = {through}\nprint(json.dumps(train_loader))\n")
    done = subprocess.run([sys.executable, "train.py"], capture_output=True, text=True, cwd=tmp_path,
                          env={**environment, "PYTHONPATH": str(packages)})
    assert done.returncode == 0, done.stderr
    place = json.loads(done.stdout)
    assert (pathlib.Path(place["file"]).name, place["line"], place["name"]) == ("train.py", 4, "train_loader")


NATIVE = """
import _thread, ctypes, sys, threading, time
sys.path.insert(0, %r)
from stoker_hook import clocks

def burn(name, done):
    if name: ctypes.CDLL(None).prctl(15, name, 0, 0, 0)  # PR_SET_NAME
    end = time.thread_time() + 0.05
    while time.thread_time() < end: pass
    done.set()
    threading.Event().wait()  # such threads live as long as their process

def start(name=None, how=_thread.start_new_thread):
    done = threading.Event()
    how(burn, (name, done))
    done.wait()

start(how=lambda call, words: threading.Thread(target=call, args=words, daemon=True).start())
of_python = clocks.nameless_threads()
start(b"av:h264:df0")
named = clocks.nameless_threads()
start()
print(of_python < 10_000_000, named < 10_000_000, clocks.nameless_threads() >= 50_000_000, flush=True)
import os; os._exit(0)
"""


def test_threads_that_may_spin_are_told_from_those_that_work(environment):
    """Those of Python and named ones work for the data set; a nameless native one may be of OpenMP."""
    done = python("import os; print(os.path.exists('/proc/self/task/self/schedstat') or os.path.exists('/proc/self/schedstat'))", environment)
    if done.stdout != "True\n":
        pytest.skip("this kernel does not tell the CPU time of a thread")
    done = python(NATIVE % str(HOOK), environment, timeout=60)
    assert done.stdout == "True True True\n", done.stdout + done.stderr


class Fetcher:
    """As torch's: gets the samples, then collates them. Getting them takes 5 ms by the test's clocks, 1 ms of it computing."""

    auto_collation = True

    def __init__(self, dataset, clock, waits):
        self.dataset, self.collate_fn, self._clock, self._waits = dataset, list, clock, waits

    def collate(self, data):
        self._clock["wall"] += 7_680_000
        self._clock["cpu"] += 30_000
        self._clock["delay"] += 2_000_000
        self._clock["switches"] += self._waits
        return list(data)

    def fetch(self, index):
        data = [self.dataset[i] for i in index]
        self._clock["wall"] += 5_000_000
        self._clock["cpu"] += 1_000_000
        self._clock["switches"] += self._waits
        return self.collate_fn(data)


@pytest.mark.parametrize("waits, delay", [(0, 4_000_000), (3, 0)], ids=["it never waits", "it waits"])
def test_time_without_cpu_is_fetch_only_if_the_thread_waited(monkeypatch, waits, delay):
    """The kernel's own figure of the delay is read for one cheap batch in 64, and is 0 here: nobody disturbed that one."""
    clock = {"wall": 0, "cpu": 0, "delay": 0, "switches": 7}
    for name in clock:
        monkeypatch.setattr(clocks, name, lambda name=name: clock[name])
    one = lane.Lane(None)
    fetcher = Fetcher(list("abcd"), clock, waits)
    one.attach(fetcher, False)
    assert fetcher.fetch([0, 1]) == ["a", "b"]
    started, collating, _, count, cpu, delayed = one.done[:6]
    assert (collating - started, count, cpu, delayed) == (5_000_000, 2, 1_000_000, delay)


def test_the_delay_is_never_longer_than_what_the_samples_took(monkeypatch):
    """Another program takes the core between reading the wall clock and reading the kernel's counter of the delay."""
    clock = {"wall": 0, "cpu": 0, "switches": 7}
    for name in clock:
        monkeypatch.setattr(clocks, name, lambda name=name: clock[name])
    delays = itertools.count(0, 60_000_000)
    monkeypatch.setattr(clocks, "delay", lambda: next(delays))
    one = lane.Lane(None)
    fetcher = Fetcher(list("abcd"), clock, waits=1)
    one.attach(fetcher, False)
    for _ in range(2):
        fetcher.fetch([0, 1])
        started, collating, _, _, cpu, delayed = one.done[:6]
        assert (collating - started, cpu, delayed) == (5_000_000, 1_000_000, 4_000_000)


@pytest.mark.parametrize("waits, delay", [(0, 7_650_000), (3, 2_000_000)], ids=["it never waits", "it waits"])
def test_time_without_a_core_while_collating_is_told_apart(monkeypatch, waits, delay):
    clock = {"wall": 0, "cpu": 0, "delay": 0, "switches": 7}
    for name in clock:
        monkeypatch.setattr(clocks, name, lambda name=name: clock[name])
    one = lane.Lane(None)
    fetcher = Fetcher(list("abcd"), clock, waits)
    fetcher.collate_fn = fetcher.collate
    one.attach(fetcher, False)
    fetcher.fetch([0, 1])
    assert (one.done[2] - one.done[1], one.done[-1]) == (7_680_000, delay)
    assert '"collate_delay":%d' % delay in lane.MADE % one.done


def test_a_thread_that_sleeps_is_known_to_have_waited():
    before = clocks.switches()
    if before is None:
        pytest.skip("this kernel does not count switches")
    time.sleep(0.001)
    assert clocks.switches() > before
