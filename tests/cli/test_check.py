"""stoker check: damage is found and named, a sound pack is sound, and repair changes nothing but the damaged samples."""

import json

import numpy as np
import pytest
from conftest import write_png, write_wav

KINDS = pytest.mark.parametrize("kind", [["--samples", "800"], ["--kind", "encoded"]], ids=["raw", "encoded"])


def make(stoker, *words):
    done = stoker("pack", "data", "x.pack", *words)
    assert done.returncode == 0, done.stderr


def checked(stoker, *words, code=0):
    done = stoker("check", *words, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x40]))


def payload(pack, index):
    row = np.load(pack / "index.npy")[index]
    shard = json.loads((pack / "pack.json").read_text())["shards"][row["shard"]]["name"]
    return pack / shard, int(row["offset"]), int(row["bytes"])


@KINDS
def test_a_sound_pack_is_sound(stoker, sounds, kind):
    make(stoker, *kind)
    found = checked(stoker, "x.pack", "--decode-all")
    assert (found["sound"], found["samples"], found["damaged"], found["broken"], found["notes"]) == (True, 40, [], [], [])
    assert stoker("check", "x.pack").stdout.startswith("x.pack: sound: 40 samples, ")


@KINDS
def test_every_damaged_sample_is_named_and_exits_1(stoker, sounds, tmp_path, kind):
    make(stoker, *kind)
    for index in (3, 17, 39):
        path, offset, size = payload(tmp_path / "x.pack", index)
        flip(path, offset + size // 2)
    found = checked(stoker, "x.pack", code=1)
    assert [bad["name"] for bad in found["damaged"]] == ["cat/003.wav", "cat/017.wav", "dog/039.wav"]
    text = stoker("check", "x.pack").stdout
    assert "x.pack: 3 damaged of 40 samples" in text and "  cat/017.wav: its bytes are not those that were packed" in text


@KINDS
def test_repair_makes_the_damaged_samples_anew_and_nothing_else(stoker, sounds, tmp_path, kind):
    make(stoker, *kind, "--shard-size", "1MiB")
    pack = tmp_path / "x.pack"
    before = np.load(pack / "index.npy")
    names = (pack / "names.txt").read_bytes()
    for index in (3, 17):
        path, offset, _ = payload(pack, index)
        flip(path, offset + 5)
    write_wav(sounds / "cat" / "new.wav")  # not the business of a repair
    found = checked(stoker, "x.pack", "--repair")
    assert found["sound"] and [bad["repaired"] for bad in found["damaged"]] == [True, True]
    assert checked(stoker, "x.pack")["sound"]
    after = np.load(pack / "index.npy")
    for field in ("id", "label", "bytes", "xxh3", "frames", "source_mtime_ns"):
        assert (before[field] == after[field]).all(), field
    assert (pack / "names.txt").read_bytes() == names
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "x.pack"]


def test_what_the_source_no_longer_has_is_said_and_stays_damaged(stoker, sounds, tmp_path):
    make(stoker)
    for index in (3, 4, 5):
        path, offset, _ = payload(tmp_path / "x.pack", index)
        flip(path, offset + 50)
    (sounds / "cat" / "003.wav").unlink()
    write_wav(sounds / "cat" / "004.wav", frames=999)
    found = checked(stoker, "x.pack", "--repair", code=1)
    assert [(bad["repaired"], bad["not_repaired"][:20]) for bad in found["damaged"]] == [
        (False, "the source no longer"), (False, "its file in the sour"), (True, "")]
    again = checked(stoker, "x.pack", code=1)
    assert [bad["name"] for bad in again["damaged"]] == ["cat/003.wav", "cat/004.wav"]


def test_a_source_that_was_moved_can_be_named(stoker, sounds, tmp_path):
    make(stoker)
    path, offset, _ = payload(tmp_path / "x.pack", 3)
    flip(path, offset + 50)
    sounds.rename(tmp_path / "elsewhere")
    done = stoker("check", "x.pack", "--repair")
    assert done.returncode == 2 and "--source" in done.stderr
    assert checked(stoker, "x.pack", "--repair", "--source", "elsewhere")["sound"]


