"""stoker inspect: the facts, in text and JSON, and the exit code for bad files."""

import base64
import io
import json
import os
import re

import numpy as np
import pytest
from conftest import write_png, write_wav
from PIL import Image


def facts(done):
    return json.loads(done.stdout)


def test_counts_classes_media_and_sizes_are_those_of_the_files(stoker, sounds):
    done = stoker("inspect", "data", "--json")
    found = facts(done)
    sizes = sorted(os.path.getsize(path) for path in sounds.rglob("*.wav"))
    assert done.returncode == 0
    assert found["samples"] == 40 and found["total_bytes"] == sum(sizes)
    assert found["classes"] == [{"name": "cat", "count": 30}, {"name": "dog", "count": 10}]
    assert found["media"] == {"wav": 40}
    assert (found["sizes"]["min"], found["sizes"]["max"]) == (sizes[0], sizes[-1])
    assert found["sizes"]["median"] == sizes[20] and found["sizes"]["p99"] == sizes[39]
    assert found["sizes"]["mean"] == pytest.approx(np.mean(sizes))
    assert sum(bucket["count"] for bucket in found["size_histogram"]) == 40


def test_sound_is_described(stoker, sounds):
    write_wav(sounds / "dog" / "stereo.wav", frames=4410, rate=44100, channels=2)
    sound = facts(stoker("inspect", "data", "--json"))["examined"]["audio"]
    assert sound["count"] == 41
    assert sound["rates_hz"] == {"16000": 40, "44100": 1} and sound["channels"] == {"1": 40, "2": 1}
    assert sound["seconds"] == [pytest.approx(400 / 16000), pytest.approx(0.1)]


def test_pictures_are_described(stoker, pictures):
    write_png(pictures / "a" / "deep.png", width=20, height=30, bits=16)
    picture = facts(stoker("inspect", "pictures", "--json"))["examined"]["images"]
    assert picture["width"] == [8, 20] and picture["height"] == [6, 30]
    assert picture["channels"] == {"1": 1, "3": 12} and picture["bits"] == {"16": 1, "8": 12}


def test_pictures_in_a_pack_are_decoded_and_described(stoker, pictures, tmp_path):
    assert stoker("pack", pictures, tmp_path / "x.pack").returncode == 0
    loose, packed = (json.loads(stoker("inspect", place, "--json").stdout)["examined"] for place in (pictures, tmp_path / "x.pack"))
    assert packed["images"] == loose["images"]


def test_a_bare_array_is_described(stoker, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((50, 3, 4), np.float32))
    found = facts(stoker("inspect", "x.npy", "--json"))
    assert found["samples"] == 50 and found["total_bytes"] == 50 * 3 * 4 * 4
    assert found["array"] == "float32 [50, 3, 4]"


def test_text_has_the_same_facts_and_a_picture_of_the_sizes(stoker, sounds):
    done = stoker("inspect", "data")
    assert (done.returncode, done.stderr) == (0, "")
    text = done.stdout
    assert text.startswith("data: 40 samples, ")
    assert "2; least 10 (dog), most 30 (cat)" in text and "cat 30, dog 10" in text
    assert re.search(r"media +wav", text) and re.search(r"bad files +none", text)
    drawn = re.findall(r"^ +[\d.]+ \w+ - [\d.]+ \w+ +#+ (\d+)$", text, re.M)
    assert sum(map(int, drawn)) == 40
    assert max(map(len, text.splitlines())) <= 80


def test_files_of_like_size_get_fewer_bars(stoker, tmp_path):
    for i in range(10):
        write_wav(tmp_path / "like" / f"{i}.wav", frames=1050 + i)
    text = stoker("inspect", "like").stdout
    assert re.findall(r"^ +(.+?) +#+ (\d+)$", text, re.M) == [("2.1 KiB", "10")]
    for i in range(10):
        write_wav(tmp_path / "near" / f"{i}.wav", frames=1050 + 12 * i)
    bounds = re.findall(r"^ +([\d.]+ \w+) - ([\d.]+ \w+) +#* ?\d+$", stoker("inspect", "near").stdout, re.M)
    assert 1 < len(bounds) < 8 and all(least != most for least, most in bounds)


