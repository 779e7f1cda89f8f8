"""stoker pack: what numpy, tar and WebDataset find in a pack, what a second run changes, and what a kill leaves."""

import json
import os
import random
import shutil
import signal
import subprocess
import tarfile
import time

import numpy as np
import pytest
from conftest import write_png, write_wav

RAW = ["--kind", "raw", "--samples", "800"]


def report(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def packed(stoker, *words):
    return report(stoker("pack", *words, "--json"))


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_numpy_opens_every_array_of_a_raw_pack(stoker, sounds, tmp_path):
    found = packed(stoker, "data", "x.pack", *RAW)
    assert (found["count"], found["added"], found["kind"], found["content"]) == (40, 40, "raw", "int16 [800]")
    pack = tmp_path / "x.pack"
    manifest = json.loads((pack / "pack.json").read_text())
    assert (manifest["schema"], manifest["version"], manifest["count"]) == ("stoker-pack", 1, 40)
    index = np.load(pack / "index.npy")
    names = (pack / "names.txt").read_text().splitlines()
    rows = np.load(pack / "data-00000.npy", mmap_mode="r")
    assert rows.shape == (40, 800) and rows.dtype == np.int16 and rows.offset == 4096
    assert [manifest["classes"][label] for label in index["label"]] == ["cat"] * 30 + ["dog"] * 10
    for row, name, place in zip(rows, names, index):
        expected = np.random.default_rng(int(name[4:7])).integers(-20000, 20000, size=400 + 10 * int(name[4:7]), dtype=np.int16)
        assert place["frames"] == len(expected)
        assert (row[:len(expected)] == expected[:800]).all() and not row[len(expected):].any()
        assert (place["offset"], place["bytes"], place["shard"]) == (4096 + 1600 * names.index(name), 1600, 0)


def test_tar_and_webdataset_open_every_shard_of_an_encoded_pack(stoker, sounds, tmp_path):
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    found = packed(stoker, "data", "x.pack")
    assert (found["kind"], found["content"], found["shards"]) == ("encoded", "wav", 1)
    shard = tmp_path / "x.pack" / "data-00000.tar"
    names = (tmp_path / "x.pack" / "names.txt").read_text().splitlines()
    listed = subprocess.run(["tar", "tf", shard], capture_output=True, text=True, check=True)
    assert listed.stderr == "" and [name for name in listed.stdout.split() if name.endswith(".wav")] == names
    index = np.load(tmp_path / "x.pack" / "index.npy")
    with tarfile.open(shard) as tar:
        members = {member.name: member for member in tar}
        for name, place in zip(names, index):
            assert tar.extractfile(members[name]).read() == (sounds / name).read_bytes()
            assert (members[name].offset_data, members[name].size) == (place["offset"], place["bytes"])
            assert place["offset"] % 512 == 0
    samples = list(webdataset.WebDataset(str(shard), shardshuffle=False))
    assert [sample["__key__"] + ".wav" for sample in samples] == names
    assert [int(sample["cls"]) for sample in samples] == [0] * 30 + [1] * 10
    assert [sample["wav"] for sample in samples] == [(sounds / name).read_bytes() for name in names]


def test_checksums_are_xxh3_of_the_payload(stoker, sounds, tmp_path):
    xxhash = pytest.importorskip("xxhash", reason="xxhash is not installed")
    packed(stoker, "data", "x.pack")
    names = (tmp_path / "x.pack" / "names.txt").read_text().splitlines()
    assert len(names) == 40
    for name, place in zip(names, np.load(tmp_path / "x.pack" / "index.npy"), strict=True):
        assert place["xxh3"] == xxhash.xxh3_64_intdigest((sounds / name).read_bytes())


def test_stoker_reads_shards_that_webdataset_wrote(stoker, sounds, tmp_path):
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    for shard in range(2):
        with webdataset.TarWriter(str(tmp_path / f"shard-{shard:03}.tar")) as sink:
            for i in range(20):
                number = 20 * shard + i
                file = sounds / ("cat" if number < 30 else "dog") / f"{number:03}.wav"
                sink.write({"__key__": f"{number:04}", "wav": file.read_bytes(), "cls": number % 7})
    found = report(stoker("load", "shard-{000..001}.tar", "--batch-size", "8", "--transform", "pad:800", "--json"))
    assert (found["samples"], found["errors"]["count"]) == (40, 0)
    found = report(stoker("inspect", "shard-{000..001}.tar", "--json"))
    assert found["kind"] == "tar"
    again = packed(stoker, "shard-{000..001}.tar", "again.pack", *RAW)
    assert again["count"] == 40
    assert list(np.load(tmp_path / "again.pack" / "index.npy")["label"]) == [n % 7 for n in range(40)]


@pytest.mark.parametrize("storage", ["buffered", "direct", "mmap"])
def test_a_pack_loads_through_every_storage(stoker, sounds, storage):
    packed(stoker, "data", "raw.pack", *RAW)
    packed(stoker, "data", "encoded.pack")
    for words, output in [(["raw.pack"], "int16 [8, 800]"), (["raw.pack", "--transform", "tofloat"], "float32 [8, 800]"),
                          (["encoded.pack", "--transform", "pad:800"], "float32 [8, 800]")]:
        found = report(stoker("load", *words, "--batch-size", "8", "--shuffle", "--storage", storage, "--json"))
        assert (found["samples"], found["output"], found["errors"]["count"]) == (40, output, 0)


def test_pictures_are_resized_once_and_keep_16_bits(stoker, pictures, tmp_path):
    packed(stoker, "pictures", "small.pack", "--kind", "raw", "--size", "4")
    assert np.load(tmp_path / "small.pack" / "data-00000.npy").shape == (12, 4, 4, 3)
    found = report(stoker("load", "small.pack", "--transform", "rrc:3", "--batch-size", "4", "--json"))
    assert found["output"] == "uint8 [4, 3, 3, 3]"
    for i in range(3):
        write_png(tmp_path / "slices" / "a" / f"{i}.png", bits=16, seed=i)
    assert packed(stoker, "slices", "slices.pack", "--kind", "raw")["content"] == "uint16 [6, 8]"
    rows = np.load(tmp_path / "slices.pack" / "data-00000.npy")
    for i in range(3):
        assert (rows[i] == np.random.default_rng(i).integers(0, 65536, size=(6, 8), dtype=np.uint16)).all()


def test_an_array_becomes_a_pack_of_its_rows(stoker, tmp_path):
    rows = np.random.default_rng(1).standard_normal((50, 3, 5)).astype(np.float32)
    np.save(tmp_path / "x.npy", rows)
    assert packed(stoker, "x.npy", "x.pack")["content"] == "float32 [3, 5]"
    assert (np.load(tmp_path / "x.pack" / "data-00000.npy") == rows).all()


def test_a_second_run_says_what_it_added_changed_removed_and_kept(stoker, sounds, tmp_path):
    packed(stoker, "data", "x.pack", *RAW)
    done = stoker("pack", "data", "x.pack", *RAW)
    assert done.stdout.startswith("x.pack: up to date, 40 samples in 1 shard, ")
    write_wav(sounds / "cat" / "new.wav", frames=500, seed=100)
    write_wav(sounds / "cat" / "000.wav", frames=501, seed=101)
    (sounds / "dog" / "039.wav").unlink()
    done = stoker("pack", "data", "x.pack", *RAW)
    assert "1 added, 1 changed, 1 removed, 38 kept" in done.stdout
    shutil.rmtree(tmp_path / "y.pack", ignore_errors=True)
    packed(stoker, "data", "y.pack", *RAW)
    fresh, repacked = np.load(tmp_path / "y.pack" / "index.npy"), np.load(tmp_path / "x.pack" / "index.npy")
    for field in ("id", "label", "xxh3", "frames", "source_mtime_ns"):
        assert (fresh[field] == repacked[field]).all(), field
    assert (tmp_path / "y.pack" / "names.txt").read_bytes() == (tmp_path / "x.pack" / "names.txt").read_bytes()


def test_a_dry_run_says_size_and_time_and_writes_nothing(stoker, sounds, tmp_path):
    done = stoker("pack", "data", "x.pack", *RAW, "--dry-run")
    assert done.returncode == 0 and "would hold about 40 samples" in done.stdout and "packed on trial" in done.stdout
    found = packed(stoker, "data", "x.pack", *RAW, "--dry-run")
    assert found["dry_run"] and found["measured_samples"] == 40 and found["seconds"] > 0
    real = packed(stoker, "data", "x.pack", *RAW)
    assert real["bytes"] <= found["bytes"] <= real["bytes"] + 100_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "x.pack"]


