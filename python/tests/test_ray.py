"""Packs made by a Ray cluster of this machine."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest
import stoker.ray
from PIL import Image

import stoker

pytestmark = pytest.mark.slow
WORDS = ["--shard-size", "1MiB", "--kind", "raw"]


@pytest.fixture(scope="module")
def cluster():
    """One node on the loopback interface: the first variable keeps Ray from looking for another address."""
    os.environ.update(RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0", RAY_USAGE_STATS_ENABLED="0")
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args=dict(num_cpus=2, object_store_memory=100 * 2**20, node_ip_address="127.0.0.1",
                                                             include_dashboard=False))
    ray.init(address=made.address, log_to_driver=False)
    yield made.address
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def arrays(tmp_path):
    """40 arrays of 100 KB: four shards."""
    for number in range(40):
        path = tmp_path / "data" / f"{number % 2}" / f"{number:02}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        numpy.save(path, numpy.full(25_000, number, numpy.float32))
    return tmp_path / "data"


@pytest.fixture
def large_pictures(tmp_path):
    """120 links to one large picture, so that packing takes seconds."""
    (tmp_path / "data").mkdir()
    pixels = numpy.random.default_rng(1).integers(0, 256, (1500, 1500, 3), numpy.uint8)
    Image.fromarray(pixels).save(tmp_path / "data" / "000.png", compress_level=1)
    for number in range(1, 120):
        os.link(tmp_path / "data" / "000.png", tmp_path / "data" / f"{number:03}.png")
    return tmp_path / "data"


def made_by_one_machine(folder, dest, words):
    subprocess.run([sys.executable, "-m", "stoker", "pack", folder, dest, *words], check=True, capture_output=True)
    return dest


def assert_equal_packs(one, other):
    assert sorted(path.name for path in one.iterdir()) == sorted(path.name for path in other.iterdir())
    for path in one.iterdir():
        assert path.read_bytes() == (other / path.name).read_bytes(), path.name


def programs_of(dest):
    """The `stoker pack --part` of this destination that run: their process ids with those of their parents."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if os.fsencode(dest) in words and b"--part" in words and b"--json" in words:
                found[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    return found


def wait_until(condition, what):
    deadline = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
    return found


def test_a_cluster_makes_the_pack_that_one_machine_makes(cluster, arrays, tmp_path):
    told = []
    made = stoker.ray.pack(arrays, tmp_path / "x.pack", parts=3, arguments=WORDS, progress=told.append)
    assert made["count"] == 40 and len(told) == 3 and told[-1].endswith("3 of 3 parts are made")
    assert_equal_packs(made_by_one_machine(arrays, tmp_path / "one.pack", WORDS), tmp_path / "x.pack")


def test_an_error_of_a_part_is_that_of_the_program(cluster, arrays, tmp_path):
    (arrays / "0" / "00.npy").write_bytes(b"no array")
    with pytest.raises(stoker.Error, match=r"00\.npy"):
        stoker.ray.pack(arrays, tmp_path / "x.pack", parts=2, arguments=WORDS)
    assert not (tmp_path / "x.pack").exists() and not programs_of(tmp_path / "x.pack")


def test_a_missing_source_is_said_as_the_program_says_it(cluster, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        stoker.ray.pack(tmp_path / "nowhere", tmp_path / "x.pack", parts=2)


def test_a_part_whose_worker_is_killed_is_made_again(cluster, large_pictures, tmp_path):
    dest, words, answer = tmp_path / "x.pack", ["--kind", "raw", "--size", "128", "--shard-size", "1MiB"], {}
    thread = threading.Thread(target=lambda: answer.update(stoker.ray.pack(large_pictures, dest, parts=2, arguments=words)))
    thread.start()
    program, worker = next(iter(wait_until(lambda: programs_of(dest), "no part was started").items()))
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: program not in programs_of(dest), "the program outlives its worker")
    thread.join(120)
    assert answer.get("count") == 120
    assert_equal_packs(made_by_one_machine(large_pictures, tmp_path / "one.pack", words), dest)


def test_ctrl_c_ends_the_programs_and_the_next_call_resumes(cluster, large_pictures, tmp_path):
    dest, words = tmp_path / "x.pack", ["--kind", "raw", "--size", "128", "--shard-size", "1MiB"]
    command = [sys.executable, "-m", "stoker.ray", large_pictures, dest, "--parts", "2", "--address", cluster, *words]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: programs_of(dest), "no part was started")
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130 and said.endswith("interrupted\n"), said
    assert not programs_of(dest)
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.startswith(f"{dest}: 120 samples")
    assert_equal_packs(made_by_one_machine(large_pictures, tmp_path / "one.pack", words), dest)


def test_wrong_use_is_said():
    pytest.importorskip("ray", reason="Ray is not installed")
    with pytest.raises(stoker.UsageError, match="parts is at least 1"):
        stoker.ray.pack("a", "b", parts=0)
    with pytest.raises(stoker.UsageError, match="num_cpus is above 0"):
        stoker.ray.pack("a", "b", num_cpus=0)


def test_without_ray_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(stoker.UsageError, match="pip install ray"):
        stoker.ray.pack("a", "b")
