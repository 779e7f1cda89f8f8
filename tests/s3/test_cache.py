"""The disk cache, kept listings and kept shard members, on a real S3 server."""

import json
import os
import signal
import subprocess
import sys
import tarfile
import textwrap

import pytest
from test_s3 import make_folder, wav

import stoker


def taken(loader):
    return [(bytes(batch.data), batch.labels.tolist(), batch.ids.tolist(), list(batch.names)) for batch in loader]


def load(source, cache, epochs=1, **options):
    """What the epochs give, and what was asked of the store in each."""
    options = {"cache_limit": "1GB", **options} if cache else options
    with stoker.Loader(source, batch_size=16, shuffle=True, seed=7, output="numpy", copy=True, cache_dir=cache or False, **options) as loader:
        batches = [taken(loader) for _ in range(epochs)]
    return batches, loader.stats()["store"], loader.notes


@pytest.fixture
def data(store, tmp_path):
    """A folder, and the address of its copy."""
    folder = make_folder(tmp_path / "data", [f"class {i % 3}/{i}.wav" for i in range(120)])
    return folder, store.upload(folder, "set")


def test_each_object_is_fetched_once_for_all_epochs_and_runs(data, tmp_path):
    folder, address = data
    right, _, _ = load(folder, None, epochs=3)
    found, figures, notes = load(address, tmp_path / "cache", epochs=3)
    assert found == right
    assert figures["cache_misses"] == 120
    assert figures["requests"] >= 120  # a slow one may be asked for twice
    assert figures["cache_hits"] >= 240
    assert notes == []
    found, figures, _ = load(address, tmp_path / "cache", epochs=3)
    assert found == right
    assert figures["requests"] == 0


