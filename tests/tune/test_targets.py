"""The ready-made targets of stoker.targets, on small data and a CPU."""

import json
import subprocess
import sys
import wave

import numpy
import pytest
from conftest import rows_of

pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")
FAST = ["--search", "grid", "--warmup-steps", "1", "--bench-steps", "4", "--out", "run"]


@pytest.fixture
def slices(tmp_path):
    """Twelve 16-bit slices named by slices/index.csv."""
    generator = numpy.random.default_rng(1)
    (tmp_path / "slices/png").mkdir(parents=True)
    lines = ["path,label,hu_offset"]
    for number in range(12):
        Image.fromarray(generator.integers(31000, 36000, (48, 48), numpy.uint16)).save(tmp_path / f"slices/png/{number:02}.png")
        lines.append(f"png/{number:02}.png,{number % 2},32768")
    (tmp_path / "slices/index.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "slices/index.csv"


def test_slices_of_an_index_are_tuned_on_a_subset_that_is_written_down(tune, binary, environment, slices, tmp_path):
    found = tune("stoker.targets:ct_slices", slices, "--subset", "4", "--subset-seed", "7", "--inflate", "1000", "--with", "img_size=16",
                 "--grid", "num_workers=0,1", "--grid", "batch_size=4", *FAST)
    assert found["ok"] == 2 and found["chosen"]["verdict"] in ("fetch_bound", "prep_bound", "handoff_bound", "compute_bound")
    subset = json.loads((tmp_path / "run/subset.json").read_text())
    assert (subset["seed"], subset["count"], len(subset["ids"]), len(set(subset["paths"]))) == (7, 4, 4, 4)
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert config["index_csv"] == str(slices) and (config["subset_size"], config["subset_seed"], config["inflation_factor"], config["img_size"]) == (4, 7, 1000, 16)
    assert config["environment"]["torch"]
    assert config["window"] == {"level": [-700, 100], "width": [300, 2000]}, "also where nobody gave it"
    assert config["used"]["hu_offset"] == 32768 and "batch_size" not in config["used"], "knobs differ from trial to trial"
    again = subprocess.run([binary, "tune", "--resume", "run"], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert again.returncode == 0, again.stderr


def test_a_window_is_drawn_inside_its_ranges_and_its_ranges_are_knobs(tune, slices, tmp_path):
    from stoker.targets import images

    from stoker import targets

    found = tune("stoker.targets:ct_slices", slices, "--with", "img_size=16", "--with", "num_workers=0", "--with", "batch_size=4", "--grid",
                 "window_level=-700:100,40", "--grid", "window_width=300:2000", *FAST)
    assert found["points"] == found["ok"] == 2
    read = images._Slice(16, "random", (-700, 100), (300, 2000), 32768)
    drawn = [read._draw() for _ in range(300)]
    levels, widths = [(low + high) / 2 for low, high in drawn], [high - low for low, high in drawn]
    assert -700 <= min(levels) < -600 and 0 < max(levels) <= 100 and 300 <= min(widths) < 500 and 1800 < max(widths) <= 2000
    with pytest.raises(Exception, match="window_width is `0:10`, which is no range"):
        targets.ct_slices({"source": str(slices), "window_width": "0:10"})


def test_classes_are_chosen_by_name_in_a_target_a_search_and_a_pack(tune, binary, environment, tmp_path):
    from stoker import targets

    for name in ("ant", "bee", "cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(3):
            Image.fromarray(numpy.full((20, 30, 3), 9, numpy.uint8)).save(tmp_path / "photos" / name / f"{number}.jpg")
    (tmp_path / "classes.txt").write_text("dog\nbee\n")
    source = str(tmp_path / "photos")
    for knobs in ({"class_list": str(tmp_path / "classes.txt")}, {"class_list": ["bee", "dog"]}, {"classes": "bee,dog"}):
        loader, _ = targets.image_folder({"source": source, "batch_size": 6, "img_size": 8, **knobs})
        assert len(loader.dataset) == 6 and {name.split("/")[0] for name in loader.dataset._names} == {"bee", "dog"}
    by_seed, _ = targets.image_folder({"source": source, "batch_size": 2, "img_size": 8, "class_subset": 2, "class_subset_seed": 42})
    assert len(by_seed.dataset) == 6
    found = tune("stoker.targets:image_folder", source, "--class-list", "classes.txt", "--with", "img_size=8", "--with", "batch_size=2", "--grid", "num_workers=0",
                 *FAST)
    assert found["ok"] == 1
    subset = json.loads((tmp_path / "run/subset.json").read_text())
    assert {path.split("/")[0] for path in subset["paths"]} == {"bee", "dog"} and subset["count"] == 6
    done = subprocess.run([binary, "pack", source, "some.pack", "--class-list", "classes.txt"], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "some.pack/pack.json").read_text())["count"] == 6


def test_a_bad_list_of_classes_is_one_sentence(binary, environment, tmp_path):
    (tmp_path / "photos/ant").mkdir(parents=True)
    Image.fromarray(numpy.full((20, 30, 3), 9, numpy.uint8)).save(tmp_path / "photos/ant/0.jpg")
    (tmp_path / "classes.txt").write_text("wasp\n")
    for number, (given, message) in enumerate((("class_list=classes.txt", "no such class"), ("class_list=nowhere.txt", "nowhere.txt"),
                                               ("classes=ant,,", "is a list of names of classes"), ("class_subset=many", "class_subset is a whole number from 1"))):
        done = subprocess.run([binary, "tune", "stoker.targets:image_folder", "photos", "--python", sys.executable, "--with", "img_size=8", "--with", given,
                               "--grid", "num_workers=0", "--out", f"bad{number}"], capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60)
        assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_small_model_steps_where_nobody_names_one(tmp_path, slices):
    from stoker.targets.vit import Moved, Small

    from stoker import targets

    loader, step = targets.ct_slices({"source": str(slices), "batch_size": 4, "img_size": 32})
    assert isinstance(step, Small)
    before = [one.clone() for one in step.model.parameters()]
    step(step.transfer(next(iter(loader))))
    assert any(not (one == then).all() for one, then in zip(step.model.parameters(), before)), "it learns"
    assert sum(one.numel() for one in step.model.parameters()) < 200_000
    for knobs in ({"model": "none"}, {"step_ms": 0}):
        assert type(targets.ct_slices({"source": str(slices), **knobs})[1]) is Moved


def test_our_own_loader_is_tuned_with_pinning_on_and_off(tune, slices, tmp_path):
    found = tune(slices, "--transform", "window,resize:16x16", "--image-color", "keep", "--grid", "pin_memory=true,false", "--grid", "batch_size=4", *FAST)
    assert found["points"] == found["ok"] == 2
    assert {row["pin_memory"] for row in rows_of(tmp_path / "run")} == {"true", "false"}
    assert json.loads((tmp_path / "run/config.json").read_text())["window"] == {"level": [-700, 100], "width": [300, 2000]}


def test_a_vision_transformer_is_stepped_with_accumulation_checkpointing_and_bf16(tune, tmp_path):
    small = [word for setting in ("model=tiny", "dim=32", "depth=2", "heads=2", "patch_size=8", "img_size=16", "classes=10") for word in ("--with", setting)]
    found = tune("stoker.targets:vit", *small, "--grid", "batch_size=2,4", "--grid", "accumulate_steps=1,2", "--grid", "checkpointing=true", "--grid", "amp=bf16",
                 "--effective-batch", "4", *FAST)
    assert found["points"] == found["ok"] == 2
    assert all(float(row["compute_ms"]) > float(row["data_ms"]) and row["bound"] == "compute_bound" for row in rows_of(tmp_path / "run"))


def test_a_student_and_its_teacher_are_stepped_over_ten_views_of_each_image(tune, slices, tmp_path):
    small = [word for setting in ("model=tiny", "dim=16", "depth=1", "heads=2", "patch_size=8", "img_size=32", "small_size=16", "outputs=32", "amp=bf16")
             for word in ("--with", setting)]
    found = tune("stoker.targets:dino", slices, *small, "--with", "checkpointing=true", "--grid", "batch_size=2,4", "--grid", "accumulate_steps=64,128",
                 "--effective-batch", "256", "--search", "grid", "--warmup-steps", "1", "--bench-steps", "2", "--out", "run")
    assert found["points"] == found["ok"] == 2
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert (config["used"]["large_views"], config["used"]["small_views"], config["effective_batch"]) == (2, 8, "256")


def test_large_views_show_most_of_an_image_and_small_ones_a_part():
    from stoker.targets.dino import LARGE_SCALE, SMALL_SCALE
    from stoker.targets.images import random_box

    def shares(scale):
        boxes = [random_box(240, 200, scale) for _ in range(300)]
        return [(right - left) * (bottom - top) / 48_000 for left, top, right, bottom in boxes]

    large, small = shares(LARGE_SCALE), shares(SMALL_SCALE)
    assert 0.39 < min(large) < 0.45 and max(large) > 0.75 and 0.045 < min(small) < 0.07 and 0.35 < max(small) < 0.41


def test_the_teacher_follows_the_student_after_each_update():
    from stoker import targets

    knobs = {"model": "tiny", "dim": 16, "depth": 1, "heads": 2, "patch_size": 8, "img_size": 32, "small_size": 16, "outputs": 32, "batch_size": 2,
             "accumulate_steps": 2, "lr": 0.1}
    loader, step = targets.dino(knobs)
    views, _ = batch = next(iter(loader))
    assert [tuple(one.shape) for one in views] == [(2, 2, 3, 32, 32), (2, 8, 3, 16, 16)]
    def weights(network):
        return [one.detach().clone() for one in network.parameters()]

    student, teacher = weights(step.student), weights(step.teacher)
    assert all((a == b).all() for a, b in zip(student, teacher)), "they begin alike"
    step(step.transfer(batch))
    assert all((a == b).all() for a, b in zip(student, weights(step.student))), "the first of two batches changes nothing"
    step(step.transfer(batch))
    moved = [(a - b).abs().max() for a, b in zip(student, weights(step.student))]
    followed = [(a - b).abs().max() for a, b in zip(teacher, weights(step.teacher))]
    assert max(moved) > 0 and 0 < max(followed) < max(moved), "by its momentum"


def test_pictures_and_sounds_are_loaded_as_people_do(tmp_path):
    from stoker import targets

    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        (tmp_path / "sounds" / name).mkdir(parents=True)
        for number in range(4):
            Image.fromarray(numpy.full((20, 30, 3), 128, numpy.uint8)).save(tmp_path / "photos" / name / f"{number}.jpg")
            with wave.open(str(tmp_path / "sounds" / name / f"{number}.wav"), "wb") as file:
                file.setparams((2, 2, 8000, 0, "NONE", ""))
                file.writeframes(numpy.full(2 * 50, 16384, numpy.int16).tobytes())
    loader, step = targets.image_folder({"source": str(tmp_path / "photos"), "batch_size": 4, "img_size": 8, "inflate": 3})
    assert len(loader) == 6
    images, labels = step.transfer(next(iter(loader)))
    assert images.shape == (4, 3, 8, 8) and images.dtype.is_floating_point and set(labels.tolist()) <= {0, 1}
    assert abs(float(images[0, 0, 0, 0]) - (128 / 255 - 0.485) / 0.229) < 0.05
    loader, step = targets.wav_folder({"source": str(tmp_path / "sounds"), "batch_size": 8, "frames": 80})
    sounds, labels = next(iter(loader))
    assert sounds.shape == (8, 80) and sounds[0, 49] == 0.5 and sounds[0, 50] == 0 and sorted(labels.tolist()) == [0] * 4 + [1] * 4


def test_the_slices_window_maps_hounsfield_units(slices):
    from stoker import targets

    loader, _ = targets.ct_slices({"source": str(slices), "batch_size": 12, "img_size": 16, "window": "-1000:3000"})
    images, labels = next(iter(loader))
    assert images.shape == (12, 3, 16, 16) and 0 <= float(images.min()) < float(images.max()) <= 1 and sorted(labels.tolist()) == [0] * 6 + [1] * 6


@pytest.mark.parametrize("knobs, says", [
    ({}, "the target has no data"),
    ({"source": "x", "window": "wide"}, "window is `random`, `presets` or LOW:HIGH"), ({"model": "tiny", "amp": "int8"}, "amp is off, bf16 or fp16"),
    ({"model": "enormous"}, "model is tiny"), ({"small_views": 0, "large_views": 1, "model": "tiny"}, "the teacher needs"), ({"model": "tiny", "step_ms": 3}, "not both"),
])
def test_settings_that_make_no_sense_are_named(knobs, says):
    from stoker import UsageError, targets

    with pytest.raises(UsageError, match=says):
        (targets.dino if "small_views" in knobs else targets.vit if "model" in knobs else targets.ct_slices)(knobs)
