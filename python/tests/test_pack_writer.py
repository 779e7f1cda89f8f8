"""stoker.PackWriter: what was appended is in the pack, whoever was interrupted."""

import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import stoker


def rows(ids):
    return np.repeat(np.asarray(ids, np.float32)[:, None], 5, axis=1)


def test_rows_labels_names_and_ids_come_back_from_the_loader(tmp_path):
    with stoker.PackWriter(str(tmp_path / "x.pack"), classes=["cat", "dog"]) as writer:
        for first in range(0, 100, 10):
            ids = np.arange(first, first + 10)
            assert writer.append(rows(ids), ids, ["dog" if i % 2 else "cat" for i in ids], [f"n{i}" for i in ids]) == 10
        assert len(writer) == 100 and not (tmp_path / "x.pack").exists()
    loader = stoker.Loader(str(tmp_path / "x.pack"), batch_size=8, shuffle=True, seed=1, output="numpy")
    seen = []
    for batch in loader:
        data, labels = batch
        assert (data == rows(batch.ids)).all() and (labels == batch.ids % 2).all()
        assert list(batch.names) == [f"n{i}" for i in batch.ids]
        seen += list(batch.ids)
    assert sorted(seen) == list(range(100)) and loader.classes == ["cat", "dog"]
    assert (np.load(tmp_path / "x.pack" / "data-00000.npy") == rows(np.arange(100))).all()


def test_an_exception_leaves_no_pack_and_the_next_writer_goes_on(tmp_path):
    with pytest.raises(RuntimeError, match="stop"):
        with stoker.PackWriter(tmp_path / "x.pack") as writer:
            writer.append(rows(range(50)), range(50))
            raise RuntimeError("stop")
    assert not (tmp_path / "x.pack").exists()
    with stoker.PackWriter(tmp_path / "x.pack") as writer:
        assert len(writer) == 50 and list(writer.has([0, 49, 50])) == [True, True, False]
        assert writer.append(rows(range(100)), range(100)) == 50
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.pack"]
    assert (np.load(tmp_path / "x.pack" / "data-00000.npy") == rows(range(100))).all()


def test_a_killed_program_loses_nothing_that_was_flushed(tmp_path):
    program = """
import sys, numpy as np, stoker
writer = stoker.PackWriter(sys.argv[1])
for first in range(len(writer), 10**9, 100):
    ids = np.arange(first, first + 100)
    writer.append(np.repeat(ids.astype(np.float32)[:, None], 5, axis=1), ids, ids % 7)
    writer.flush()
    print(first + 100, flush=True)
"""
    flushed = 0
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "x.pack")], stdout=subprocess.PIPE, text=True)
        for _ in range(3):
            line = process.stdout.readline()
            assert line and int(line) > flushed
            flushed = int(line)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    with stoker.PackWriter(tmp_path / "x.pack") as writer:
        assert len(writer) >= flushed
        count = len(writer)
    index = np.load(tmp_path / "x.pack" / "index.npy")
    assert list(index["id"]) == list(range(count)) and (index["label"] == index["id"] % 7).all()
    assert (np.load(tmp_path / "x.pack" / "data-00000.npy") == rows(range(count))).all()


def test_killed_at_any_of_twenty_moments_it_goes_on_and_makes_the_same_pack(tmp_path):
    program = """
import sys, numpy as np, stoker
with stoker.PackWriter(sys.argv[1], shard_size="1MiB") as writer:
    for first in range(0, int(sys.argv[2]), 50):
        ids = np.arange(first, first + 50)
        if not writer.has(ids).all():
            writer.append(np.repeat(ids.astype(np.float32)[:, None], 500, axis=1), ids, ids % 7)
        if first % 500 == 0:
            writer.flush()
            print(first, flush=True)
"""

    def run(dest, rows=6000, kill_after=None):
        process = subprocess.Popen([sys.executable, "-c", program, str(dest), str(rows)], stdout=subprocess.PIPE, text=True)
        if kill_after is not None:
            process.stdout.readline()  # it writes now
            try:
                process.wait(kill_after)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        process.communicate()
        return process.returncode

    def contents(pack):
        return {path.name: path.read_bytes() for path in pack.iterdir()}

    pack, half, wanted = tmp_path / "x.pack", tmp_path / "half.pack", {}
    assert run(half, 2000) == 0
    for again in (False, True):  # a new pack, and one that is added to
        if again:
            shutil.copytree(half, pack)
        started = time.monotonic()
        assert run(pack) == 0
        spread = (time.monotonic() - started) / 2  # importing is the other half
        wanted[again] = contents(pack)
        shutil.rmtree(pack)
    assert wanted[False] != wanted[True], "the shards are cut elsewhere"
    chance, killed = random.Random(42), 0
    for moment in range(20):
        again = moment // 2 % 2 == 1
        if again and moment % 2 == 0:
            shutil.copytree(half, pack)
        killed += run(pack, kill_after=chance.uniform(0, spread)) != 0
        if moment % 2 == 1:  # killed twice, then left alone
            assert run(pack) == 0
            assert contents(pack) == wanted[again]
            shutil.rmtree(pack)
    assert killed > 0