def test_processes_share_a_cache_also_after_one_was_killed(data, tmp_path):
    folder, address = data
    right, _, _ = load(folder, None)
    program = textwrap.dedent("""
        import sys, stoker
        with stoker.Loader(sys.argv[1], batch_size=16, shuffle=True, seed=7, output="numpy", cache_dir=sys.argv[2], cache_limit="1GB") as loader:
            for number, batch in enumerate(loader):
                if number == 2 and len(sys.argv) > 3:
                    print("here", flush=True)
                    sys.stdin.read()
        print(loader.stats()["store"]["cache_misses"])
    """)

    def start(*words):
        return subprocess.Popen([sys.executable, "-c", program, address, str(tmp_path / "cache"), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    with start("stop here") as stopped:
        assert stopped.stdout.readline() == "here\n"
        os.kill(stopped.pid, signal.SIGKILL)
    runs = [start() for _ in range(3)]
    misses = [int(run.communicate(timeout=120)[0]) for run in runs]
    assert sum(misses) <= 120
    found, figures, _ = load(address, tmp_path / "cache")
    assert (found, figures["requests"]) == (right, 0)


def test_an_object_that_changed_in_the_store_is_fetched_again(data, store, tmp_path):
    folder, address = data
    load(address, tmp_path / "cache")
    (folder / "class 0/3.wav").write_bytes(wav(999))
    store.put("set/class 0/3.wav", wav(999))
    found, figures, _ = load(address, tmp_path / "cache")
    assert found == load(folder, None)[0]
    assert figures["cache_misses"] == 1


def test_a_damaged_or_cut_file_is_fetched_again(data, tmp_path):
    folder, address = data
    load(address, tmp_path / "cache")
    files = sorted(path for path in (tmp_path / "cache/objects").glob("??/*") if path.is_file())
    assert len(files) == 120
    files[0].write_bytes(files[0].read_bytes()[:50])
    files[1].write_bytes(b"\0" * files[1].stat().st_size)
    found, figures, notes = load(address, tmp_path / "cache")
    assert found == load(folder, None)[0]
    assert figures["cache_misses"] == 2
    assert any("damaged" in note for note in notes)


def test_a_smaller_limit_removes_what_is_above_it(data, tmp_path):
    folder, address = data
    load(address, tmp_path / "cache")
    found, figures, _ = load(address, tmp_path / "cache", cache_limit="100kB")
    assert found == load(folder, None)[0]
    assert figures["cache_misses"] > 0
    kept = [path for path in (tmp_path / "cache/objects").glob("??/*") if path.is_file()]
    assert 0 < len(kept) * 4096 <= 100_000


def test_a_full_disk_changes_nothing_but_the_number_of_requests(data, tmp_path):
    folder, address = data
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "stoker-test", small], capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small disk")
    try:
        found, figures, notes = load(address, small, epochs=2)
    finally:
        subprocess.run(["umount", small], check=True)
    assert found == load(folder, None, epochs=2)[0]
    assert figures["cache_misses"] > 120
    assert any("No space left" in note for note in notes)


def test_a_folder_that_cannot_be_used_is_an_error_with_the_remedy(data, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(stoker.Error, match="cannot cache objects") as caught:
        load(data[1], tmp_path / "file")
    assert "cache_dir" in caught.value.hint
    with pytest.raises(ValueError, match="cache_dir=False keeps nothing"):
        stoker.Loader(data[1], cache_dir=False, cache_limit="1GB")


def test_a_kept_listing_is_used_until_it_is_made_again(data, store, tmp_path):
    folder, address = data
    load(address, tmp_path / "cache", listing="kept")
    store.put("set/class 0/new.wav", wav(5))
    found, _, notes = load(address, tmp_path / "cache", listing="kept")
    assert found == load(folder, None)[0]
    assert any("the listing is" in note for note in notes)
    found, _, _ = load(address, tmp_path / "cache")
    assert sum(len(batch[3]) for batch in found[0]) == 121
    found, _, _ = load(address, tmp_path / "cache", listing="kept")
    assert sum(len(batch[3]) for batch in found[0]) == 121


def test_shards_are_read_once_and_their_members_come_from_the_cache(data, store, tmp_path):
    folder, _ = data
    for shard in range(3):
        with tarfile.open(tmp_path / f"s-{shard}.tar", "w") as tar:
            for i in range(shard, 120, 3):
                tar.add(folder / f"class {i % 3}/{i}.wav", f"{i}.wav")
        store.put(f"s-{shard}.tar", (tmp_path / f"s-{shard}.tar").read_bytes())
    right, _, _ = load(tmp_path / "s-{0..2}.tar", None, epochs=2)
    found, figures, _ = load(store.address("s-{0..2}.tar"), tmp_path / "cache", epochs=2)
    assert found == right
    assert (figures["cache_misses"], figures["requests"]) == (0, 0)  # what opening has read is in the cache
    assert len(list((tmp_path / "cache").glob("members-*.bin"))) == 3
    found, figures, _ = load(store.address("s-{0..2}.tar"), tmp_path / "cache", epochs=2)
    assert (found, figures["requests"]) == (right, 0)


def test_the_first_epoch_of_shards_takes_what_opening_has_read(data, store, tmp_path):
    folder, _ = data
    for shard in range(3):
        with tarfile.open(tmp_path / f"s-{shard}.tar", "w") as tar:
            for i in range(shard, 120, 3):
                tar.add(folder / f"class {i % 3}/{i}.wav", f"{i}.wav")
        store.put(f"s-{shard}.tar", (tmp_path / f"s-{shard}.tar").read_bytes())
    right, _, _ = load(tmp_path / "s-{0..2}.tar", None, epochs=2)
    assert load(store.address("s-{0..2}.tar"), None, epochs=2)[0] == right
    with stoker.Loader(store.address("s-{0..2}.tar"), batch_size=16, shuffle=True, seed=7, output="numpy", copy=True, cache_dir=False) as loader:
        for shard in range(3):
            store.put(f"s-{shard}.tar", b"another object")  # the store refuses requests for the old version
        assert taken(loader) == right[0]
        with pytest.raises(stoker.Error, match="it changed since it was listed"):
            taken(loader)


def test_load_shows_what_each_epoch_asked_of_the_store(data, tmp_path, binary):
    words = [binary, "load", data[1], "--batch-size", "16", "--epochs", "3", "--cache-dir", tmp_path / "cache", "--cache-limit", "1GB"]
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, timeout=120, check=True)
    answer = json.loads(done.stdout)
    assert sum(epoch["store"]["cache_misses"] for epoch in answer["epochs"]) == 120
    assert answer["total"]["store"]["cache_misses"] == 120
    assert answer["epochs"][2]["store"]["cache_misses"] == 0
    shown = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
    assert "cache hits" in shown
    assert "0 requests" in shown
