"""The hook alone: pure Python, inert without torch, harmless when it fails."""

import ast
import json
import os
import pathlib
import subprocess
import sys

import pytest

HOOK = pathlib.Path(__file__).resolve().parents[2] / "python/stoker/hook"
sys.path.insert(0, str(HOOK))
from stoker_hook import device, recorder  # noqa: E402

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
    clock = device.DeviceClock(Torch, writer)
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
