"""stoker load: what it counts, what it writes, how it stops."""

import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import time
import zlib

import numpy as np
import pytest
from conftest import write_png, write_wav

SOUNDS = ["load", "data", "--batch-size", "4", "--transform", "pad:800"]


def facts(done):
    assert done.returncode in (0, 1, 130), done.stderr
    return json.loads(done.stdout)


def test_explain_names_what_ran_together_and_its_share(stoker, tmp_path):
    image = pytest.importorskip("PIL.Image")
    for number in range(20):
        image.new("RGB", (80, 60), (number, 9, 99)).save(tmp_path / f"{number:02}.png")
    words = ["load", tmp_path, "--batch-size", "4", "--transform", "rrc:32,flip,color_jitter:0.4:0.4,gaussian_blur:5,normalize:imagenet", "--epochs", "16", "--explain"]
    done = stoker(*words, "--json")
    passes = json.loads(done.stdout)["plan"]["passes"]
    assert [one["operations"] for one in passes] == [["decode"], ["RandomResizedCrop", "HorizontalFlip"], ["ColorJitter"], ["GaussianBlur"], ["Normalize", "store"]]
    assert [one["fused"] for one in passes] == [False, True, False, False, True]
    assert sum(one["share"] for one in passes) == pytest.approx(1) and all(one["images"] >= 20 for one in passes), "each once in 16 epochs"
    text = stoker(*words).stdout
    assert "RandomResizedCrop + HorizontalFlip" in text and "us per image" in text
    assert "plan" not in json.loads(stoker(*words[:-1], "--json").stdout)