@pytest.mark.parametrize("words, message, hint", [
    (["data"], "`stoker pack` needs SOURCE DEST", "stoker pack data/train train.pack"),
    (["data", "x.pack", "y.pack"], "got a further `y.pack`", "--help"),
    (["data", "x.pack", "--kind", "row"], "there is no kind of pack `row`", "`raw`"),
    (["data", "x.pack", "--kind", "encoded", "--samples", "3"], "an encoded pack", "raw pack"),
    (["data", "x.pack", "--kind", "raw"], "different lengths", "--samples"),
    (["data", "x.pack", "--samples", "9", "--dtype", "int61"], "there is no dtype `int61`", "int16"),
    (["data", "x.pack", "--samples", "9", "--dtype", "uint8"], "cannot give audio as uint8", "int16"),
    (["data", "x.pack", "--samples", "9", "--transform", "rrc:8"], "the same in every epoch", "resample"),
    (["data", "nowhere/x.pack"], "nowhere", ""),
    (["nowhere", "x.pack"], "nowhere", ""),
    (["data", "data"], "", ""),
    (["data", "x.pack", "--on-error", "zero"], "left out (skip)", ""),
    (["data", "x.pack", "--shard-size", "5"], "shard-size must be at least 1MiB", ""),
])
def test_wrong_use_is_one_sentence_and_leaves_nothing(stoker, sounds, tmp_path, words, message, hint):
    done = stoker("pack", *words)
    assert (done.returncode, done.stdout) == (2, "")
    first, *rest = done.stderr.split("\n\nhint: ")
    assert first.startswith("error: ") and message in first and "\n" not in first.rstrip("\n")
    assert hint in "".join(rest)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_a_bad_sample_is_named_or_skipped(stoker, sounds, tmp_path):
    (sounds / "cat" / "007.wav").write_bytes(b"RIFF\0\0\0\0WAVEjunk")
    done = stoker("pack", "data", "x.pack", *RAW)
    assert done.returncode == 2 and "cat/007.wav" in done.stderr and not (tmp_path / "x.pack").exists()
    found = packed(stoker, "data", "x.pack", *RAW, "--on-error", "skip")
    assert found["count"] == 39 and [bad["name"] for bad in found["skipped"]] == ["cat/007.wav"]
    assert json.loads((tmp_path / "x.pack" / "pack.json").read_text())["skipped"] == found["skipped"]


