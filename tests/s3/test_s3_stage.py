"""Copies of a real S3 server: byte for byte, by class, killed and resumed."""

import json
import os
import re
import signal
import subprocess
import time
import urllib.parse

import pytest
from conftest import BUCKET
from test_s3 import ODD, batches, make_folder, wav

import stoker


@pytest.fixture
def run(binary):
    def run(*words, **options):
        return subprocess.run([binary, *map(str, words)], capture_output=True, text=True, timeout=300, check=False, **options)

    return run


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.startswith(".stage")}


def report(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_odd_keys_are_copied_byte_for_byte_and_not_twice(store, tmp_path, run):
    shown = [name for name in ODD if not name.startswith(".")]
    folder = make_folder(tmp_path / "data", [f"class {i % 3}/{name}.wav" for i, name in enumerate(shown)])
    address = store.upload(folder, "odd pre+fix")
    first = report(run("stage", address, tmp_path / "copy", "--json"))
    assert first["fetched"] == first["requests"] == len(shown)
    assert files(tmp_path / "copy") == files(folder)
    assert report(run("stage", address, tmp_path / "copy", "--json"))["up_to_date"]
    store.put("odd pre+fix/class 0/a b.wav", wav(99))  # of the same size
    again = report(run("stage", address, tmp_path / "copy", "--json"))
    assert again["fetched"] == 1 and again["kept"] == len(shown) - 1
    assert (tmp_path / "copy/class 0/a b.wav").read_bytes() == wav(99)


def test_a_copy_of_drawn_classes_gives_the_batches_of_the_store(store, tmp_path, run):
    folder = make_folder(tmp_path / "data", [f"{split}/c{i % 10}/{i:03}.wav" for split in ("train", "val") for i in range(60)])
    address = store.upload(folder, "imagenet")
    answer = report(run("stage", address, tmp_path / "copy", "--class-subset", "4", "--class-subset-seed", "42", "--split", "train=18,val=5", "--json"))
    assert [split["files"] for split in answer["splits"]] == [18, 5] and len(answer["classes"]) == 4
    assert batches(tmp_path / "copy/train") == batches(address + "/train", class_subset=4, class_subset_seed=42, subset=18)
    with stoker.Loader(address + "/val", class_subset=4, batch_size=1, cache_dir=False) as loader:
        assert loader.classes == answer["classes"]


def test_a_pack_is_made_from_the_store_and_fetched_once(store, tmp_path, run):
    folder = make_folder(tmp_path / "data", [f"{'ab'[i % 2]}/{i}.wav" for i in range(20)])
    address = store.upload(folder, "set")
    assert report(run("stage", address, tmp_path / "x.pack", "--json"))["kind"] == "pack"
    assert batches(tmp_path / "x.pack") == batches(folder)
    store.put("set/a/0.wav", wav(77))
    again = report(run("stage", address, tmp_path / "x.pack", "--json"))
    assert again["fetched"] == 1 and again["kept"] == 19


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_copy_that_was_ended_goes_on_and_ends_with_the_same_bytes(store, tmp_path, run, binary, how):
    bodies = {f"{'abcd'[i % 4]}/{i:03}.wav": os.urandom(20_000) for i in range(120)}
    store.put_all({f"set/{name}": body for name, body in bodies.items()})
    copy = tmp_path / "copy"
    process = subprocess.Popen([binary, "stage", store.address("set"), str(copy), "--max-rate", "1MB"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 60
    while len(list(copy.glob(".stage-*.part"))) < 20:
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(how)
    process.communicate(timeout=60)
    assert process.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL)
    half = files(copy)
    assert half.items() <= bodies.items() and len(half) < 120
    answer = report(run("stage", store.address("set"), copy, "--json"))
    assert answer["kept"] == len(half)
    assert files(copy) == bodies
    assert not list(copy.glob(".stage-*.part"))


def test_an_object_that_an_index_names_and_the_store_lacks_is_left_out(store, tmp_path, run):
    store.put("csv/a.wav", wav(1))
    store.put("csv/empty.wav", b"")
    store.put("csv/index.csv", b"path,label\na.wav,x\ngone.wav,y\nempty.wav,x\n")
    answer = report(run("stage", store.address("csv/index.csv"), tmp_path / "copy", "--on-error", "skip", "--json"))
    assert [bad["name"] for bad in answer["bad"]] == ["gone.wav"] and answer["fetched"] == 2 and not answer["up_to_date"]
    assert sorted(files(tmp_path / "copy")) == ["a.wav", "empty.wav", "index.csv"]
    assert "gone" not in (tmp_path / "copy/index.csv").read_text()
    assert any("there is no object `gone.wav` below" in note for note in answer["notes"])


def test_few_open_files_are_enough(store, tmp_path, run, binary):
    bodies = {f"{'abcd'[i % 4]}/{i:03}.wav": os.urandom(20_000) for i in range(120)}
    store.put_all({f"set/{name}": body for name, body in bodies.items()})
    done = subprocess.run(["bash", "-c", 'ulimit -n 64 && exec "$0" stage "$1" "$2"', binary, store.address("set"), str(tmp_path / "copy")],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "copy") == bodies


def test_labels_of_a_subset_are_those_of_the_store(store, tmp_path, run):
    folder = make_folder(tmp_path / "data", [f"c{i % 10}/{i:03}.wav" for i in range(60)])
    address = store.upload(folder, "set")
    assert run("stage", address, tmp_path / "copy", "--subset", "4").returncode == 0
    assert batches(tmp_path / "copy") == batches(address, subset=4)


def keys_below(store, prefix):
    """Names of the objects below a prefix of the test's own."""
    whole = f"{store.prefix}/{prefix}/"
    query = f"list-type=2&prefix={urllib.parse.quote(whole, safe='-_.~')}"
    answer = store.client.request("GET", f"/{BUCKET}", query=query)
    assert answer.status == 200, answer.text
    return {urllib.parse.unquote(key)[len(whole):] for key in re.findall(r"<Key>([^<]*)</Key>", answer.text.decode())}


def test_a_pack_is_written_to_the_store_and_read_from_there(store, tmp_path, run):
    folder = make_folder(tmp_path / "data", [f"{'ab'[i % 2]}/{i}.wav" for i in range(20)])
    (folder / "a/large.wav").write_bytes(wav(5, 10_000_000))  # 20 MB: more than one part
    packed = run("pack", folder, store.address("x y.pack"), "--work-folder", tmp_path / "work")
    assert packed.returncode == 0, packed.stderr
    assert not list((tmp_path / "work").iterdir())
    transform = [stoker.PadOrTrim(200)]
    assert batches(store.address("x y.pack"), transform=transform) == batches(folder, transform=transform)
    assert "pack.json" in keys_below(store, "x y.pack")
    again = run("pack", folder, store.address("x y.pack"))
    assert again.returncode == 2 and "it is there already" in again.stderr


def test_ctrl_c_during_an_upload_leaves_no_pack(store, tmp_path, binary):
    (tmp_path / "data").mkdir()
    for i in range(8):
        (tmp_path / f"data/{i}.wav").write_bytes(wav(i, 10_000_000))
    process = subprocess.Popen([binary, "pack", str(tmp_path / "data"), store.address("c.pack"), "--work-folder", str(tmp_path / "work")],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 120
    while not list((tmp_path / "work").glob("upload-*.pack")):  # it is whole, and its upload begins
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert not keys_below(store, "c.pack")
    answer = store.client.request("GET", f"/{BUCKET}", query="uploads=")
    assert answer.status == 200 and f"{store.prefix}/c.pack".encode() not in answer.text