def test_a_finished_pack_can_be_added_to_and_replaced(tmp_path):
    for first in (0, 10, 20):
        with stoker.PackWriter(tmp_path / "x.pack") as writer:
            assert len(writer) == first
            writer.append(rows(range(first, first + 10)), range(first, first + 10), 0.5)
    assert stoker.Loader(str(tmp_path / "x.pack"), batch_size=1).num_samples == 30
    with stoker.PackWriter(tmp_path / "x.pack", force=True) as writer:
        writer.append(np.zeros((3, 2), np.int16), [7, 8, 9])
    assert json.loads((tmp_path / "x.pack" / "pack.json").read_text())["count"] == 3


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64", "bool"])
def test_every_dtype_is_kept(tmp_path, dtype):
    array = np.arange(24).reshape(4, 3, 2).astype(dtype)
    with stoker.PackWriter(tmp_path / "x.pack") as writer:
        writer.append(array, range(4))
    kept = np.load(tmp_path / "x.pack" / "data-00000.npy")
    assert kept.dtype == array.dtype and (kept == array).all()


def test_torch_tensors_are_taken_bfloat16_too(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with stoker.PackWriter(tmp_path / "x.pack") as writer:
        writer.append(torch.ones(4, 3, dtype=torch.bfloat16, requires_grad=True), torch.arange(4), torch.tensor([0.5] * 4))
    batch = next(iter(stoker.Loader(str(tmp_path / "x.pack"), batch_size=4, output="torch")))
    assert batch[0].dtype == torch.bfloat16 and (batch[0] == 1).all() and (batch[1] == 0.5).all()


def test_views_and_fortran_order_are_copied_as_they_look(tmp_path):
    array = np.asfortranarray(np.arange(40, dtype=np.int32).reshape(10, 4))[::2, ::-1]
    with stoker.PackWriter(tmp_path / "x.pack") as writer:
        writer.append(array, range(5))
    assert (np.load(tmp_path / "x.pack" / "data-00000.npy") == array).all()


@pytest.mark.parametrize("arguments, message", [
    ((np.zeros((2, 3)), [1]), "2 rows with 1 ids"),
    ((np.zeros((2, 3)), [1, -2]), "ids begin at 0"),
    ((np.zeros((2, 3)), [0.5, 1]), "ids are whole numbers"),
    ((np.zeros((2, 3)), [1, 2], ["cat", "cow"]), "the label 'cat'"),
    ((np.zeros((2, 3)), [1, 2], [1, 2, 3]), r"labels of shape \[3\]"),
    ((np.zeros((2, 3)), [1, 2], None, ["a"]), "1 names"),
    ((np.array(["a", "b"]), [1, 2]), "dtype"),
    ((3.5, [1]), "a single number"),
    ((np.zeros((2, 0)), [1, 2]), "each row of 0 bytes"),
])
def test_wrong_rows_are_refused_in_one_sentence(tmp_path, arguments, message):
    writer = stoker.PackWriter(tmp_path / "x.pack")
    with pytest.raises(stoker.UsageError, match=message):
        writer.append(*arguments)


def test_rows_of_another_kind_are_refused(tmp_path):
    writer = stoker.PackWriter(tmp_path / "x.pack")
    writer.append(rows([1]), [1], [1])
    with pytest.raises(stoker.UsageError, match=r"cannot append float64 \[5\] to the pack `.*x.pack`: it holds float32 \[5\]"):
        writer.append(rows([2]).astype(np.float64), [2], [1])
    with pytest.raises(stoker.UsageError, match="labels of kind none"):
        writer.append(rows([2]), [2])
    writer.close()
    writer.close()
    with pytest.raises(stoker.UsageError, match="closed"):
        writer.append(rows([2]), [2], [1])


def test_a_second_writer_and_a_strangers_folder_are_refused(tmp_path):
    first = stoker.PackWriter(tmp_path / "x.pack")
    with pytest.raises(stoker.Error, match="another program is making this pack"):
        stoker.PackWriter(tmp_path / "x.pack")
    del first
    (tmp_path / "y.pack").mkdir()
    (tmp_path / "y.pack" / "mine").write_text("")
    with pytest.raises(stoker.UsageError, match="not a pack"):
        stoker.PackWriter(tmp_path / "y.pack")
    with pytest.raises(stoker.UsageError, match="no rows were appended"):
        stoker.PackWriter(tmp_path / "z.pack").close()


def test_a_forked_child_may_not_write_and_ends_all_the_same(tmp_path):
    program = """
import os, sys, numpy as np, stoker
writer = stoker.PackWriter(sys.argv[1])
writer.append(np.zeros((3, 2)), [0, 1, 2])
child = os.fork()
if child == 0:
    try:
        writer.append(np.zeros((1, 2)), [3])
    except stoker.Error as error:
        sys.exit(7 if "forked" in str(error) else 1)
    sys.exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
writer.append(np.zeros((1, 2)), [3])
writer.close()
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "x.pack")], check=True, timeout=60)
    assert json.loads((tmp_path / "x.pack" / "pack.json").read_text())["count"] == 4


def test_little_memory_makes_append_wait_and_keeps_everything(tmp_path):
    with stoker.PackWriter(tmp_path / "x.pack", memory_limit="64KB", shard_size="1MiB") as writer:
        for first in range(0, 20000, 1000):
            writer.append(np.repeat(np.arange(first, first + 1000)[:, None], 20, axis=1), np.arange(first, first + 1000))
    pack = pathlib.Path(tmp_path / "x.pack")
    shards = [np.load(path) for path in sorted(pack.glob("data-*.npy"))]
    assert len(shards) > 3 and (np.concatenate(shards)[:, 7] == np.arange(20000)).all()