def test_a_pack_of_a_later_version_is_refused_by_number(stoker, sounds, tmp_path):
    packed(stoker, "data", "x.pack", *RAW)
    path = tmp_path / "x.pack" / "pack.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 7'))
    for words in (["load", "x.pack"], ["inspect", "x.pack"], ["pack", "data", "x.pack", *RAW, "--force"]):
        done = stoker(*words)
        assert done.returncode == 2
        assert "cannot open `x.pack`: it is a pack of version 7" in done.stderr and "hint: update stoker" in done.stderr


@pytest.fixture
def many(tmp_path):
    """300 sounds of 40 KB."""
    for i in range(300):
        write_wav(tmp_path / "data" / f"c{i % 4}" / f"{i:03}.wav", frames=20_000, seed=i)
    return tmp_path / "data"


def write_jpeg(path, seed):
    """In place of a sound of that name: a picture of about 25 KB."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (24, 32, 3), np.uint8)
    image.fromarray(pixels).resize((320, 240)).save(path.with_suffix(".jpg"), quality=97, subsampling=0)


@pytest.mark.parametrize("kind", [RAW, []], ids=["raw", "encoded"])
def test_a_file_whose_time_was_set_back_is_packed_again(stoker, sounds, tmp_path, kind):
    packed(stoker, "data", "x.pack", *kind)
    path = sorted((tmp_path / "data").rglob("*.wav"))[7]
    before = path.stat()
    changed = bytearray(path.read_bytes())
    changed[100] ^= 0x11
    path.write_bytes(changed)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    found = packed(stoker, "data", "x.pack", *kind, "--trust-times")
    assert (found["up_to_date"], found["compared"]) == (True, 0)
    found = packed(stoker, "data", "x.pack", *kind)
    assert (found["up_to_date"], found["changed"], found["kept"]) == (False, 1, 39)
    fresh = packed(stoker, "data", "fresh.pack", *kind)
    assert fresh["count"] == 40
    again, first = (np.load(tmp_path / name / "index.npy")["xxh3"] for name in ("x.pack", "fresh.pack"))
    assert (again == first).all()


def test_a_seek_index_is_noted_unless_it_is_declined(stoker, tmp_path):
    for i in range(6):
        write_jpeg(tmp_path / "data" / f"{i}.jpg", seed=i)
    done = stoker("pack", "data", "x.pack", "--seek-index", "off")
    assert done.returncode == 0 and not (tmp_path / "x.pack" / "seek.bin").exists()
    assert packed(stoker, "data", "x.pack", "--seek-index", "off")["up_to_date"]
    found = packed(stoker, "data", "x.pack")
    assert (found["up_to_date"], found["kept"], found["written_bytes"], found["seek_files"]) == (False, 6, 0, 6)
    assert found["seek_bytes"] == (tmp_path / "x.pack" / "seek.bin").stat().st_size
    assert (tmp_path / "x.pack" / "seek.bin").read_bytes()[:7] == b"STKSEEK"
    assert packed(stoker, "data", "x.pack")["up_to_date"]
    assert stoker("check", "x.pack", "--decode-all").returncode == 0


def start(binary, environment, cwd, *words):
    return subprocess.Popen([binary, *words], cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(path, process):
    while not path.exists() and process.poll() is None:
        pass


@pytest.mark.parametrize("kind", [["--samples", "20000"], ["--kind", "encoded"], ["jpeg"]], ids=["raw", "encoded", "jpeg"])
def test_killed_at_any_moment_it_goes_on_and_makes_the_same_pack(stoker, binary, environment, many, tmp_path, kind):
    if kind == ["jpeg"]:  # with a seek.bin
        kind, write = [], write_jpeg
        for path in many.glob("*/*.wav"):
            write_jpeg(path, seed=int(path.stem))
    else:
        def write(path, seed):
            write_wav(path, frames=20_000, seed=seed)
    command = ["pack", "data", "x.pack", "--shard-size", "1MiB", *kind]
    pack, chance = tmp_path / "x.pack", random.Random(42)
    assert stoker(*command).returncode == 0
    first = contents(pack)
    for i in range(0, 300, 7):
        write(many / "c9" / f"{i:03}.wav", seed=1000 + i)  # new, changed and removed ones
    for i in range(0, 300, 11):
        next((many / f"c{i % 4}").glob(f"{i:03}.*")).unlink()
    assert stoker(*command).returncode == 0
    second = contents(pack)
    assert first.keys() != second.keys()

    shutil.rmtree(pack)
    started = time.monotonic()
    assert stoker(*command).returncode == 0
    whole_s = time.monotonic() - started  # kills are spread over what one run takes here
    resumed = 0
    for moment in range(20):
        repack = moment % 2 == 1
        shutil.rmtree(pack)
        if repack:
            pack.mkdir()
            for name, content in first.items():
                (pack / name).write_bytes(content)
        for _ in range(2):  # killed twice, then left alone
            process = start(binary, environment, tmp_path, *command)
            try:
                process.communicate(timeout=chance.uniform(0.05, 1.0) * whole_s)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
            assert not pack.exists() or contents(pack).keys() - {".journal"} in (first.keys(), second.keys(), fresh_names(second))
        done = stoker(*command, "--json")
        assert done.returncode == 0, done.stderr
        resumed += json.loads(done.stdout)["resumed"] > 0
        found = contents(pack)
        if repack:
            assert found == second
        else:
            again = tmp_path / "fresh.pack"
            if not again.exists():
                assert stoker("pack", "data", "fresh.pack", "--shard-size", "1MiB", *kind).returncode == 0
            assert found == contents(again)
        assert sorted(path.name for path in tmp_path.iterdir() if path.name != "fresh.pack") == ["data", "x.pack"]
    assert resumed > 0, "no kill came while shards were being written"
    assert stoker("check", "x.pack", "--decode-all").returncode == 0


def fresh_names(files):
    """Names in a pack that was made in one go: its shards are numbered from 0."""
    shards = sorted(name for name in files if name.startswith("data-"))
    return {name for name in files if not name.startswith("data-")} | {f"data-{i:05}{shards[0][-4:]}" for i in range(len(shards))}


def stopped_while_packing(binary, environment, cwd, folder, *command):
    """A packer that was stopped (SIGSTOP) behind its first look at the disk. A few tries: it may be faster than we are."""
    for _ in range(20):
        process = start(binary, environment, cwd, *command)
        wait_for(folder / ".x.pack.part", process)
        process.send_signal(signal.SIGSTOP)
        if not (folder / "x.pack").exists():
            return process
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=60)
        shutil.rmtree(folder / "x.pack")
    pytest.fail("the packer was always done before it could be stopped")


def test_a_second_packer_of_the_same_pack_is_refused(stoker, binary, environment, many, tmp_path):
    first = stopped_while_packing(binary, environment, tmp_path, tmp_path, "pack", "data", "x.pack", "--shard-size", "1MiB")
    done = stoker("pack", "data", "x.pack", "--shard-size", "1MiB")
    first.send_signal(signal.SIGCONT)
    assert done.returncode == 2
    assert "cannot write `x.pack`: another program is making this pack" in done.stderr
    first.communicate(timeout=60)
    assert first.returncode == 0
    assert packed(stoker, "data", "x.pack")["up_to_date"]


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk], capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_disk_that_is_too_small_is_said_beforehand(stoker, many, small_disk):
    write_wav(many / "c0" / "long.wav", frames=9_000_000)
    done = stoker("pack", "data", "disk/x.pack")
    assert done.returncode == 2 and "it needs" in done.stderr and "its disk has" in done.stderr
    assert list(small_disk.iterdir()) == []


def test_a_disk_that_fills_up_half_way_leaves_nothing_half_made(stoker, binary, environment, many, small_disk, tmp_path):
    command = ["pack", "data", "disk/x.pack", "--shard-size", "1MiB"]
    process = stopped_while_packing(binary, environment, tmp_path, small_disk, *command)
    filler = small_disk / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass
    process.send_signal(signal.SIGCONT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "No space left on device" in said and "run the same command again: it goes on where it stopped" in said
    assert not (small_disk / "x.pack").exists()
    filler.unlink()
    assert packed(stoker, *command[1:])["count"] == 300
    packed(stoker, "data", "y.pack", "--shard-size", "1MiB")
    assert contents(small_disk / "x.pack") == contents(tmp_path / "y.pack")


def test_files_that_an_index_names_and_nobody_has_are_named(stoker, tmp_path):
    for number in range(3):
        write_wav(tmp_path / "data" / f"{number}.wav")
    (tmp_path / "data" / "index.csv").write_text("path,label\n0.wav,0\nx.wav,1\n1.wav,2\n2.wav,3\ny.wav,4\n")
    refused = stoker("pack", "data/index.csv", "x.pack")
    assert refused.returncode == 2 and "line 3: no such file: `x.wav`, and 1 more of 5 are missing" in refused.stderr
    found = packed(stoker, "data/index.csv", "x.pack", "--on-error", "skip")
    assert found["count"] == 3
    skipped = json.loads((tmp_path / "x.pack" / "pack.json").read_text())["skipped"]
    assert [one["name"] for one in skipped] == ["x.wav", "y.wav"] and all("No such file" in one["cause"] for one in skipped)
