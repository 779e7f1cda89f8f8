"""File names are bytes. Every verb that reads a folder is run over hostile ones: what it prints is safe, what it writes leads back to the files."""

import csv
import io
import json
import os
import tarfile

import hostile_names
import pytest
from conftest import png_bytes

JSON_VERBS = {
    "inspect": ["inspect", "tree"],
    "inspect all": ["inspect", "tree", "--decode-all"],
    "load": ["load", "tree", "--batch-size", "4"],
    "check": ["check", "tree", "--decode-all"],
    "pack dry run": ["pack", "tree", "x.pack", "--dry-run"],
    "pack": ["pack", "tree", "x.pack"],
    "tune dry run": ["tune", "tree", "--grid", "batch_size=1,2", "--dry-run"],
}


@pytest.fixture
def tree(tmp_path):
    """A picture under each name, at tree/. Gives the relative paths as Python has them, sorted by their bytes."""
    (tmp_path / "tree").mkdir()
    return [os.fsdecode(path) for path in hostile_names.write_tree(tmp_path / "tree", lambda number: png_bytes(seed=number))]


@pytest.fixture
def spoiled(tree, tmp_path):
    """The same, all but the first picture bad. Gives the bad ones."""
    for path in tree[1:]:
        (tmp_path / "tree" / path).write_bytes(b"not a picture at all")
    return tree[1:]


def opened(tmp_path, names):
    """The files that the names lead to."""
    return [(tmp_path / "tree" / name).read_bytes() for name in names]


@pytest.mark.parametrize("verb", JSON_VERBS)
def test_text_is_safe_for_a_terminal(stoker, tree, verb):
    done = stoker(*JSON_VERBS[verb])
    assert done.returncode == 0, done.stderr
    assert hostile_names.is_safe(done.stdout) and hostile_names.is_safe(done.stderr)
    assert "\nerror: forged" not in "\n" + done.stdout + done.stderr


@pytest.mark.parametrize("verb", JSON_VERBS)
def test_json_is_valid_and_safe(stoker, tree, verb):
    done = stoker(*JSON_VERBS[verb], "--json")
    assert done.returncode == 0, done.stderr
    assert hostile_names.is_safe(done.stdout) and json.loads(done.stdout)["schema"]


def test_inspect_names_classes_and_bad_files(stoker, spoiled, tmp_path):
    done = stoker("inspect", "tree", "--classes", "100")
    assert done.returncode == 1 and hostile_names.is_safe(done.stdout)
    assert "caf\\xE9" in done.stdout and "two\\nlines" in done.stdout and "\\x1B[31mred\\x1B[0m" in done.stdout
    found = json.loads(stoker("inspect", "tree", "--json").stdout)
    assert [entry["name"] for entry in found["classes"]] == sorted(os.listdir(tmp_path / "tree"), key=os.fsencode)
    names = [entry["name"] for entry in found["examined"]["bad_files"]]
    assert names == spoiled and set(opened(tmp_path, names)) == {b"not a picture at all"}


def test_load_saves_errors_that_lead_back_to_the_files(stoker, spoiled, tmp_path):
    done = stoker("load", "tree", "--batch-size", "8", "--on-error", "skip", "--save-errors", "errors.json", "--save-subset", "subset.json", "--json")
    assert done.returncode == 0, done.stderr
    saved = json.loads((tmp_path / "errors.json").read_text())
    assert [error["name"] for error in saved["errors"]] == spoiled
    assert set(opened(tmp_path, [error["name"] for error in saved["errors"]])) == {b"not a picture at all"}
    assert all(hostile_names.is_safe(error["message"].encode("utf-8", "surrogateescape").decode("utf-8", "replace")) for error in saved["errors"])
    subset = json.loads((tmp_path / "subset.json").read_text())
    assert subset["paths"][1:] == spoiled


@pytest.mark.parametrize("name", [b"caf\xe9", b"\x1b[31mred", b"two\nerror: forged"])
def test_a_bad_file_is_named_in_one_safe_line(stoker, tmp_path, name):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.png").write_bytes(png_bytes())
    (tmp_path / "tree" / os.fsdecode(name + b".png")).write_bytes(b"not a picture")
    done = stoker("load", "tree")
    assert done.returncode == 2 and hostile_names.is_safe(done.stderr)
    assert done.stderr.count("error: ") == 1 + name.count(b"error: ") and done.stderr.startswith("error: cannot decode `")
    assert "\nerror" not in done.stderr


def test_check_names_bad_files(stoker, spoiled):
    done = stoker("check", "tree", "--json")
    assert done.returncode == 1
    assert [damage["name"] for damage in json.loads(done.stdout)["damaged"]] == spoiled
    assert hostile_names.is_safe(stoker("check", "tree").stdout)


