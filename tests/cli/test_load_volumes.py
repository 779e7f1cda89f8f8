"""stoker load with --patch: volumes named by a volumes.csv."""

import json
import resource
import subprocess

import numpy
import pytest


@pytest.fixture
def volumes(tmp_path):
    for name in "ab":
        numpy.save(tmp_path / f"{name}.npy", numpy.arange(20 * 30 * 30, dtype=numpy.int16).reshape(20, 30, 30))
        numpy.save(tmp_path / f"{name}_mask.npy", numpy.ones((20, 30, 30), numpy.uint8))
    (tmp_path / "volumes.csv").write_text("image,mask,weight\na.npy,a_mask.npy,1\nb.npy,b_mask.npy,3\n")


def test_patches_of_volumes_are_loaded(stoker, volumes):
    done = stoker("load", "volumes.csv", "--patch", "8x16x16", "--samples", "20", "--normalize", "zscore", "--flip", "--turn", "--foreground", "0.5",
                  "--batch-size", "4", "--shuffle", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["samples"], found["steps"]) == (20, 5)


def test_a_grid_and_one_volume_are_loaded(stoker, volumes):
    done = stoker("load", "a.npy", "--patch", "10", "--sampling", "grid", "--overlap", "5", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 3 * 5 * 5


@pytest.mark.parametrize("words, said", [
    (["--samples", "5"], "`--samples` is about patches of volumes, and there is no `--patch`"),
    (["--patch", "8x16x16"], "--samples is 0"),
    (["--patch", "8x16", "--samples", "5"], "is depth, height and width, not `8x16`"),
    (["--patch", "64", "--samples", "5"], "the patch 64x64x64 is larger than `a.npy`"),
    (["--patch", "8", "--samples", "5", "--normalize", "z"], "is zscore, window:LOW:HIGH"),
    (["--patch", "8", "--samples", "5", "--sampling", "random"], "`--sampling` is uniform or grid"),
    (["--patch", "8", "--samples", "5", "--transform", "resize:8"], "patches of volumes do not take it"),
])
def test_wrong_words_are_refused_in_one_sentence(stoker, volumes, words, said):
    done = stoker("load", "volumes.csv", *words)
    assert done.returncode == 2 and done.stdout == ""
    assert said in done.stderr


def test_volumes_are_packed_checked_and_loaded(stoker, volumes, tmp_path):
    done = stoker("pack", "volumes.csv", "v.pack", "--kind", "volume", "--patch", "8x16x16", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["volumes"], found["masks"]) == (2, 2) and found["patch_reads_in_pack"] < found["patch_reads_in_source"]
    assert found["patch_s_in_pack"] > 0 and found["patch_s_in_source"] > 0
    bricks = numpy.load(tmp_path / "v.pack" / "image-00000.npy")
    assert bricks.ndim == 6 and (bricks[0, 0, 0] == numpy.load(tmp_path / "a.npy")[tuple(slice(edge) for edge in bricks.shape[3:])]).all()
    assert stoker("check", "v.pack").returncode == 0
    loaded = stoker("load", "v.pack", "--patch", "8x16x16", "--samples", "20", "--foreground", "0.5", "--json")
    assert loaded.returncode == 0 and json.loads(loaded.stdout)["samples"] == 20, loaded.stderr
    with open(tmp_path / "v.pack" / "mask-00001.npy", "r+b") as file:
        file.seek(5000)
        file.write(b"\x7f")
    checked = stoker("check", "v.pack")
    assert checked.returncode == 1 and "mask-00001.npy" in checked.stdout
    refused = stoker("load", "v.pack")
    assert refused.returncode == 2 and "is a pack of volumes: they are loaded as patches" in refused.stderr


@pytest.mark.parametrize("words, said", [
    (["--kind", "volume", "--size", "8"], "`--size` does not go with `--kind volume`"),
    (["--patch", "8"], "`--patch` goes with `--kind volume`"),
    (["--kind", "volume", "--brick", "0"], "`--brick` has an axis without elements"),
])
def test_wrong_words_of_a_volume_pack_are_refused(stoker, volumes, words, said):
    done = stoker("pack", "volumes.csv", "v.pack", *words)
    assert done.returncode == 2 and said in done.stderr


def test_a_csv_of_volumes_without_a_patch_is_told_what_to_add(stoker, volumes):
    done = stoker("load", "volumes.csv")
    assert done.returncode == 2 and "names volumes, such as `a.npy`: they are loaded as patches" in done.stderr and "--patch" in done.stderr


def damage_json(pack):
    (pack / "pack.json").write_text((pack / "pack.json").read_text()[:100])


def damage_field(pack):
    text = (pack / "pack.json").read_text()
    (pack / "pack.json").write_text(text.replace('"weight"', '"height"', 1))


def remove_json(pack):
    (pack / "pack.json").unlink()


def cut_bricks(pack):
    with open(pack / "image-00001.npy", "r+b") as file:
        file.truncate(5000)


@pytest.mark.parametrize("damage, said", [
    (damage_json, "cannot read `v.pack/pack.json`: it is damaged: it is not JSON"),
    (damage_field, "cannot read `v.pack/pack.json`: its `weight` is missing or wrong"),
    (remove_json, "cannot read `v.pack/pack.json`: it is missing, and the bricks of volumes are there"),
    (cut_bricks, "cannot read `v.pack/image-00001.npy`: it has 5000 bytes, and pack.json says"),
])
def test_a_damaged_pack_of_volumes_is_named_and_its_remedy_works(stoker, volumes, tmp_path, damage, said):
    assert stoker("pack", "volumes.csv", "v.pack", "--kind", "volume", "--brick", "4x8x8").returncode == 0
    sound = {path.name: path.read_bytes() for path in (tmp_path / "v.pack").iterdir()}
    damage(tmp_path / "v.pack")

    checked = stoker("check", "v.pack")
    assert checked.returncode == 1 and checked.stdout.startswith("v.pack: damaged") and said in checked.stdout
    assert "0 damaged" not in checked.stdout and "--repair" in checked.stdout

    loaded = stoker("load", "v.pack", "--patch", "8x16x16", "--samples", "20")
    assert loaded.returncode == 2 and said in loaded.stderr and "stoker check" in loaded.stderr

    repaired = stoker("check", "v.pack", "--repair", "--source", "volumes.csv")
    assert repaired.returncode == 0 and repaired.stdout.startswith("v.pack: repaired"), repaired.stdout + repaired.stderr
    assert {path.name: path.read_bytes() for path in (tmp_path / "v.pack").iterdir()
} == sound
    assert stoker("check", "v.pack").returncode == 0


def test_a_damaged_pack_of_volumes_is_not_replaced_without_force(stoker, volumes, tmp_path):
    assert stoker("pack", "volumes.csv", "v.pack", "--kind", "volume").returncode == 0
    damage_json(tmp_path / "v.pack")
    refused = stoker("pack", "volumes.csv", "v.pack", "--kind", "volume")
    assert refused.returncode == 2 and "it is a damaged pack of volumes" in refused.stderr and "--force" in refused.stderr
    assert stoker("pack", "volumes.csv", "v.pack", "--kind", "volume", "--force").returncode == 0
    assert stoker("check", "v.pack").returncode == 0


def test_a_repair_that_cannot_find_its_source_asks_for_it(stoker, volumes, tmp_path):
    assert stoker("pack", "volumes.csv", "v.pack", "--kind", "volume").returncode == 0
    cut_bricks(tmp_path / "v.pack")
    (tmp_path / "volumes.csv").rename(tmp_path / "moved.csv")
    refused = stoker("check", "v.pack", "--repair")
    assert refused.returncode != 0 and "cannot repair `v.pack`" in refused.stderr and "--source" in refused.stderr
    assert stoker("check", "v.pack", "--repair", "--source", "moved.csv").returncode == 0
    damage_json(tmp_path / "v.pack")
    refused = stoker("check", "v.pack", "--repair")
    assert refused.returncode == 2 and "which names the source, is damaged" in refused.stderr and "--source" in refused.stderr


@pytest.fixture
def many_volumes(tmp_path):
    """Sixty volumes with masks."""
    for number in range(60):
        numpy.save(tmp_path / f"{number}.npy", numpy.full((8, 8, 8), number, numpy.uint8))
        numpy.save(tmp_path / f"{number}_mask.npy", numpy.ones((8, 8, 8), numpy.uint8))
    (tmp_path / "volumes.csv").write_text("image,mask\n" + "".join(f"{number}.npy,{number}_mask.npy\n" for number in range(60)))


def limited(binary, environment, folder, limit, *words):
    """The program under `ulimit -n`, with a soft and a hard limit."""
    soft, hard = limit
    return subprocess.run([binary, *words], capture_output=True, text=True, timeout=120, env=environment, cwd=folder,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)))


