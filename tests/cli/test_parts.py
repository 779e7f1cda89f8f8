"""Packs and slices that several machines make: the bytes of one machine, kills, and parts that do not fit together."""

import json
import pathlib
import shutil
import signal
import subprocess
import time

import pytest
from conftest import write_wav

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARDS = ["--shard-size", "1MiB"]


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def many(tmp_path):
    """120 sounds of 40 KB: five shards."""
    for i in range(120):
        write_wav(tmp_path / "data" / f"c{i % 4}" / f"{i:03}.wav", frames=20_000, seed=i)
    return tmp_path / "data"


@pytest.mark.parametrize("kind", [[], ["--kind", "raw", "--samples", "20000"], ["jpeg"]], ids=["encoded", "raw", "jpeg"])
def test_parts_that_were_made_at_once_join_to_the_bytes_of_one_run(stoker, binary, environment, many, tmp_path, kind):
    if kind == ["jpeg"]:  # with a seek.bin
        image, kind = pytest.importorskip("PIL.Image", reason="Pillow is not installed"), []
        for number, path in enumerate(sorted(many.rglob("*.wav"))):
            picture = image.effect_noise((320, 240), 80 + number)
            picture.convert("RGB").save(path.with_suffix(".jpg"), quality=97, subsampling=0)
            path.unlink()
    assert stoker("pack", "data", "one.pack", *SHARDS, *kind).returncode == 0
    runs = [subprocess.Popen([binary, "pack", "data", "x.pack", *SHARDS, *kind, "--part", f"{number}/3", "--json"], cwd=tmp_path,
                             env=environment, stdout=subprocess.PIPE, text=True) for number in (1, 2, 3)]
    made = [json.loads(run.communicate(timeout=120)[0]) for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert sum(part["count"] for part in made) == 120 and max(part["part"]["parts_made"] for part in made) == 3
    done = stoker("pack", "data", "x.pack", *SHARDS, *kind, "--join")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("x.pack: 120 samples in ")
    found = contents(tmp_path / "x.pack")
    assert found == contents(tmp_path / "one.pack") and sum(name.startswith("data-") for name in found) >= 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "one.pack", "x.pack"]
    assert "up to date" in stoker("pack", "data", "x.pack", *SHARDS, *kind).stdout


def test_a_part_that_is_killed_goes_on_and_the_pack_is_the_same(stoker, binary, environment, many, tmp_path):
    assert stoker("pack", "data", "one.pack", *SHARDS).returncode == 0
    command = ["pack", "data", "x.pack", *SHARDS, "--part", "1/2"]
    parts = tmp_path / ".x.pack.parts"
    for moment in range(6):
        run = subprocess.Popen([binary, *command], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not (parts / "1-of-2" / f"data-0000{min(moment, 1)}.tar").exists() and run.poll() is None and time.monotonic() < deadline:
            pass
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=60)
        if moment % 2:
            shutil.rmtree(parts)
    assert stoker(*command).returncode == 0
    done = stoker("pack", "data", "x.pack", *SHARDS, "--join")
    assert done.returncode == 2 and "part 2/2 is missing" in done.stderr and "--part 2/2 in place of --join" in done.stderr
    assert not (tmp_path / "x.pack").exists()
    assert stoker("pack", "data", "x.pack", *SHARDS, "--part", "2/2").returncode == 0
    assert stoker("pack", "data", "x.pack", *SHARDS, "--join").returncode == 0
    assert contents(tmp_path / "x.pack") == contents(tmp_path / "one.pack")


def test_parts_of_a_source_that_changed_are_refused(stoker, many, tmp_path):
    for number in (1, 2):
        assert stoker("pack", "data", "x.pack", *SHARDS, "--part", f"{number}/2").returncode == 0
    write_wav(many / "c9" / "new.wav", frames=100)
    done = stoker("pack", "data", "x.pack", *SHARDS, "--join")
    assert done.returncode == 2 and "part 1/2 was made from 120 samples of" in done.stderr and "the source has 121 samples" in done.stderr
    for number in (1, 2):
        assert stoker("pack", "data", "x.pack", *SHARDS, "--part", f"{number}/2").returncode == 0
    assert stoker("pack", "data", "x.pack", *SHARDS, "--join").returncode == 0


