"""Data sets on a real S3 server: the same samples, labels, ids and batches as the folder they were copied from."""

import io
import json
import os
import subprocess
import tarfile
import wave

import numpy as np
import pytest

import stoker

ODD = ["a b", "plus+", "per%cent", "quo'te", "eq=al", "amp&ersand", "semi;colon:at@", "dollar$", "star*", "paren(the)ses!", "comma,", "til~de",
       "üñï-日本語", "%20", "..dots..", "two  spaces", "qu?estion#hash", 'dou"ble', "[brackets]{}^`|<>"]


def wav(seed, frames=200):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(np.random.default_rng(seed).integers(-20000, 20000, size=frames, dtype=np.int16).tobytes())
    return out.getvalue()


def make_folder(root, names):
    for seed, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(wav(seed))
    return root


def batches(source, epochs=1, **options):
    """Everything that a loader gives, as values that can be compared."""
    taken = []
    with stoker.Loader(source, batch_size=16, shuffle=True, seed=7, output="numpy", cache_dir=False, **options) as loader:
        for _ in range(epochs):
            for batch in loader:
                taken.append((np.asarray(batch.data).tobytes(), np.asarray(batch.labels).tolist(), np.asarray(batch.ids).tolist(), list(batch.names)))
    return taken


@pytest.fixture
def run(binary):
    def run(*words, **options):
        return subprocess.run([binary, *map(str, words)], capture_output=True, text=True, timeout=300, check=False, **options)

    return run


def test_odd_keys_give_the_batches_of_the_folder(store, tmp_path):
    folder = make_folder(tmp_path / "data", [f"class {i % 3}/{name}.wav" for i, name in enumerate(ODD)] + ["class 0-/x.wav", "class 0/deep/er/y.wav"])
    address = store.upload(folder, "odd pre+fix")
    store.put("odd pre+fix/class 0/", b"")
    assert batches(address, epochs=2) == batches(folder, epochs=2)
    assert batches(address + "/") == batches(folder)


def test_a_key_of_1024_bytes_is_read(store, tmp_path):
    prefix = "/".join(["x" * 200] * 4)
    name = f"k/{'y' * (1024 - len(store.prefix) - len(prefix) - 8)}.wav"
    assert len(f"{store.prefix}/{prefix}/{name}") == 1024
    store.put(f"{prefix}/{name}", wav(1))
    assert [name for batch in batches(store.address(prefix)) for name in batch[3]] == [name]