def test_every_sample_is_loaded_once(stoker, sounds):
    done = stoker(*SOUNDS, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = facts(done)
    assert (found["samples"], found["steps"], found["interrupted"]) == (40, 10, False)
    assert found["first_step_excluded"] and found["total"]["steps"] == 9 and found["total"]["samples"] == 36
    assert found["total"]["decoded_bytes"] == 36 * 800 * 4
    assert found["errors"]["count"] == 0
    assert found["verdict"]["bound"] in ("fetch_bound", "prep_bound", "handoff_bound", "compute_bound")
    assert found["output"] == "float32 [4, 800]"


@pytest.mark.parametrize("make, words, output", [
    (lambda path: write_png(path / "pictures" / "a" / "x.png"), ["pictures"], "uint8 [1, 3, 6, 8]"),
    (lambda path: np.save(path / "x.npy", np.ones((10, 2, 5), np.float32)), ["x.npy", "--batch-size", "5"],
     "float32 [5, 2, 5]"),
    (lambda path: write_wav(path / "s" / "x.wav", channels=2), ["s"], "float32 [1, 2, longest]"),
])
def test_pictures_arrays_and_sounds_give_the_batches_they_should(stoker, tmp_path, make, words, output):
    make(tmp_path)
    assert facts(stoker("load", *words, "--json"))["output"] == output


def test_dtype_layout_and_colour_reach_the_batches(stoker, pictures):
    found = facts(stoker("load", "pictures", "--batch-size", "3", "--transform", "resize:4x4", "--dtype", "float16",
                         "--layout", "NHWC", "--image-color", "gray", "--json"))
    assert found["output"] == "float16 [3, 4, 4, 1]"


def test_a_note_about_the_data_is_said_once(stoker, sounds):
    assert stoker(*SOUNDS, "--subset", "99").stdout.count("are taken") == 1


def test_text_has_every_figure(stoker, sounds):
    done = stoker(*SOUNDS, "--step-ms", "2")
    assert (done.returncode, done.stderr) == (0, "")
    for pattern in (r"^data: 40 samples in 2 classes, .* \(folder\)", r"emulated accelerator: a step of 2.00 ms",
                    r"speed .* samples/s .* MB/s read .* MB/s decoded", r"steps +10 in ", r"AU +[\d.]+ %",
                    r"compute [\d.]+ %  . fetch [\d.]+ %  . prep [\d.]+ %  . hand-off [\d.]+ %",
                    r"per step +2.00 ms compute \+ [\d.]+ ms wait \(fetch [\d.]+, prep [\d.]+, hand-off [\d.]+\)",
                    r"verdict +(\w+_bound)", r"ready queue +mean [\d.]+ batches, least \d+, empty [\d.]+ %",
                    r"cpu .* cores", r"memory +peak .* allowed", r"first batch +after ", r"errors +none", r"  try +\S"):
        assert re.search(pattern, " ".join(done.stdout.split()) if "per step" in pattern else done.stdout, re.M), pattern
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_shares_of_the_time_do_not_exceed_the_whole(stoker, sounds):
    found = facts(stoker(*SOUNDS, "--step-ms", "5", "--epochs", "2", "--json"))
    for span in [found["total"], *found["epochs"]]:
        whole = span["compute_s"] / span["running_s"] + span["wait"]["share"]
        assert 0 < whole <= 1.0001
        assert sum(span["wait"][stage]["share"] for stage in ("fetch", "prep", "handoff")) == pytest.approx(
            span["wait"]["share"])


def test_the_verdict_is_a_share_of_the_running_time_as_the_parts_are(stoker, sounds):
    found = facts(stoker(*SOUNDS, "--epochs", "20", "--json"))
    total, verdict = found["total"], found["verdict"]
    parts = {stage: total["wait"][stage]["share"] for stage in ("fetch", "prep", "handoff")}
    parts["compute"] = total["compute_s"] / total["running_s"]
    assert sum(parts.values()) + total["other"]["share"] == pytest.approx(1, abs=1e-6)
    stage = verdict["bound"].removesuffix("_bound")
    assert verdict["share"] == pytest.approx(parts[stage], abs=1e-6)
    if stage != "compute":
        assert verdict["gain"] == pytest.approx(1 / (1 - parts[stage]), rel=1e-3)


def test_au_is_compute_time_over_running_time_without_the_first_step(stoker, sounds):
    found = facts(stoker(*SOUNDS, "--step-ms", "5", "--json"))
    assert found["total"]["compute_s"] == pytest.approx(9 * 0.005)
    assert found["total"]["running_s"] >= 9 * 0.005
    assert found["au"] == pytest.approx(found["total"]["compute_s"] / found["total"]["running_s"])
    assert "au" not in facts(stoker(*SOUNDS, "--json"))


def test_a_workload_brings_batch_size_step_and_the_least_au(stoker, sounds):
    found = facts(stoker("load", "data", "--transform", "pad:800", "--workload", "cosmoflow-h100", "--json"))
    assert found["options"]["batch_size"] == 1 and found["options"]["step_ms"] == 3.5
    assert found["au_min"] == 0.7 and found["au_met"] == (found["au"] >= 0.7)
    text = stoker("load", "data", "--transform", "pad:800", "--workload", "unet3d-h100", "--steps", "2").stdout
    assert re.search(r"AU +[\d.]+ % of 90 % that MLPerf Storage asks: (not )?met", text)


def test_epochs_have_a_row_each(stoker, sounds):
    done = stoker(*SOUNDS, "--epochs", "3", "--shuffle")
    assert re.search(r"^  epoch  steps  samples/s", done.stdout, re.M)
    assert re.findall(r"^  ([012]) +(\d+) ", done.stdout, re.M) == [("0", "9"), ("1", "10"), ("2", "10")]


def test_steps_stop_the_run_over_as_many_epochs_as_it_takes(stoker, sounds):
    found = facts(stoker(*SOUNDS, "--steps", "23", "--json"))
    assert found["steps"] == 23 and [epoch["epoch"] for epoch in found["epochs"]] == [0, 1, 2]
    assert facts(stoker(*SOUNDS, "--steps", "23", "--epochs", "1", "--json"))["steps"] == 10


def test_drop_last_leaves_the_short_batch_out(stoker, sounds):
    batch = ["load", "data", "--transform", "pad:800", "--batch-size", "16", "--json"]
    assert facts(stoker(*batch))["samples"] == 40
    assert facts(stoker(*batch, "--drop-last"))["samples"] == 32


@pytest.mark.parametrize("last_batch, samples", [("keep", 13), ("drop", 12), ("pad", 16)])
def test_the_last_rank_gets_its_share_of_the_last_step_as_asked(stoker, sounds, last_batch, samples):
    ranks = ["--world-size", "3", "--rank", "2", "--last-batch", last_batch]  # 40 = 3 * 12 + 4
    assert facts(stoker(*SOUNDS, *ranks, "--json"))["samples"] == samples


def test_ranks_share_the_samples(stoker, sounds):
    parts = [facts(stoker(*SOUNDS, "--world-size", "2", "--rank", rank, "--json"))["samples"] for rank in (0, 1)]
    assert parts == [20, 20]
    done = stoker(*SOUNDS, "--world-size", "2", "--rank", "2")
    assert done.returncode == 2 and "rank" in done.stderr


def test_subsets_and_inflation_change_the_count(stoker, sounds):
    assert facts(stoker(*SOUNDS, "--subset", "10", "--json"))["samples"] == 10
    assert facts(stoker(*SOUNDS, "--class-subset", "1", "--json"))["samples"] in (10, 30)
    assert facts(stoker(*SOUNDS, "--inflate", "3", "--json"))["samples"] == 120


@pytest.mark.parametrize("storage", ["buffered", "direct", "mmap"])
def test_every_storage_loads_the_same_samples(stoker, sounds, storage):
    found = facts(stoker(*SOUNDS, "--storage", storage, "--io-depth", "8", "--io-batch", "4", "--read-ahead", "1MB",
                         "--io-threads", "1", "--num-workers", "2", "--prefetch-factor", "3", "--memory-limit", "200MB",
                         "--timeout", "30s", "--seed", "7", "--json"))
    assert found["samples"] == 40 and found["options"]["storage"] == storage
    assert found["memory"]["limit_bytes"] == 200_000_000 and found["memory"]["peak_bytes"] <= 200_000_000


def test_cold_is_said_and_without_it_warm_or_unknown(stoker, sounds):
    assert facts(stoker(*SOUNDS, "--cold", "--json"))["cache"] == "cold=data"
    assert "page cache cold=data" in stoker(*SOUNDS, "--cold").stdout
    assert facts(stoker(*SOUNDS, "--json"))["cache"] in ("warm", "unknown")


def test_the_time_to_the_first_batch_does_not_count_dropping_the_page_cache(stoker, sounds):
    began = time.monotonic()
    found = facts(stoker(*SOUNDS, "--cold", "--inflate", "10", "--steps", "1", "--json"))  # drops 400 files for one batch
    assert found["drop_s"] > 0
    assert found["drop_s"] + found["first_batch_s"] < time.monotonic() - began, "one after the other"
    assert facts(stoker(*SOUNDS, "--json"))["drop_s"] is None


def test_a_bad_file_ends_the_run_with_its_name(stoker, sounds):
    (sounds / "cat" / "007.wav").write_bytes(b"no sound")
    done = stoker(*SOUNDS)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ") and "cat/007.wav" in done.stderr


@pytest.mark.parametrize("policy, samples", [("skip", 38), ("zero", 40), ("replace", 40)])
def test_bad_files_are_passed_over_as_asked_and_listed(stoker, sounds, tmp_path, policy, samples):
    (sounds / "cat" / "007.wav").write_bytes(b"no sound")
    (sounds / "dog" / "035.wav").write_bytes(b"")
    done = stoker(*SOUNDS, "--on-error", policy, "--save-errors", "bad.json", "--json")
    found = facts(done)
    assert done.returncode == 0 and found["samples"] == samples
    assert found["errors"]["count"] == 2
    saved = json.loads((tmp_path / "bad.json").read_text())
    assert saved["schema"] == "stoker.errors/1"
    assert [entry["name"] for entry in saved["errors"]] == ["cat/007.wav", "dog/035.wav"]
    assert all(entry["action"] == policy and entry["cause"] and entry["stage"] for entry in saved["errors"])
    text = stoker(*SOUNDS, "--on-error", policy).stdout
    assert "errors       2 bad samples" in text and "cat/007.wav" in text


def test_too_many_bad_files_end_the_run_and_the_list_is_saved_all_the_same(stoker, sounds, tmp_path):
    for i in range(5):
        (sounds / "cat" / f"{i:03}.wav").write_bytes(b"no sound")
    done = stoker(*SOUNDS, "--on-error", "skip", "--max-errors", "3", "--save-errors", "bad.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "bad.json" in done.stderr
    assert len(json.loads((tmp_path / "bad.json").read_text())["errors"]) >= 3


def test_a_subset_is_written_once_even_when_it_is_inflated(stoker, sounds, tmp_path):
    done = stoker(*SOUNDS, "--subset", "5", "--subset-seed", "7", "--inflate", "3", "--save-subset", "subset.json", "--json")
    assert facts(done)["samples"] == 15
    subset = json.loads((tmp_path / "subset.json").read_text())
    assert (subset["seed"], subset["count"], len(subset["ids"]), len(set(subset["paths"]))) == (7, 5, 5, 5)
    assert stoker(*SOUNDS, "--save-subset", "subset.json").returncode == 2


def test_nothing_is_overwritten_without_force(stoker, sounds, tmp_path):
    (tmp_path / "bad.json").write_text("mine")
    done = stoker(*SOUNDS, "--save-errors", "bad.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("error: `--save-errors` would overwrite `bad.json`\n\n"
                           "hint: choose another name, or add --force\n")
    assert (tmp_path / "bad.json").read_text() == "mine"
    assert stoker(*SOUNDS, "--save-errors", "bad.json", "--force").returncode == 0
    assert json.loads((tmp_path / "bad.json").read_text())["errors"] == []


def test_a_state_file_carries_the_run_on_where_it_stopped(stoker, sounds, tmp_path):
    run = [*SOUNDS, "--shuffle", "--epochs", "2", "--state", "run.json", "--json"]
    first = facts(stoker(*run, "--steps", "3"))
    assert first["steps"] == 3 and first["state_file"] == "run.json"
    state = json.loads((tmp_path / "run.json").read_text())
    assert (state["schema"], state["epoch"], state["position"]) == ("stoker.state/1", 0, 12)
    second = facts(stoker(*run, "--batch-size", "7", "--steps", "6"))
    assert second["samples"] == 28 + 14 and any("resumed from `run.json`" in note for note in second["notes"])
    rest = facts(stoker(*run))
    assert first["samples"] + second["samples"] + rest["samples"] == 80
    after = stoker(*run)
    assert after.returncode == 0 and facts(after)["nothing_left"] and facts(after)["steps"] == 0


def test_shuffle_takes_blocks_after_an_equals_sign(stoker, sounds, tmp_path):
    run = [*SOUNDS, "--epochs", "2", "--state", "run.json", "--json"]
    first = facts(stoker(*run, "--shuffle=blocks:2:8", "--steps", "3"))
    assert first["options"]["shuffle"] == "blocks:2:8" and any("2 neighbours" in note for note in first["notes"])
    assert json.loads((tmp_path / "run.json").read_text())["shuffle"] == "blocks:2:8"
    assert stoker(*run, "--shuffle").returncode == 2
    assert facts(stoker(*run, "--shuffle=blocks:2:8"))["samples"] == 80 - first["samples"]
    done = stoker(*SOUNDS, "--shuffle=often")
    assert done.returncode == 2 and "--shuffle is off, full, blocks, blocks:NEIGHBOURS:MIXED, nodes or nodes:COUNT, not `often`" in done.stderr
    assert stoker(*SOUNDS, "--no-shuffle=blocks").returncode == 2


def test_a_state_of_other_data_or_another_seed_is_refused(stoker, sounds, tmp_path):
    assert stoker(*SOUNDS, "--shuffle", "--steps", "2", "--state", "run.json").returncode == 0
    before = (tmp_path / "run.json").read_text()
    for change in (["--seed", "9"], ["--subset", "20"]):
        done = stoker(*SOUNDS, "--shuffle", "--state", "run.json", *change)
        assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("error: ")
    assert (tmp_path / "run.json").read_text() == before


def test_a_file_that_is_no_state_is_neither_used_nor_overwritten(stoker, sounds, tmp_path):
    for text in ("mine", "{}", '{"schema": "stoker.state/1"}', '{"schema": "stoker.state/1", "epoch": -1}'):
        (tmp_path / "run.json").write_text(text)
        done = stoker(*SOUNDS, "--state", "run.json")
        assert (done.returncode, done.stdout) == (2, "")
        assert "cannot resume from `run.json`" in done.stderr
        assert (tmp_path / "run.json").read_text() == text


def start_endless_run(binary, environment, tmp_path, *words):
    """A run that takes hours, with its bar on a terminal; returns once the bar says that it is under way."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([binary, *SOUNDS, "--inflate", "100000", *words], cwd=tmp_path, stdout=subprocess.PIPE,
                               stderr=theirs, env={**environment, "TERM": "xterm"}, text=True)
    os.close(theirs)
    drawn = b""
    while b"feeding" not in drawn:
        assert select.select([ours], [], [], 60)[0], "the run did not start within a minute"
        drawn += os.read(ours, 4096)
    return process, ours


@pytest.mark.parametrize("step_ms", ["5", "600000"])
def test_ctrl_c_stops_at_once_and_prints_what_was_measured(binary, environment, tmp_path, sounds, step_ms):
    process, terminal = start_endless_run(binary, environment, tmp_path, "--step-ms", step_ms, "--state", "run.json")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    os.close(terminal)
    assert process.returncode == 130
    assert "interrupted  this is what was measured until then" in out
    assert json.loads((tmp_path / "run.json").read_text())["schema"] == "stoker.state/1"


def test_a_file_removed_since_the_last_run_is_not_missed(stoker, sounds):
    stoker(*SOUNDS)  # the listing is cached now
    (sounds / "cat" / "003.wav").unlink()
    done = stoker(*SOUNDS, "--json")
    assert done.returncode == 0 and facts(done)["samples"] == 39


def test_few_steps_are_called_few(stoker, sounds):
    notes = facts(stoker(*SOUNDS, "--steps", "5", "--json"))["notes"]
    assert any(note.startswith("only 5 steps") for note in notes)
    notes = facts(stoker(*SOUNDS, "--steps", "50", "--json"))["notes"]
    assert not any(note.startswith("only ") for note in notes)


def test_exif_orientation_turns_pictures(stoker, tmp_path):
    write_png(tmp_path / "pictures" / "a" / "x.png")  # 8 x 6, to be turned by a quarter
    path = tmp_path / "pictures" / "a" / "x.png"
    exif = b"II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x0112, 3, 1, 6, 0, 0)
    chunk = struct.pack(">I", len(exif)) + b"eXIf" + exif + struct.pack(">I", zlib.crc32(b"eXIf" + exif))
    path.write_bytes(path.read_bytes()[:33] + chunk + path.read_bytes()[33:])
    assert facts(stoker("load", "pictures", "--json"))["output"] == "uint8 [1, 3, 6, 8]"
    found = facts(stoker("load", "pictures", "--exif-orientation", "--json"))
    assert found["output"] == "uint8 [1, 3, 8, 6]" and found["options"]["exif_orientation"] is True


@pytest.mark.parametrize("flag, value", [("--warmup-steps", "3"), ("--bench-time", "1s")])
def test_a_flag_of_bench_steps_is_refused_without_it(stoker, sounds, flag, value):
    done = stoker("load", "data", flag, value)
    assert done.returncode == 2 and f"`{flag}` has no effect without `--bench-steps`" in done.stderr and f"leave {flag} out" in done.stderr
    assert stoker("load", "data", flag, value, "--bench-steps", "2", "--batch-size", "4").returncode == 0