def test_the_slurm_example_packs_in_an_array_and_joins_behind_it(stoker, binary, environment, many, tmp_path):
    assert stoker("pack", "data", "one.pack", *SHARDS).returncode == 0
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sbatch").write_text('#!/bin/sh\necho "$@" >> submitted\n')
    (programs / "sbatch").chmod(0o755)
    (programs / "stoker").symlink_to(binary)
    script = str(ROOT / "examples/slurm_pack.sh")

    def task(**variables):
        done = subprocess.run(["bash", script, "data", "x.pack", *SHARDS], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                              env={**environment, "PATH": f"{programs}:{environment['PATH']}", **variables})
        assert done.returncode == 0, done.stderr

    for number in range(1, 5):
        task(SLURM_ARRAY_JOB_ID="77", SLURM_ARRAY_TASK_ID=str(number), SLURM_ARRAY_TASK_MIN="1", SLURM_ARRAY_TASK_COUNT="4")
    submitted = (tmp_path / "submitted").read_text().splitlines()
    assert len(submitted) == 1 and "--dependency=afterok:77" in submitted[0] and submitted[0].endswith(f"{script} data x.pack --shard-size 1MiB")
    task(JOIN="1")
    assert contents(tmp_path / "x.pack") == contents(tmp_path / "one.pack")


@pytest.mark.parametrize("words, message", [
    (["x.pack", "--part", "5/4"], "cannot read --part 5/4: it is a number from 1 to N, a slash and N"),
    (["x.pack", "--part", "1/2", "--join"], "do not go together"),
    (["x.pack", "--part", "1/2", "--dry-run"], "do not go together"),
    (["x.pack", "--join"], "there are none in `.x.pack.parts`"),
    (["s3://bucket/x.pack", "--part", "1/2"], "parts lie in a folder that all machines share"),
    (["nowhere/x.pack", "--part", "1/2"], "nowhere"),
])
def test_wrong_use_is_one_sentence_and_leaves_nothing(stoker, sounds, tmp_path, words, message):
    done = stoker("pack", "data", *words)
    assert (done.returncode, done.stdout) == (2, "")
    first = done.stderr.split("\n\nhint: ")[0]
    assert first.startswith("error: ") and message in first and "\n" not in first.rstrip("\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_slices_that_several_machines_wrote_are_those_of_one(stoker, tmp_path):
    pydicom = pytest.importorskip("pydicom")
    import test_prepare_dicom as dicom

    if "dicom (GDCM" not in stoker("--version").stdout:
        pytest.skip("built without STOKER_DICOM")
    assert pydicom
    for i in range(5):
        dicom.a_series(tmp_path / f"in/{i}", count=2, series=f"1.2.{i}", seed=i)
    (tmp_path / "key").write_text("0" * 64)
    command = ["prepare", "dicom", "in", "--key-file", "key"]

    def run(out, *words):
        return stoker(*command[:3], out, *command[3:], *words)

    assert run("one").returncode == 0
    done = run("out", "--part", "1/2")
    assert done.returncode == 0 and "out, part 1/2: 6 slices in 3 series of in" in done.stdout, done.stderr
    done = run("out", "--join")
    assert done.returncode == 2 and "cannot join the parts of `out`: part 2/2 is not finished" in done.stderr
    assert not (tmp_path / "out/_index/index.csv").exists()
    assert run("out", "--part", "2/2").returncode == 0
    other = stoker("prepare", "dicom", "in", "out", "--part", "2/2", "--key-file", "other-key")
    assert other.returncode == 2 and "it was made with another key" in other.stderr
    assert run("out", "--join").returncode == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "one")
    assert "up to date" in run("out").stdout


# ---- copies that several machines make


