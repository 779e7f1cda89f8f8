"""stoker stage: copies that can be interrupted, and never harm what somebody else wrote."""

import json
import os
import signal
import subprocess
import time

import pytest
from conftest import write_wav


def files(folder):
    """Every file below a folder but the manifest."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".stage.jsonl"}


def report(done):
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_a_copy_has_the_batches_of_the_source(stoker, sounds, tmp_path):
    done = stoker("stage", sounds, "copy")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("copy: 40 files, ")
    assert files(tmp_path / "copy") == files(sounds)
    again = report(stoker("stage", sounds, "copy", "--json"))
    assert again["schema"] == "stoker.stage/1" and again["up_to_date"] and again["kept"] == 40 and again["fetched"] == 0
    source, copy = (json.loads(stoker("load", where, "--json").stdout) for where in (sounds, "copy"))
    assert source["samples"] == copy["samples"] == 40
    assert not any("hidden" in note for note in copy["notes"])


def test_the_same_words_choose_the_same_classes_in_every_verb(stoker, tmp_path):
    for cls in "abcdefgh":
        for i in range(3):
            write_wav(tmp_path / "data" / cls / f"{i}.wav", frames=100, seed=i)
    words = ["--class-subset", "3", "--class-subset-seed", "7"]
    classes = report(stoker("stage", "data", "copy", *words, "--json"))["classes"]
    assert len(classes) == 3 and sorted(path.name for path in (tmp_path / "copy").iterdir() if path.is_dir()) == classes
    assert stoker("pack", "data", "x.pack", *words).returncode == 0
    assert json.loads((tmp_path / "x.pack/pack.json").read_text())["classes"] == classes
    assert stoker("load", "data", *words, "--save-subset", "s.json").returncode == 0
    paths = json.loads((tmp_path / "s.json").read_text())["paths"]
    assert sorted({path.split("/")[0] for path in paths}) == classes
    (tmp_path / "classes.txt").write_text("\n".join(classes) + "\n")
    for verb in (["load", "data"], ["pack", "data", "y.pack"], ["stage", "data", "listed"]):
        assert stoker(*verb, "--class-list", "classes.txt").returncode == 0
    assert files(tmp_path / "listed") == files(tmp_path / "copy")
    assert (tmp_path / "x.pack/names.txt").read_bytes() == (tmp_path / "y.pack/names.txt").read_bytes()
    tuned = stoker("tune", "data", *words, "--grid", "num_workers=0", "--grid", "batch_size=3", "--bench-steps", "2", "--warmup-steps", "1",
                   "--out", "run", "--search", "grid", "--transform", "pad:100")
    assert tuned.returncode == 0, tuned.stderr
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert config["class_subset"] == 3 and config["class_subset_seed"] == 7 and config["data"]["samples"] == 9
    assert json.loads((tmp_path / "run/subset.json").read_text())["paths"] == paths


def test_a_batch_that_the_chosen_classes_cannot_fill_is_refused_by_tune(stoker, sounds):
    done = stoker("tune", sounds, "--class-subset", "1", "--grid", "batch_size=35")
    assert done.returncode == 2 and "batch_size=35 is more than the" in done.stderr


def test_a_source_may_be_spelled_in_any_way(stoker, sounds, tmp_path):
    assert stoker("stage", sounds, "copy").returncode == 0
    for source in (os.path.abspath(sounds), f"file://{os.path.abspath(sounds)}", os.path.relpath(sounds, tmp_path)):
        again = stoker("stage", source, "copy")
        assert again.returncode == 0 and "up to date" in again.stdout, (source, again.stderr)


def test_splits_are_folders_of_the_copy(stoker, tmp_path):
    for split, count in (("train", 6), ("val", 4)):
        for cls in "abc":
            for i in range(count):
                write_wav(tmp_path / "data" / split / cls / f"{i}.wav", frames=50, seed=i)
    answer = report(stoker("stage", "data", "copy", "--class-subset", "2", "--split", "train=10,val=3", "--json"))
    assert [(split["name"], split["files"]) for split in answer["splits"]] == [("train", 10), ("val", 3)]
    copied = files(tmp_path / "copy")
    assert sum(name.startswith("train/") for name in copied) == 10 and sum(name.startswith("val/") for name in copied) == 3
    assert {name.split("/")[1] for name in copied} <= set(answer["classes"])
    for name, content in copied.items():
        assert content == (tmp_path / "data" / name).read_bytes()


def test_dry_run_says_how_much_and_writes_nothing(stoker, sounds, tmp_path):
    done = stoker("stage", sounds, "copy", "--dry-run")
    assert done.returncode == 0 and done.stdout.startswith("copy: would hold 40 files, ")
    assert "40 to fetch" in done.stdout and "about" in done.stdout
    assert not (tmp_path / "copy").exists()
    (tmp_path / "dogs.txt").write_text("dog\n")
    answer = report(stoker("stage", sounds, "copy", "--dry-run", "--max-rate", "5kB", "--class-list", "dogs.txt", "--json"))
    assert answer["fetched"] == 10 and answer["seconds"] >= answer["fetched_bytes"] / 5000


def test_nothing_is_overwritten_or_removed_unasked(stoker, sounds, tmp_path):
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy/letter.txt").write_text("mine")
    done = stoker("stage", sounds, "copy")
    assert done.returncode == 2 and "files that stage did not write" in done.stderr and "--force" in done.stderr
    assert files(tmp_path / "copy") == {"letter.txt": b"mine"}
    assert stoker("stage", sounds, "copy", "--force").returncode == 0
    done = stoker("stage", sounds, "copy", "--class-subset", "1")
    assert done.returncode == 2 and "--prune" in done.stderr
    done = stoker("stage", sounds, "copy", "--class-subset", "1", "--prune")
    assert done.returncode == 0 and "removed" in done.stdout
    assert files(tmp_path / "copy")["letter.txt"] == b"mine"


@pytest.mark.parametrize("words, message", [
    (["stage", "data"], "needs SOURCE DEST"),
    (["stage", "data", "copy", "--split", "train=30,val=30"], "it has no folder `train`"),
    (["stage", "data", "copy", "--split", "train=0"], "cannot read the splits `train=0`"),
    (["stage", "data", "copy", "--max-rate", "0"], "`--max-rate` is at least 1 byte per second"),
    (["stage", "data", "copy", "--subset", "3", "--split", "a=1"], "--subset and --split both say how many samples"),
    (["stage", "data", "x.pack", "--max-rate", "1MB"], "--max-rate does not hold for packs"),
    (["stage", "data", "x.pack", "--split", "a=1"], "cannot make one pack of several splits (--split)"),
    (["stage", "data", "copy", "--class-list", "none.txt"], "cannot open `none.txt`"),
    (["stage", "data", "copy", "--on-error", "zero"], "--on-error zero"),
    (["stage", "data", "data/copy"], "cannot copy `data` into itself"),
    (["stage", "data", "s3://bucket/copy"], "a copy lies on a local disk"),
    (["stage", "nowhere", "copy"], "`nowhere`"),
])
def test_wrong_use_is_refused_before_anything_is_written(stoker, sounds, tmp_path, words, message):
    before = files(tmp_path)
    done = stoker(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert files(tmp_path) == before


def test_bad_files_are_named_and_counted(stoker, tmp_path):
    write_wav(tmp_path / "data/a.wav")
    (tmp_path / "data/index.csv").write_text("path,label\na.wav,x\ngone.wav,y\n")
    done = stoker("stage", "data/index.csv", "copy", "--on-error", "skip")
    assert done.returncode == 0 and "bad" in done.stdout and "gone.wav: " in done.stdout
    assert (tmp_path / "copy/index.csv").read_text() == "path,label\na.wav,x\n"


def start(binary, environment, tmp_path, *words):
    return subprocess.Popen([binary, *map(str, words)], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until_there_are(count, tmp_path, process):
    """So many files that have no name yet."""
    end = time.monotonic() + 60
    while len(list((tmp_path / "copy").glob(".stage-*.part"))) < count:
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def many(tmp_path):
    """200 files of 20 kB, which a rate of 1 MB/s takes 4 seconds for."""
    for i in range(200):
        path = tmp_path / "data" / "abcd"[i % 4] / f"{i:03}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(20_000))
    return tmp_path / "data"


def test_ctrl_c_leaves_whole_files_and_the_next_run_goes_on(stoker, binary, environment, tmp_path, many):
    process = start(binary, environment, tmp_path, "stage", "data", "copy", "--max-rate", "1MB")
    until_there_are(20, tmp_path, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and said == "interrupted\n"
    half, whole = files(tmp_path / "copy"), files(many)
    assert 20 <= len(half) < 200 and half.items() <= whole.items()
    rest = report(stoker("stage", "data", "copy", "--json"))
    assert rest["kept"] == len(half) and rest["fetched"] == 200 - len(half)
    assert files(tmp_path / "copy") == whole


def test_after_kill_9_the_next_run_ends_with_the_same_bytes(stoker, binary, environment, tmp_path, many):
    whole = files(many)
    for least in (1, 60):  # killed twice, at different times
        process = start(binary, environment, tmp_path, "stage", "data", "copy", "--max-rate", "1MB")
        until_there_are(least, tmp_path, process)
        process.kill()
        process.communicate(timeout=60)
        named = {name: content for name, content in files(tmp_path / "copy").items() if not name.startswith(".stage-")}
        assert named.items() <= whole.items()
    answer = report(stoker("stage", "data", "copy", "--json"))
    assert answer["files"] == 200
    assert files(tmp_path / "copy") == whole
    assert report(stoker("stage", "data", "copy", "--json"))["up_to_date"]


def test_a_disk_that_is_too_small_is_said_before_anything_is_fetched(stoker, tmp_path):
    (tmp_path / "data/a").mkdir(parents=True)
    with open(tmp_path / "data/a/huge.wav", "wb") as file:
        file.truncate(1 << 42)
    done = stoker("stage", "data", "copy")
    assert done.returncode == 2 and "its disk has" in done.stderr and "free some space" in done.stderr
    assert files(tmp_path / "copy") == {}


def test_labels_stay_where_a_subset_leaves_classes_empty(stoker, tmp_path):
    for split in ("train", "val"):
        for cls in "abcdefgh":
            for i in range(3):
                write_wav(tmp_path / "data" / split / cls / f"{i}.wav", frames=50, seed=i)
    done = stoker("stage", "data", "copy", "--split", "train=4,val=2")
    assert done.returncode == 0 and " of data (folder)" in done.stdout
    for split in ("train", "val"):
        assert sorted(path.name for path in (tmp_path / "copy" / split).iterdir()) == list("abcdefgh")
    done = stoker("stage", "data", "other", "--split", "train=4,test=2")
    assert done.returncode == 2 and "it has train, val" in done.stderr


def test_few_open_files_are_enough(binary, environment, tmp_path, many):
    done = subprocess.run(["bash", "-c", 'ulimit -n 48 && exec "$0" stage data copy', binary], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "copy") == files(many)


def test_a_copy_that_lacks_bad_files_is_not_up_to_date(stoker, tmp_path):
    write_wav(tmp_path / "data/a.wav")
    (tmp_path / "data/index.csv").write_text("path,label\na.wav,x\ngone.wav,y\n")
    for _ in range(2):
        done = stoker("stage", "data/index.csv", "copy", "--on-error", "skip")
        assert done.returncode == 0 and "up to date" not in done.stdout and "1 file left out" in done.stdout


def test_a_disk_that_fills_up_keeps_whole_files_and_the_next_run_goes_on(stoker, binary, environment, tmp_path, many):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "stoker-test", small], capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small disk")
    (tmp_path / "copy").symlink_to(small / "copy")
    (small / "copy").mkdir()
    try:
        process = start(binary, environment, tmp_path, "stage", "data", "copy", "--max-rate", "1MB")
        until_there_are(20, tmp_path, process)
        room = os.statvfs(small)
        (small / "filler").write_bytes(bytes(room.f_bavail * room.f_bsize - 200_000))
        _, said = process.communicate(timeout=60)
        assert process.returncode == 2 and "No space left on device" in said and "run the same command again" in said
        half, whole = files(tmp_path / "copy"), files(many)
        assert 15 <= len(half) < 200 and half.items() <= whole.items()
        (small / "filler").unlink()
        rest = report(stoker("stage", "data", "copy", "--json"))
        assert rest["kept"] == len(half) and rest["fetched"] == 200 - len(half)
        assert files(tmp_path / "copy") == whole
    finally:
        subprocess.run(["umount", small], check=True)
