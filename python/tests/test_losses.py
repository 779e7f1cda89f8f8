"""What cannot be listed: damaged tar shards, folders that may not be read. `raise` names it; the other policies go on, and list it."""

import contextlib
import io
import json
import os
import random
import stat
import tarfile
import tempfile

import numpy
import pytest
from conftest import encoded_picture

import stoker

NOBODY = 65534


def load(source=None, **options):
    return stoker.Loader(source, **{"output": "numpy", "batch_size": 4, "cache_dir": False, "copy": True, **options})


def names(loader):
    return [name for batch in loader for name in batch.names]


def write_shard(path, first, count=10):
    with tarfile.open(path, "w") as archive:
        for number in range(first, first + count):
            for ending, content in ((".png", encoded_picture(number)), (".cls", str(number).encode())):
                member = tarfile.TarInfo(f"{number:03}{ending}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


@pytest.fixture
def shards(tmp_path):
    """Three shards of ten labelled pictures; in the second the header of 013.png is bad. Gives the address, and the byte."""
    for number in range(3):
        write_shard(tmp_path / f"s-{number}.tar", 10 * number)
    with tarfile.open(tmp_path / "s-1.tar") as archive:
        at = archive.getmember("013.png").offset
    with open(tmp_path / "s-1.tar", "r+b") as file:
        file.seek(at)
        file.write(b"X")
    return str(tmp_path / "s-{0..2}.tar"), at


def test_raise_names_shard_and_byte(shards):
    address, at = shards
    with pytest.raises(stoker.Error, match=rf"s-1\.tar` at byte {at}: a header's checksum is wrong") as caught:
        load(address)
    assert caught.value.kind == "corrupt" and 'on_error="skip"' in caught.value.hint


@pytest.mark.parametrize("policy", ["skip", "replace", "zero"])
def test_the_other_policies_go_on_with_the_rest(shards, policy):
    address, at = shards
    with load(address, on_error=policy) as loader:
        batches = list(loader)
        assert [name for batch in batches for name in batch.names] == [f"{number:03}.png" for number in range(30) if number != 13]
        assert [int(label) for batch in batches for label in batch.labels] == [number for number in range(30) if number != 13]
        [error] = loader.errors
        assert (error.stage, error.action, error.offset) == ("list", "skip", at) and error.name.endswith("s-1.tar")
        assert "a header's checksum is wrong" in error.cause and "bytes are lost" in error.cause
        assert (error.index, error.id, error.epoch, error.position) == (None, None, None, None)
        assert f"s-1.tar` at byte {at}: " in str(error) and loader.stats()["errors"] == 1


def test_losses_are_listed_once_and_saved(shards, tmp_path):
    address, at = shards
    with load(address, on_error="skip") as loader:
        list(loader), list(loader)
        errors = loader.errors
    assert len(errors) == 1
    errors.save(tmp_path / "errors.json")
    errors.save(tmp_path / "errors.csv")
    [saved] = json.loads((tmp_path / "errors.json").read_text())
    assert saved["offset"] == at and saved["index"] is None


def test_losses_count_against_max_errors(shards, tmp_path):
    address, _ = shards
    with load(address, on_error="skip", max_errors=1) as loader:
        assert len(names(loader)) == 29
    with open(tmp_path / "s-2.tar", "r+b") as file:
        file.write(b"X")
    with pytest.raises(stoker.Error, match="2 parts of the data set could not be listed, more than max_errors=1"):
        load(address, on_error="skip", max_errors=1)


def test_every_rank_and_every_run_sees_the_same_samples(shards):
    address, _ = shards

    def run(**options):
        with load(address, on_error="skip", shuffle=True, seed=3, **options) as loader:
            return names(loader)

    whole = run(batch_size=4)
    assert run(batch_size=4, num_workers=1) == whole
    parts = [run(batch_size=2, rank=rank, world_size=2) for rank in range(2)]
    assert sorted(parts[0] + parts[1]) == sorted(whole)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_headers_never_give_a_wrong_sample(tmp_path, seed):
    """Whatever three headers are overwritten with: what comes out has its own label and pixels, and at most three samples do not come out."""
    write_shard(tmp_path / "a.tar", 0, 20)
    with load(tmp_path / "a.tar", batch_size=20) as loader:
        whole = next(iter(loader))
    with tarfile.open(tmp_path / "a.tar") as archive:
        headers = [member.offset for member in archive.getmembers()]
    chance = random.Random(seed)
    content = bytearray((tmp_path / "a.tar").read_bytes())
    for _ in range(3):
        at, length = chance.randrange(512), chance.choice([1, 8, 512])
        begin = chance.choice(headers) + at
        end = min(begin + length, begin - at + 512)
        content[begin:end] = bytes(chance.choice([0, 0x37, 0xff]) for _ in range(end - begin))
    (tmp_path / "a.tar").write_bytes(content)
    with load(tmp_path / "a.tar", on_error="skip", batch_size=20) as loader:
        batch = next(iter(loader))
        assert batch.size >= 17 and len(loader.errors) >= min(1, 20 - batch.size)
        for row, name in enumerate(batch.names):
            number = int(name[:3])
            assert name == f"{number:03}.png" and batch.labels[row] == number
            numpy.testing.assert_array_equal(batch.data[row], whole.data[number])


@contextlib.contextmanager
def open_to_nobody():
    """A folder that a user without rights may enter, and this process as that user while the block runs."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield folder


@contextlib.contextmanager
def as_nobody():
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def write_tree(folder):
    for number in range(6):
        os.makedirs(f"{folder}/{'abc'[number % 3]}", exist_ok=True)
        with open(f"{folder}/{'abc'[number % 3]}/{number}.png", "wb") as file:
            file.write(encoded_picture(number))


@pytest.mark.parametrize("policy", ["skip", "replace", "zero"])
def test_a_sub_folder_that_may_not_be_read_is_named_and_the_rest_is_loaded(policy):
    with open_to_nobody() as folder:
        write_tree(folder)
        os.chmod(f"{folder}/b", 0)
        with as_nobody():
            with pytest.raises(PermissionError, match=f"{folder}/b"):
                load(folder)
            with load(folder, on_error=policy) as loader:
                batches = list(loader)
                assert [name for batch in batches for name in batch.names] == ["a/0.png", "a/3.png", "c/2.png", "c/5.png"]
                assert [int(label) for batch in batches for label in batch.labels] == [0, 0, 2, 2]
                assert loader.classes == ["a", "b", "c"]
                [error] = loader.errors
                assert (error.name, error.stage, error.offset) == ("b", "list", None) and "Permission denied" in error.cause
        os.chmod(f"{folder}/b", 0o755)


def test_a_file_that_may_not_be_read_is_named_and_the_rest_is_loaded():
    with open_to_nobody() as folder:
        write_tree(folder)
        os.chmod(f"{folder}/b/1.png", 0)
        with as_nobody():
            with load(folder) as loader, pytest.raises(PermissionError, match="b/1.png"):
                list(loader)
            with load(folder, on_error="skip") as loader:
                assert len(names(loader)) == 5
                assert [(error.name, error.stage) for error in loader.errors] == [("b/1.png", "read")]


def test_a_listed_file_in_a_folder_that_may_not_be_entered_is_named_and_the_rest_is_loaded():
    with open_to_nobody() as folder:
        write_tree(folder)
        samples = [f"{folder}/{'abc'[number % 3]}/{number}.png" for number in range(6)]
        os.chmod(f"{folder}/b", stat.S_IRUSR)
        with as_nobody():
            with pytest.raises(PermissionError, match="b/1.png"):
                load(samples=samples)
            with load(samples=samples, on_error="skip") as loader:
                assert names(loader) == [path for path in samples if "/b/" not in path]
                assert [error.name for error in loader.errors] == [path for path in samples if "/b/" in path]
                assert all(error.stage == "read" and "Permission denied" in error.cause for error in loader.errors)
        os.chmod(f"{folder}/b", 0o755)


def write_with_missing_files(folder, monkeypatch):
    """Ten rows, of which 3 and 7 name no file; the same as an index.csv and as a list."""
    monkeypatch.chdir(folder)
    listed = [f"{number}.png" for number in range(10)]
    for number, name in enumerate(listed):
        if number not in (3, 7):
            (folder / name).write_bytes(encoded_picture(number))
    (folder / "index.csv").write_text("path,label\n" + "".join(f"{name},{number}\n" for number, name in enumerate(listed)))
    return [{"source": "index.csv"}, {"samples": [(name, number) for number, name in enumerate(listed)]}]


def test_raise_names_the_first_missing_file_and_counts_them(tmp_path, monkeypatch):
    for source in write_with_missing_files(tmp_path, monkeypatch):
        with pytest.raises(FileNotFoundError, match="no such file: `3.png`, and 1 more of 10 are missing") as caught:
            load(**source)
        assert 'on_error="skip"' in caught.value.hint


@pytest.mark.parametrize("storage", ["buffered", "direct", "mmap", "ram"])
@pytest.mark.parametrize("policy", ["skip", "replace", "zero"])
def test_a_missing_file_is_a_bad_sample_and_the_others_keep_their_places(tmp_path, monkeypatch, policy, storage):
    for source in write_with_missing_files(tmp_path, monkeypatch):
        options = dict(source, storage=storage, shuffle=True, seed=5)
        with load(**options, on_error=policy) as loader:
            seen = list(loader)
            errors, notes, first_epoch = loader.errors, loader.notes, [int(index) for batch in seen for index in batch.indices]
            list(loader)
            assert loader.stats()["errors"] == 4, "in every epoch"
        assert sorted((error.name, error.index, error.stage, error.action) for error in errors) == [
            ("3.png", 3, "read", policy), ("7.png", 7, "read", policy)]
        assert all("No such file" in error.cause for error in errors) and any("2 of 10 files are missing" in note for note in notes)
        for number in (3, 7):
            (tmp_path / f"{number}.png").write_bytes(encoded_picture(number))
        with load(**options) as loader:
            whole = list(loader)
        order, ids = ([int(value) for batch in whole for value in getattr(batch, word)] for word in ("indices", "ids"))
        assert {error.id for error in errors} == {ids[order.index(number)] for number in (3, 7)}
        if policy == "skip":
            assert first_epoch == [index for index in order if index not in (3, 7)]
        if policy == "zero":
            assert [bool(valid) for batch in seen for valid in batch.valid] == [index not in (3, 7) for index in order]
        for number in (3, 7):
            (tmp_path / f"{number}.png").unlink()


def test_missing_files_count_against_max_errors(tmp_path, monkeypatch):
    for source in write_with_missing_files(tmp_path, monkeypatch):
        with load(**source, on_error="skip", max_errors=2) as loader:
            assert len(names(loader)) == 8
        with load(**source, on_error="skip", max_errors=1) as loader, pytest.raises(stoker.Error, match="more than max_errors=1"):
            list(loader)


def test_a_list_of_which_nothing_exists_is_refused_under_every_policy(tmp_path):
    for policy in ("raise", "skip", "replace", "zero"):
        with pytest.raises(FileNotFoundError, match="no such file: .*, and 1 more of 2 are missing"):
            load(samples=[tmp_path / "a.png", tmp_path / "b.png"], on_error=policy)


def test_what_is_not_a_file_is_named_and_never_opened(tmp_path):
    (tmp_path / "a.png").write_bytes(encoded_picture(0))
    os.mkfifo(tmp_path / "pipe.png")
    for source in ({"samples": [tmp_path / "a.png", tmp_path / "pipe.png"]}, {"samples": ["/dev/zero"]}):
        for policy in ("raise", "skip"):
            with pytest.raises(FileNotFoundError, match="is a (pipe|device), not a file"):
                load(**source, on_error=policy)
    (tmp_path / "index.csv").write_text("path\na.png\npipe.png\n")
    with pytest.raises(FileNotFoundError, match="index.csv line 3: `pipe.png` is a pipe, not a file"):
        load(tmp_path / "index.csv", on_error="skip")
    with load(tmp_path) as loader:
        assert names(loader) == ["a.png"] and any("`pipe.png`" in note for note in loader.notes)


def test_a_link_that_leads_to_a_pipe_by_now_is_a_bad_sample(tmp_path):
    """Opening a pipe would wait for a writer for ever."""
    (tmp_path / "data").mkdir()
    (tmp_path / "target").write_bytes(encoded_picture(0))
    (tmp_path / "data" / "a.png").write_bytes(encoded_picture(1))
    (tmp_path / "data" / "b.png").symlink_to(tmp_path / "target")
    with load(tmp_path / "data", on_error="skip", timeout=60) as loader:
        (tmp_path / "target").unlink()
        os.mkfifo(tmp_path / "target")
        assert names(loader) == ["a.png"]
        assert [error.name for error in loader.errors] == ["b.png"]