def test_a_copy_in_parts_is_the_copy_of_one_run(stoker, many, tmp_path):
    (many / "c9").mkdir()
    write_wav(many / "c9" / "one.wav", frames=100)
    assert stoker("stage", "data", "one").returncode == 0
    for number in (2, 1, 3):
        made = json.loads(stoker("stage", "data", "x", "--part", f"{number}/3", "--json").stdout)
        assert made["part"] == {"number": number, "of": 3} and made["fetched"] in (40, 41)
    assert not (tmp_path / "x").exists()
    done = stoker("stage", "data", "x", "--join", "--json")
    assert done.returncode == 0, done.stderr
    assert (json.loads(done.stdout)["files"], json.loads(done.stdout)["fetched"]) == (121, 0)
    found, right = contents(tmp_path / "x"), contents(tmp_path / "one")
    assert found.keys() == right.keys() and all(found[name] == right[name] for name in right if name != ".stage.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "one", "x"]
    for again in (["--join"], ["--part", "2/3"], []):
        known = stoker("stage", "data", "x", *again)
        assert known.returncode == 0 and "up to date" in known.stdout, known.stderr


def test_a_copy_of_an_index_in_parts_has_the_index(stoker, many, tmp_path):
    rows = ["path,label", *(f"data/c{i % 4}/{i:03}.wav,{i % 3}" for i in range(120))]
    (tmp_path / "index.csv").write_text("\n".join(rows) + "\n")
    assert stoker("stage", "index.csv", "one").returncode == 0
    for number in (1, 2):
        assert stoker("stage", "index.csv", "x", "--part", f"{number}/2").returncode == 0
    assert stoker("stage", "index.csv", "x", "--join").returncode == 0
    assert (tmp_path / "x" / "index.csv").read_bytes() == (tmp_path / "one" / "index.csv").read_bytes()


def test_a_part_of_a_copy_that_is_killed_goes_on(stoker, binary, environment, many, tmp_path):
    assert stoker("stage", "data", "x", "--part", "1/2").returncode == 0
    run = subprocess.Popen([binary, "stage", "data", "x", "--part", "2/2", "--max-rate", "200kB"], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list((tmp_path / ".x.parts" / "2-of-2").glob(".stage-*.part")) and run.poll() is None and time.monotonic() < deadline:
        pass
    joined = stoker("stage", "data", "x", "--join")
    assert joined.returncode == 2 and "part 2/2 is being made" in joined.stderr
    run.send_signal(signal.SIGKILL)
    run.wait()
    joined = stoker("stage", "data", "x", "--join")
    assert joined.returncode == 2 and "run the parts again" in joined.stderr, joined.stderr
    assert stoker("stage", "data", "x", "--part", "2/2").returncode == 0
    assert stoker("stage", "data", "x", "--join").returncode == 0
    assert len(contents(tmp_path / "x")) == 121


@pytest.mark.parametrize("before, command, says", [
    ([["--part", "1/3"], ["--part", "3/3"]], ["--join"], "part 2/3 is missing"),
    ([["--part", "1/2"], ["--part", "2/3"]], ["--join"], "there are parts 1/2 and 2/3"),
    ([["--part", "1/2"], ["--part", "2/2", "--subset", "30"]], ["--join"], "part 2/2 is of another choice of samples"),
    ([], ["--join"], "120 files are in none of them"),
    ([], ["--part", "3/2"], "3/2"),
    ([], ["--part", "1/2", "--prune"], "a part removes nothing"),
    ([], ["--part", "1/2", "--dry-run"], "cannot be tried"),
    ([], ["--part", "1/2", "--join"], "at once")])
def test_parts_of_a_copy_that_do_not_fit_together_are_named(stoker, many, before, command, says):
    for words in before:
        assert stoker("stage", "data", "x", *words).returncode == 0
    refused = stoker("stage", "data", "x", *command)
    assert refused.returncode == 2 and says in " ".join(refused.stderr.split()), refused.stderr


def test_parts_of_another_source_or_beside_other_files_are_named(stoker, many, tmp_path):
    shutil.copytree(many, tmp_path / "other")
    assert stoker("stage", "data", "x", "--part", "1/2").returncode == 0
    assert stoker("stage", "other", "x", "--part", "2/2").returncode == 0
    refused = stoker("stage", "data", "x", "--join")
    assert refused.returncode == 2 and "part 2/2 is of another source" in refused.stderr
    assert stoker("stage", "data", "x", "--part", "2/2", "--force").returncode == 0
    (tmp_path / "x" / "c1").mkdir(parents=True)
    (tmp_path / "x" / "c1" / "001.wav").write_text("mine")
    refused = stoker("stage", "data", "x", "--join")
    assert refused.returncode == 2 and "stage did not write" in refused.stderr
    assert (tmp_path / "x" / "c1" / "001.wav").read_text() == "mine"