@KINDS
def test_broken_heads_cut_and_missing_shards_are_found_and_repaired(stoker, sounds, tmp_path, kind):
    make(stoker, *kind)
    pack = tmp_path / "x.pack"
    shard, offset, _ = payload(pack, 30)

    def repaired():
        assert not checked(stoker, "x.pack", code=1)["sound"]
        assert checked(stoker, "x.pack", "--repair")["sound"]
        assert checked(stoker, "x.pack")["sound"]
        assert stoker("load", "x.pack", "--transform", "" if "--samples" in kind else "pad:9").returncode == 0
        return payload(pack, 30)[:2]

    flip(shard, 20 if "--samples" in kind else offset - 500)  # in the head of the array, or of a member
    shard, offset = repaired()
    with open(shard, "r+b") as file:
        file.truncate(offset + 3)
    shard, offset = repaired()
    shard.unlink()
    repaired()


@KINDS
def test_a_broken_index_means_that_all_is_made_anew(stoker, sounds, tmp_path, kind):
    make(stoker, *kind)
    flip(tmp_path / "x.pack" / "index.npy", 500)
    found = checked(stoker, "x.pack", code=1)
    assert "index.npy" in found["broken"][0]
    found = checked(stoker, "x.pack", "--repair")
    assert found["sound"] and "rebuilt" in found["notes"][0]
    assert checked(stoker, "x.pack")["samples"] == 40


def test_a_pack_of_a_later_version_is_not_called_damaged(stoker, sounds, tmp_path):
    make(stoker)
    path = tmp_path / "x.pack" / "pack.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    done = stoker("check", "x.pack", "--repair")
    assert done.returncode == 2 and "it is a pack of version 2" in done.stderr


def test_strangers_in_the_folder_are_mentioned(stoker, sounds, tmp_path):
    make(stoker)
    (tmp_path / "x.pack" / "notes.md").write_text("mine")
    assert checked(stoker, "x.pack")["notes"] == ["`notes.md` is no part of the pack"]


def test_files_of_a_folder_are_read_and_with_decode_decoded(stoker, tmp_path):
    for i in range(5):
        write_png(tmp_path / "data" / "a" / f"{i}.png", width=64, height=64, seed=i)
    assert checked(stoker, "data")["sound"] and checked(stoker, "data", "--decode-all")["decoded"]
    (tmp_path / "data" / "a" / "1.png").write_bytes(b"")
    flip(tmp_path / "data" / "a" / "3.png", 5000)
    assert [bad["name"] for bad in checked(stoker, "data", code=1)["damaged"]] == ["a/1.png"]
    found = checked(stoker, "data", "--decode-all", code=1)
    assert [bad["name"] for bad in found["damaged"]] == ["a/1.png", "a/3.png"]
    done = stoker("check", "data", "--repair")
    assert done.returncode == 2 and "it is not a pack" in done.stderr


def test_tars_and_arrays_are_checked_too(stoker, sounds, tmp_path):
    make(stoker)
    assert checked(stoker, "x.pack/data-00000.tar", "--decode-all")["samples"] == 40
    np.save(tmp_path / "x.npy", np.zeros((7, 3)))
    assert checked(stoker, "x.npy")["samples"] == 7


@pytest.mark.parametrize("damage", ["gone", "cut", "zeros"])
def test_pack_json_is_made_again_from_the_rest(stoker, pictures, tmp_path, damage):
    assert stoker("pack", "pictures", "x.pack").returncode == 0
    path = tmp_path / "x.pack" / "pack.json"
    whole = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(whole[:len(whole) // 2] if damage == "cut" else bytes(len(whole)))
    assert stoker("load", "x.pack").returncode == 2
    done = stoker("check", "x.pack")
    assert done.returncode == 1 and "pack.json" in done.stdout and "--repair" in done.stdout
    done = stoker("check", "x.pack", "--repair")
    assert done.returncode == 0 and "pack.json was made again" in done.stdout, done.stdout + done.stderr
    assert stoker("check", "x.pack").returncode == 0
    before, after = json.loads(whole), json.loads(path.read_text())
    for word in ("kind", "count", "fingerprint", "content", "label_kind", "classes", "shards", "files"):
        assert after[word] == before[word]