LOAD_ALL = ("--patch", "8", "--sampling", "grid", "--batch-size", "4", "--num-workers", "2", "--json")


@pytest.mark.parametrize("storage", ["auto", "mmap", "buffered"])
def test_mapped_volumes_need_no_descriptor_each(binary, environment, many_volumes, tmp_path, storage):
    done = limited(binary, environment, tmp_path, (64, 64), "load", "volumes.csv", *LOAD_ALL, "--storage", storage)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 60


def test_volumes_that_stay_open_raise_the_soft_limit(stoker, binary, environment, many_volumes, tmp_path):
    assert stoker("pack", "volumes.csv", "v.pack", "--kind", "volume", "--brick", "8").returncode == 0
    done = limited(binary, environment, tmp_path, (64, 1024), "load", "v.pack", *LOAD_ALL)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 60
    refused = limited(binary, environment, tmp_path, (64, 64), "load", "v.pack", *LOAD_ALL)
    assert refused.returncode == 2 and "cannot open `v.pack/" in refused.stderr, refused.stderr
    assert "120 volumes and masks" in refused.stderr and "this process may open 64 files" in refused.stderr and "ulimit -Hn" in refused.stderr


def test_where_selects_rows_of_a_volumes_csv(stoker, volumes, tmp_path):
    (tmp_path / "volumes.csv").write_text("image,split\na.npy,train\nb.npy,test\n")
    words = ("--patch", "10x30x30", "--sampling", "grid", "--json")
    for where, count in [('split=="train"', 2), ('split!="other"', 4)]:
        done = stoker("load", "volumes.csv", *words, "--where", where)
        assert done.returncode == 0 and json.loads(done.stdout)["samples"] == count, done.stderr
    refused = stoker("load", "volumes.csv", *words, "--where", "site==3")
    assert refused.returncode == 2 and "--where names the column `site`, and the columns of `volumes.csv` are `image`, `split`" in refused.stderr
    refused = stoker("load", "a.npy", *words, "--where", "site==3")
    assert refused.returncode == 2 and "it selects rows of a volumes.csv" in refused.stderr