@pytest.mark.slow
def test_more_keys_than_a_page_has_are_all_listed(store, tmp_path, run):
    names = [f"c{i % 7}/{i:05}.wav" for i in range(1100)]
    store.put_all({f"many/{name}": wav(0, 10) for name in names})
    seen = [name for batch in batches(store.address("many")) for name in batch[3]]
    assert sorted(seen) == sorted(names)
    done = run("load", store.address("many"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == len(names)


def test_an_index_a_pack_and_shards_are_found_by_the_same_names(store, tmp_path, run):
    folder = make_folder(tmp_path / "data", [f"{'ab'[i % 2]}/{i}.wav" for i in range(40)])
    (folder / "index.csv").write_text("path,label,age\n" + "".join(f"{'ab'[i % 2]}/{i}.wav,{'xy'[i % 2]},{i}\n" for i in range(40)))
    packed = run("pack", folder, tmp_path / "data.pack")
    assert packed.returncode == 0, packed.stderr
    for shard in range(2):
        with tarfile.open(tmp_path / f"s-{shard}.tar", "w") as tar:
            for i in range(shard, 40, 2):
                tar.add(folder / f"{'ab'[i % 2]}/{i}.wav", f"{i}.wav")
    store.upload(folder, "set")
    store.upload(tmp_path / "data.pack", "data.pack")
    for shard in range(2):
        store.put(f"s-{shard}.tar", (tmp_path / f"s-{shard}.tar").read_bytes())
    assert batches(store.address("set/index.csv")) == batches(folder / "index.csv")
    assert batches(store.address("data.pack")) == batches(tmp_path / "data.pack")
    assert batches(store.address("s-{0..1}.tar")) == batches(tmp_path / "s-{0..1}.tar")


@pytest.mark.parametrize("sharded", [False, True], ids=["chunks", "shards"])
def test_patches_of_a_zarr_volume_are_those_of_the_folder(store, tmp_path, sharded):
    zarr = pytest.importorskip("zarr")
    random = np.random.default_rng(3)
    for name, array in (("image", random.integers(0, 4096, (40, 90, 100), dtype=np.uint16)), ("mask", random.integers(0, 3, (40, 90, 100), dtype=np.uint8))):
        zarr.create_array(tmp_path / "v" / f"{name}.zarr", data=array, chunks=(10, 30, 50), shards=(20, 90, 100) if sharded else None)
    address = store.upload(tmp_path / "v", "volumes")

    def patches(root, **options):
        source = stoker.Volumes([(f"{root}/image.zarr", f"{root}/mask.zarr")], patch=(12, 40, 40), samples=60)
        with stoker.Loader(source, batch_size=4, seed=7, output="numpy", cache_dir=tmp_path / "cache", **options) as loader:
            taken = [(batch.image.tobytes(), batch.mask.tobytes(), batch.coords.tolist()) for _ in range(2) for batch in loader]
            return taken, loader.stats()
    for shuffle in (True, "blocks"):
        local, _ = patches(tmp_path / "v", shuffle=shuffle)
        for options in ({}, {"memory_limit": "24MB"}, {"cache_limit": "50MB"}, {"num_workers": 0}):
            remote, stats = patches(address, shuffle=shuffle, **options)
            assert remote == local, options
    assert stats["fetch"]["bytes"] > 0


def test_an_object_that_changed_is_named_and_the_others_come(store, tmp_path):
    folder = make_folder(tmp_path / "data", [f"a/{i}.wav" for i in range(20)])
    address = store.upload(folder, "set")
    with stoker.Loader(address, batch_size=4, on_error="skip", cache_dir=False) as loader:
        store.put("set/a/7.wav", wav(99))
        names = [name for batch in loader for name in batch.names]
        assert "a/7.wav" not in names
        assert len(names) == 19
        assert "it changed since it was listed" in loader.errors[0].cause


@pytest.mark.parametrize("words, hint", [
    (dict(AWS_SECRET_ACCESS_KEY="wrong-secret-value"), "the secret key does not belong to the access key"),
    (dict(AWS_ACCESS_KEY_ID="nobody"), "the keys come from the environment"),
    (dict(AWS_NO_SIGN_REQUEST="yes"), "the bucket is not public"),
])
def test_refused_requests_say_what_to_do_and_no_secret(store, run, words, hint):
    store.put("set/a.wav", wav(1))
    done = run("load", store.address("set"), "--json", env={**os.environ, **words})
    assert done.returncode == 2
    assert hint in done.stderr
    for secret in ("wrong-secret-value", os.environ["AWS_SECRET_ACCESS_KEY"]):
        assert secret not in done.stdout + done.stderr


def test_wrong_addresses_say_what_is_near(store, run):
    store.put("data/train/a.wav", wav(1))
    for address, text in [(store.address("data/trian"), f"did you mean `{store.address('data/train')}`?"),
                          (store.address("data/train/a.wav"), "is one object"),
                          ("s3://no-such-bucket-here/x", "there is no bucket `no-such-bucket-here`"),
                          ("s3://", "it names no bucket")]:
        done = run("load", address)
        assert done.returncode == 2
        assert text in done.stderr


def test_the_program_says_that_it_reads_s3(run):
    assert "s3://" in run("--version").stdout


@pytest.mark.slow
def test_an_epoch_survives_a_server_that_is_killed_and_started_again(weed, tmp_path, monkeypatch):
    from conftest import ACCESS, SECRET, Server, Store

    folder = make_folder(tmp_path / "data", [f"a/{i:03}.wav" for i in range(400)])
    (tmp_path / "weed").mkdir()
    server = Server(weed, tmp_path / "weed", ACCESS, SECRET)
    server.start()
    try:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        address = Store(server, "restarted").upload(folder, "set")
        with stoker.Loader(address, batch_size=4, prefetch_factor=1, cache_dir=False, memory_limit="16MB") as loader:
            names = []
            for step, batch in enumerate(loader):
                names += batch.names
                if step == 20:
                    server.stop()
                    server.start()
            assert not loader.errors
        assert sorted(names) == [f"a/{i:03}.wav" for i in range(400)]
    finally:
        server.stop()