@pytest.mark.parametrize("kind", ["encoded", "raw"])
def test_a_pack_keeps_names_and_classes(stoker, tree, tmp_path, kind):
    classes = sorted(os.listdir(tmp_path / "tree"), key=os.fsencode)
    assert stoker("pack", "tree", "x.pack", "--kind", kind).returncode == 0
    about = json.loads((tmp_path / "x.pack" / "pack.json").read_text())
    assert about["classes"] == classes
    lines = (tmp_path / "x.pack" / "names.txt").read_bytes().split(b"\n")[:-1]
    unescape = {b"\\\\": b"\\", b"\\n": b"\n", b"\\r": b"\r"}
    names = []
    for line in lines:
        out, at = b"", 0
        while at < len(line):
            step = 2 if line[at:at + 1] == b"\\" else 1
            out += unescape.get(line[at:at + step], line[at:at + step])
            at += step
        names.append(os.fsdecode(out))
    assert names == tree and len(opened(tmp_path, names)) == len(tree)
    found = json.loads(stoker("inspect", "x.pack", "--json").stdout)
    assert [entry["name"] for entry in found["classes"]] == classes
    assert stoker("check", "x.pack").returncode == 0
    # A second run knows every sample again.
    again = json.loads(stoker("pack", "tree", "x.pack", "--kind", kind, "--json").stdout)
    assert again["up_to_date"] and again["kept"] == len(tree)


def test_a_pack_of_bad_files_names_what_it_left_out(stoker, spoiled, tmp_path):
    done = stoker("pack", "tree", "x.pack", "--on-error", "skip", "--kind", "raw")
    assert done.returncode == 0 and hostile_names.is_safe(done.stdout), done.stderr
    assert [entry["name"] for entry in json.loads((tmp_path / "x.pack" / "pack.json").read_text())["skipped"]] == spoiled


def test_the_tars_of_a_pack_are_read_by_others_and_by_us(stoker, tree, tmp_path):
    assert stoker("pack", "tree", "x.pack").returncode == 0
    with tarfile.open(tmp_path / "x.pack" / "data-00000.tar", encoding="utf-8", errors="surrogateescape") as archive:
        pictures = [member for member in archive.getmembers() if member.name.endswith(".png")]
        contents = {archive.extractfile(member).read() for member in pictures}
    assert len(pictures) == len(tree) and contents == set(opened(tmp_path, tree))
    found = json.loads(stoker("load", "x.pack/data-00000.tar", "--json", "--save-subset", "subset.json").stdout)
    assert found["dataset"]["samples"] == len(tree)
    assert sorted(json.loads((tmp_path / "subset.json").read_text())["paths"]) == sorted(member.name for member in pictures)


def test_members_of_a_foreign_tar_keep_their_names(stoker, tree, tmp_path):
    with tarfile.open(tmp_path / "x.tar", "w", format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape") as archive:
        for path in tree:
            archive.add(tmp_path / "tree" / path, path)
    assert stoker("load", "x.tar", "--save-subset", "subset.json").returncode == 0
    paths = json.loads((tmp_path / "subset.json").read_text())["paths"]
    assert len(paths) > len(tree) / 2 and set(paths) <= set(tree)  # WebDataset's rules leave out names with a dot first


def test_rows_of_an_index_may_have_any_name(stoker, tree, tmp_path):
    with open(tmp_path / "tree" / "index.csv", "w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "label", os.fsdecode(b"remark \xe9\x1b[31m")])
        writer.writerows([path, os.path.dirname(path), os.fsdecode(b"\xff\n")] for path in tree)
    done = stoker("inspect", "tree/index.csv")
    assert done.returncode == 0 and hostile_names.is_safe(done.stdout)
    found = json.loads(stoker("inspect", "tree/index.csv", "--json").stdout)
    assert found["columns"] == [os.fsdecode(b"remark \xe9\x1b[31m")]
    assert stoker("pack", "tree/index.csv", "x.pack").returncode == 0
    text = (tmp_path / "x.pack" / "columns.csv").read_bytes().decode("utf-8", "surrogateescape")
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == [[os.fsdecode(b"\xff\n")]] * len(tree)


def test_a_data_set_may_have_any_name_itself(stoker, tree, tmp_path):
    for stem in hostile_names.STEMS:
        name = os.fsdecode(stem)
        if stem.startswith(b"-") or b"{" in stem:
            name = "./" + name
        (tmp_path / "tree").rename(tmp_path / name)
        done = stoker("inspect", name)
        assert done.returncode == 0 and hostile_names.is_safe(done.stdout), (stem, done.stderr)
        answer = json.loads(stoker("load", name, "--json").stdout)
        assert answer["dataset"]["address"] == name
        (tmp_path / name).rename(tmp_path / "tree")


def test_a_tuned_run_over_them_reports_safely(stoker, tree, tmp_path):
    done = stoker("tune", "tree", "--grid", "batch_size=2", "--bench-steps", "2", "--warmup-steps", "1", "--subset", "20", "--out", "runs", timeout=300)
    assert done.returncode == 0, done.stderr
    assert hostile_names.is_safe(done.stdout) and hostile_names.is_safe(done.stderr)
    [folder] = (tmp_path / "runs").rglob("subset.json")
    assert set(json.loads(folder.read_text())["paths"]) <= set(tree)
    report = stoker("report", str(folder.parent))
    assert report.returncode == 0 and hostile_names.is_safe(report.stdout), report.stderr
    for written in ("report.html", "report.md"):
        text = (folder.parent / written).read_text()
        assert "<script>&amp;.png" not in text and hostile_names.is_safe(text)