def test_bad_files_are_named_with_the_cause_and_the_exit_code_is_1(stoker, sounds):
    whole = (sounds / "cat" / "000.wav").read_bytes()
    (sounds / "cat" / "zero.wav").write_bytes(b"")
    (sounds / "cat" / "cut.wav").write_bytes(whole[:30])
    (sounds / "dog" / "garbage.wav").write_bytes(b"this is no sound at all, whatever its name says")
    done = stoker("inspect", "data")
    assert done.returncode == 1
    assert re.search(r"bad files +3\n", done.stdout)
    for name in ("cat/zero.wav: truncated: the file is empty", "cat/cut.wav: ", "dog/garbage.wav: unsupported: not a JPEG, PNG, WebP, WAV, FLAC, NPY or NPZ file"):
        assert f"    {name}" in done.stdout
    found = stoker("inspect", "data", "--json")
    assert found.returncode == 1
    bad = facts(found)["examined"]["bad_files"]
    assert [entry["name"] for entry in bad] == ["cat/cut.wav", "cat/zero.wav", "dog/garbage.wav"]
    assert all(entry["cause"] for entry in bad)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file_is_bad_and_named(stoker, sounds):
    (sounds / "cat" / "000.wav").chmod(0)
    done = stoker("inspect", "data")
    assert done.returncode == 1
    assert "cat/000.wav: Permission denied" in done.stdout


def test_a_mislabelled_file_is_decoded_by_content_and_mentioned(stoker, pictures):
    (pictures / "a" / "00.png").rename(pictures / "a" / "00.jpg")
    done = stoker("inspect", "pictures")
    assert done.returncode == 0
    assert "1 file: png inside, named as jpeg" in done.stdout


def test_a_sample_of_1000_is_read_unless_everything_is_asked_for(stoker, tmp_path):
    write_wav(tmp_path / "one.wav", frames=10)
    (tmp_path / "many").mkdir()
    for i in range(1100):
        os.link(tmp_path / "one.wav", tmp_path / "many" / f"{i:04}.wav")
    some, everything = facts(stoker("inspect", "many", "--json")), facts(stoker("inspect", "many", "--decode-all", "--json"))
    assert some["examined"]["samples"] == 1000 and some["examined"]["all"] is False
    assert everything["examined"]["samples"] == 1100 and everything["examined"]["all"] is True


def test_an_empty_file_outside_the_sample_is_found_all_the_same(stoker, tmp_path):
    write_wav(tmp_path / "one.wav", frames=10)
    (tmp_path / "many").mkdir()
    for i in range(2500):
        os.link(tmp_path / "one.wav", tmp_path / "many" / f"{i:04}.wav")
    (tmp_path / "many" / "0001.wav").unlink()  # every 2.5th is read: 0, 2, 5, ...
    (tmp_path / "many" / "0001.wav").write_bytes(b"")
    done = stoker("inspect", "many", "--json")
    assert done.returncode == 1
    assert [bad["name"] for bad in facts(done)["examined"]["bad_files"]] == ["0001.wav"]


def test_a_subset_is_the_same_for_the_same_seed(stoker, sounds):
    first, again, other = (facts(stoker("inspect", "data", "--subset", "7", "--subset-seed", seed, "--json"))
                           for seed in (1, 1, 2))
    assert first["samples"] == 7
    assert first["total_bytes"] == again["total_bytes"] and first["classes"] == again["classes"]
    assert first["total_bytes"] != other["total_bytes"]


def test_labels_come_from_the_named_column(stoker, sounds, tmp_path):
    rows = "".join(f"cat/{i:03}.wav,{'ab'[i % 2]},{i / 2}\n" for i in range(10))
    (sounds / "index.csv").write_text("path,group,score\n" + rows)
    grouped = facts(stoker("inspect", "data/index.csv", "--label", "group", "--json"))
    assert [entry["name"] for entry in grouped["classes"]] == ["a", "b"]
    scored = facts(stoker("inspect", "data/index.csv", "--label", "score", "--json"))
    assert scored["labels"] == "real numbers"
    missing = stoker("inspect", "data/index.csv", "--label", "grup")
    assert missing.returncode == 2 and "grup" in missing.stderr


def test_the_number_of_classes_listed_is_chosen(stoker, pictures):
    assert "a 4, b 4, c 4" in stoker("inspect", "pictures").stdout
    assert "a 4, ... (--classes N shows more)" in stoker("inspect", "pictures", "--classes", "1").stdout


