"""What cannot be listed, as the verbs say it: damaged tar shards, pipes; and values out of range."""

import io
import json
import os
import tarfile

import pytest
from conftest import png_bytes


@pytest.fixture
def shard(tmp_path):
    """x.tar: ten pictures with labels; the header of 3.png is bad. Gives the byte."""
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for number in range(10):
            for ending, content in ((".png", png_bytes(seed=number)), (".cls", str(number).encode())):
                member = tarfile.TarInfo(f"{number}{ending}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    with tarfile.open(tmp_path / "x.tar") as archive:
        at, end = archive.getmember("3.png").offset, archive.getmember("3.cls").offset
    with open(tmp_path / "x.tar", "r+b") as file:
        file.seek(at)
        file.write(b"X")
    return at, end - at


def test_load_raises_or_goes_on(stoker, shard, tmp_path):
    at, size = shard
    done = stoker("load", "x.tar")
    assert done.returncode == 2
    assert f"cannot read `x.tar` at byte {at}: a header's checksum is wrong" in done.stderr and "--on-error skip" in done.stderr
    done = stoker("load", "x.tar", "--on-error", "skip", "--save-errors", "errors.json")
    assert done.returncode == 0 and "errors       1 bad part: list 1" in done.stdout
    answer = json.loads(stoker("load", "x.tar", "--on-error", "skip", "--json").stdout)
    assert answer["dataset"]["samples"] == 9
    [error] = json.loads((tmp_path / "errors.json").read_text())["errors"]
    assert (error["name"], error["stage"], error["offset"], error["index"]) == ("x.tar", "list", at, None)
    assert f"{size:,} bytes are lost" in error["cause"]


def test_inspect_counts_what_is_lost(stoker, shard):
    at, size = shard
    done = stoker("inspect", "x.tar")
    assert done.returncode == 1 and "9 samples" in done.stdout
    assert f"cannot list `x.tar` at byte {at}: a header's checksum is wrong; {size:,} bytes are lost" in done.stdout
    found = json.loads(stoker("inspect", "x.tar", "--json").stdout)
    assert found["lost"] == [{"name": "x.tar", "cause": "a header's checksum is wrong", "offset": at, "bytes": size}]


def test_check_finds_it(stoker, shard):
    at, size = shard
    done = stoker("check", "x.tar")
    assert done.returncode == 1 and f"at byte {at}" in done.stdout
    report = json.loads(stoker("check", "x.tar", "--json").stdout)
    assert not report["sound"] and report["samples"] == 9 and report["damaged"] == []
    assert report["broken"] == [f"cannot list `x.tar` at byte {at}: a header's checksum is wrong; {size:,} bytes are lost"]


def test_check_finds_a_shard_that_was_cut_off(stoker, tmp_path):
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for number in range(3):
            for ending, content in ((".png", png_bytes(seed=number)), (".cls", str(number).encode())):
                member = tarfile.TarInfo(f"{number}{ending}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    with tarfile.open(tmp_path / "x.tar") as archive:
        label = archive.getmember("1.cls")
    whole = (tmp_path / "x.tar").read_bytes()
    assert stoker("check", "x.tar").returncode == 0
    for size, cause in ((label.offset, "`1.png` lost its label"), (label.offset_data + 9, "inside the padding of `1.cls`")):
        (tmp_path / "x.tar").write_bytes(whole[:size])
        done = stoker("check", "x.tar")
        assert done.returncode == 1 and cause in done.stdout
    (tmp_path / "x.tar").write_bytes(whole[:label.offset_data + 512])
    done = stoker("check", "x.tar", "--json")
    assert done.returncode == 0 and "without the end-of-archive marker" in json.loads(done.stdout)["notes"][0]


def test_pack_takes_what_is_there_and_says_what_is_not(stoker, shard, tmp_path):
    at, _ = shard
    assert stoker("pack", "x.tar", "x.pack").returncode == 2
    done = stoker("pack", "x.tar", "x.pack", "--on-error", "skip")
    assert done.returncode == 0 and f"at byte {at}" in done.stdout
    about = json.loads((tmp_path / "x.pack" / "pack.json").read_text())
    assert about["count"] == 9 and [entry["name"] for entry in about["skipped"]] == ["x.tar"]


def test_a_pack_is_not_brought_up_to_date_from_a_source_that_lost_a_part(stoker, tmp_path):
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for number in range(4):
            member = tarfile.TarInfo(f"{number}.png")
            content = png_bytes(seed=number)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    assert stoker("pack", "x.tar", "x.pack").returncode == 0
    with open(tmp_path / "x.tar", "r+b") as file:
        file.write(b"X")
    done = stoker("pack", "x.tar", "x.pack", "--on-error", "skip")
    assert done.returncode == 2 and "a part of its source is lost" in done.stderr
    assert json.loads((tmp_path / "x.pack" / "pack.json").read_text())["count"] == 4


@pytest.mark.parametrize("verb", [["inspect"], ["load"], ["check"], ["pack"]])
def test_pipes_are_named_and_never_waited_for(stoker, tmp_path, verb):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.png").write_bytes(png_bytes())
    os.mkfifo(tmp_path / "data" / "pipe.png")
    (tmp_path / "data" / "index.csv").write_text("path\na.png\npipe.png\n")
    more = ["x.pack"] if verb[0] == "pack" else []
    done = stoker(verb[0], "data", *more, *verb[1:], timeout=60)
    assert done.returncode == 0
    done = stoker(verb[0], "data/index.csv", *more, *verb[1:], timeout=60)
    assert done.returncode == 2 and "`pipe.png` is a pipe, not a file" in done.stderr
    done = stoker(verb[0], "data/pipe.png", *more, *verb[1:], timeout=60)
    assert done.returncode == 2 and "pipe.png" in done.stderr


@pytest.mark.parametrize("name", ["pack.json", "index.npy", "names.txt", "data-00000.tar"])
def test_a_pipe_in_a_pack_is_never_waited_for(stoker, pictures, tmp_path, name):
    assert stoker("pack", "pictures", "x.pack").returncode == 0
    (tmp_path / "x.pack" / name).unlink()
    os.mkfifo(tmp_path / "x.pack" / name)
    done = stoker("load", "x.pack", timeout=60)
    assert done.returncode == 2 and name in done.stderr
    assert stoker("check", "x.pack", timeout=60).returncode in (1, 2)


def test_two_label_columns_are_refused(stoker, tmp_path):
    (tmp_path / "a.png").write_bytes(png_bytes())
    (tmp_path / "index.csv").write_text("path,label,label\na.png,1,2\n")
    done = stoker("load", "index.csv")
    assert done.returncode == 2 and "columns 2 and 3 are both named `label`" in done.stderr


@pytest.mark.parametrize("flag", ["--io-depth", "--io-batch"])
@pytest.mark.parametrize("value", ["100000000", "8193", "0", "-1"])
def test_numbers_of_requests_out_of_range_are_refused(stoker, pictures, flag, value):
    done = stoker("load", "pictures", flag, value)
    assert done.returncode == 2 and flag in done.stderr and ("1 up to 8,192" in done.stderr or "from 1" in done.stderr), done.stderr
    assert stoker("load", "pictures", flag, "8192").returncode == 0
