"""Packs made by a Ray cluster of this machine."""

import contextlib
import importlib
import json
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
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
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


@pytest.fixture(scope="module")
def two_nodes():
    """A cluster of its own: what its nodes run is killed with them."""
    os.environ.update(RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0", RAY_USAGE_STATS_ENABLED="0")
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from ray.cluster_utils import Cluster

    ray.shutdown()
    node = dict(num_cpus=1, object_store_memory=100 * 2**20, node_ip_address="127.0.0.1")
    made = Cluster(initialize_head=True, head_node_args=dict(**node, include_dashboard=False))
    made.second = made.add_node(**node)
    ray.init(address=made.address, log_to_driver=False, _node_ip_address="127.0.0.1")
    yield made
    ray.shutdown()
    made.shutdown()


def test_ray_train_gives_each_worker_its_part_and_its_cpus(two_nodes, photos, tmp_path):
    for module in ("torch", "pandas", "pyarrow", "tensorboardX", "fsspec", "pydantic"):
        pytest.importorskip(module, reason=f"ray.train needs {module}")
    done = subprocess.run([sys.executable, EXAMPLES / "train_ray.py", photos, tmp_path, "2"], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "RAY_ADDRESS": two_nodes.address})
    assert done.returncode == 0, done.stderr[-3000:]
    assert "'seen': 12" in done.stdout and "'epoch': 1" in done.stdout


def test_a_worker_of_ray_takes_rank_and_cpus_from_it(two_nodes, photos):
    import ray

    def look(path):
        importlib.import_module("ray.train")  # there, but this is no worker of it
        with stoker.Loader(path, batch_size=4, output="numpy") as loader:
            len(loader)
            return loader.options["num_workers"], list(loader.notes)

    workers, notes = ray.get(ray.remote(num_cpus=1)(look).remote(str(photos)))
    assert workers == 1 and "num_workers=1: the CPUs that Ray gives this process" in notes


def test_a_pack_is_the_same_after_a_node_was_killed(two_nodes, large_pictures, tmp_path):
    dest, words, answer = tmp_path / "x.pack", ["--kind", "raw", "--size", "128", "--shard-size", "1MiB"], {}
    thread = threading.Thread(target=lambda: answer.update(stoker.ray.pack(large_pictures, dest, parts=4, arguments=words)))
    thread.start()
    running = wait_until(lambda: len(found := programs_of(dest)) == 2 and found, "two nodes do not work at once")
    two_nodes.remove_node(two_nodes.second, allow_graceful=False)
    wait_until(lambda: running.keys() - programs_of(dest).keys(), "no program ended with its node")
    thread.join(240)
    assert answer.get("count") == 120
    assert_equal_packs(made_by_one_machine(large_pictures, tmp_path / "one.pack", words), dest)


def test_a_folder_that_a_node_does_not_see_is_named(tmp_path):
    code, answer, _ = stoker.ray._leave_mark(str(tmp_path / "x.pack"))
    mark = json.loads(answer)
    assert code == 0 and os.path.exists(mark)
    stoker.ray._remove_mark(mark)  # as on a node where that path is another disk
    code, _, said = stoker.ray._run(["data", str(tmp_path / "x.pack"), "--part", "1/2"], mark)
    assert code == 2 and f"does not see `{mark}`" in said and "not on a disk that all nodes share" in said
    code, _, said = stoker.ray._leave_mark(str(tmp_path / "nowhere" / "x.pack"))
    assert code == 2 and "cannot write beside" in said and "No such file or directory" in said


def test_a_cluster_of_another_python_is_named(cluster, arrays, tmp_path):
    program = """
import sys, ray._private.utils
version = ray._private.utils.compute_version_info
ray._private.utils.compute_version_info = lambda: (version()[0], "3.7.1")
import stoker.ray
sys.exit(stoker.ray._main())
"""
    done = subprocess.run([sys.executable, "-c", program, arrays, tmp_path / "x.pack", "--address", cluster], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2 and "cannot use the Ray cluster" in done.stderr and "3.7.1" in done.stderr, done.stderr
    assert "run this with the versions of Python and Ray of the cluster" in done.stderr


def test_the_program_packs_on_a_cluster(cluster, arrays, tmp_path):
    command = [sys.executable, "-m", "stoker", "pack", arrays, tmp_path / "x.pack", *WORDS, "--ray", cluster, "--ray-parts", "2", "--python", sys.executable]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 and json.loads(done.stdout)["count"] == 40, done.stderr
    assert done.stderr.count(" parts are made") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "x.pack"]
    assert_equal_packs(made_by_one_machine(arrays, tmp_path / "one.pack", WORDS), tmp_path / "x.pack")
    (arrays / "0" / "00.npy").write_bytes(b"no array")
    again = subprocess.run([*command, "--quiet", "--force"], capture_output=True, text=True, check=False, timeout=120)
    assert again.returncode == 2 and "00.npy" in again.stderr and again.stdout == ""


def test_wrong_use_is_said():
    pytest.importorskip("ray", reason="Ray is not installed")
    with pytest.raises(stoker.UsageError, match="parts is at least 1"):
        stoker.ray.pack("a", "b", parts=0)
    with pytest.raises(stoker.UsageError, match="num_cpus is above 0"):
        stoker.ray.pack("a", "b", num_cpus=0)


def test_without_ray_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(stoker.UsageError, match="is not installed") as caught:
        stoker.ray.pack("a", "b")
    assert "stoker[ray]" in caught.value.hint