def test_arrays_of_an_npz_that_are_not_read_are_named(stoker, tmp_path):
    for number in range(3):
        np.savez(tmp_path / f"{number}.npz", image=np.zeros(4), mask=np.zeros(2), meta=np.ones(1))
    np.savez(tmp_path / "one.npz", image=np.zeros(4))
    done = stoker("inspect", ".")
    assert done.returncode == 0
    assert "3 .npz files with several arrays (`image`, `mask`, `meta`): a loader needs --arrays" in " ".join(done.stdout.split())
    found = facts(stoker("inspect", ".", "--json"))["examined"]["npz_members"]
    assert found == [{"read": "image", "not_read": ["mask", "meta"], "files": 3}]


def test_files_that_an_index_names_and_nobody_has_are_bad_files(stoker, tmp_path):
    for number in range(3):
        write_wav(tmp_path / "data" / f"{number}.wav")
    (tmp_path / "data" / "index.csv").write_text("path,label\n0.wav,0\nx.wav,1\n1.wav,2\n2.wav,3\ny.wav,4\n")
    done = stoker("inspect", "data/index.csv", "--json")
    found = facts(done)
    assert done.returncode == 1 and found["samples"] == 5
    assert [(bad["index"], bad["name"]) for bad in found["examined"]["bad_files"]] == [(1, "x.wav"), (4, "y.wav")]
    assert all("No such file" in bad["cause"] for bad in found["examined"]["bad_files"])
    assert any("2 of 5 files are missing; the first: no such file: `x.wav`" in note for note in found["notes"])


def test_a_volume_is_shown_with_a_picture_of_its_middle_slice(stoker, tmp_path):
    values = np.zeros((9, 64, 64), np.int16)
    values[4, :, 32:] = 500
    np.save(tmp_path / "v.npy", values)
    done = stoker("inspect", "v.npy", "--volume")
    assert done.returncode == 0, done.stderr
    assert "9 x 64 x 64 (z, y, x) int16" in done.stdout and "4 of 9" in done.stdout
    assert "@" * 20 in done.stdout
    found = json.loads(stoker("inspect", "v.npy", "--volume", "--json").stdout)
    assert found["volumes"][0]["shape"] == [9, 64, 64] and found["volumes"][0]["is_plain"]


def test_a_page_shows_the_middle_slice_and_the_size_of_chunks_in_files(stoker, tmp_path):
    zarr = tmp_path / "v.zarr"
    zarr.mkdir()
    (zarr / ".zarray").write_text(json.dumps({"zarr_format": 2, "shape": [3, 32, 40], "chunks": [3, 32, 20], "dtype": "|u1", "compressor": None,
                                              "filters": None, "fill_value": 0, "order": "C"}))
    plane = np.arange(32 * 20, dtype=np.uint16).reshape(32, 20) // 3
    for name in ("0.0.0", "0.0.1"):
        (zarr / name).write_bytes(np.stack([plane] * 3).astype(np.uint8).tobytes())
    done = stoker("inspect", "v.zarr", "--html", "page.html")
    assert done.returncode == 0, done.stderr
    assert "3.8 KiB on disk, 3.8 KiB in memory: 1.00 to 1" in done.stdout and "written: page.html" in done.stdout
    page = (tmp_path / "page.html").read_text()
    image = Image.open(io.BytesIO(base64.b64decode(page.partition("base64,")[2].partition('"')[0])))
    assert image.size == (40, 32) and "3 x 32 x 40" in page and "1.00 to 1" in page
    pixels = np.asarray(image)
    assert (pixels[:, :20] == pixels[:, 20:]).all() and pixels[0, 0] == 0 and pixels.max() == 65535
    assert stoker("inspect", "v.zarr", "--html", "page.html").returncode == 0, "its own page is written over"
    (tmp_path / "mine.html").write_text("mine")
    refused = stoker("inspect", "v.zarr", "--html", "mine.html")
    assert refused.returncode == 2 and "something else is there" in refused.stderr
    np.save(tmp_path / "v.npy", plane)
    refused = stoker("inspect", "v.npy", "--html", "page.html")
    assert refused.returncode == 2 and "`--html` is for volumes" in refused.stderr


def test_all_volumes_of_a_csv_are_shown_and_bad_ones_named(stoker, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((4, 8, 8), np.uint8))
    (tmp_path / "volumes.csv").write_text("image\na.npy\nabsent.npy\n")
    done = stoker("inspect", "volumes.csv", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1 and len(found["volumes"]) == 1 and "absent.npy" in found["bad_files"][0]["name"]
    refused = stoker("inspect", "volumes.csv", "--subset", "3")
    assert refused.returncode == 2 and "`--subset` does not go with volumes" in refused.stderr
