"""File names are bytes: those that are not UTF-8, and those that a terminal would obey, come through as os.fsdecode has them."""

import csv
import json
import os

import hostile_names
import numpy
import pytest
from conftest import encoded_picture

import stoker


def load(source=None, **options):
    return stoker.Loader(source, **{"output": "numpy", "batch_size": 4, "cache_dir": False, **options})


@pytest.fixture
def tree(tmp_path):
    """One picture under each name. `tree.paths` are relative, as os.fsdecode gives them, sorted by their bytes."""
    root = tmp_path / "tree"
    root.mkdir()
    root_paths = hostile_names.write_tree(root, lambda number: encoded_picture(number))
    return root, [os.fsdecode(path) for path in root_paths]


def test_names_and_classes_of_a_folder_open_the_files(tree):
    root, paths = tree
    with load(root) as loader:
        names = [name for batch in loader for name in batch.names]
        assert names == paths and all((root / name).is_file() for name in names)
        assert loader.classes == sorted(os.listdir(root), key=os.fsencode)
        assert loader.notes is not None and repr(loader)


def test_samples_takes_every_name_as_text_bytes_or_path(tree):
    root, paths = tree
    listed = [[os.fsencode(root / path), os.fsdecode(root / path), root / path][number % 3] for number, path in enumerate(paths)]
    with load(samples=listed) as loader:
        assert [name for batch in loader for name in batch.names] == [str(root / path) for path in paths]
    with load(samples=[(root / path, os.path.dirname(path)) for path in paths]) as loader:
        assert sorted(loader.classes) == sorted({os.path.dirname(path) for path in paths})


def test_a_source_may_have_any_name(tree):
    root, paths = tree
    for source in (os.fsencode(root / "caf\udce9"), root / "caf\udce9", str(root / "caf\udce9")):
        with load(source) as loader:
            assert loader.num_samples == len([path for path in paths if path.startswith("caf\udce9/")])
    with pytest.raises(stoker.Error, match="nothing") as caught:
        load(root / "nothing-\udce9")
    assert "nothing-\udce9" in caught.value.message


@pytest.mark.parametrize("text", ["half \ud83d.png", "other half \udc00.png"])
def test_a_path_that_no_file_can_have_is_refused_in_one_sentence(tmp_path, text):
    with pytest.raises(ValueError, match="no file can have"):
        load(samples=[text])
    with pytest.raises(ValueError, match="no file can have"):
        load(text)


def test_rows_of_an_index_may_have_any_name_and_class(tree, tmp_path):
    root, paths = tree
    with open(root / "index.csv", "w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "label", "remark \udce9"])
        writer.writerows([path, os.path.dirname(path), "caf\udce9"] for path in paths)
    with load(root / "index.csv") as loader:
        assert [name for batch in loader for name in batch.names] == paths
        assert loader.classes == sorted({os.path.dirname(path) for path in paths}, key=os.fsencode)


def test_a_bad_file_is_raised_with_its_name_and_cause(tmp_path):
    name = os.fsdecode(b"caf\xe9.png")
    (tmp_path / "a.png").write_bytes(encoded_picture(0))
    (tmp_path / name).write_bytes(b"not a picture")
    with load(tmp_path) as loader, pytest.raises(stoker.Error) as caught:
        list(loader)
    assert name in caught.value.message and caught.value.kind in ("corrupt", "unsupported") and ": " in caught.value.message


def test_messages_hold_nothing_that_a_terminal_obeys(tmp_path):
    name = "\x1b[31m\x9b31m\u202e\nerror: forged.png"
    (tmp_path / "a.png").write_bytes(encoded_picture(0))
    (tmp_path / name).write_bytes(b"not a picture")
    with load(tmp_path) as loader, pytest.raises(stoker.Error) as caught:
        list(loader)
    assert hostile_names.is_safe(str(caught.value)) and "\n" not in caught.value.message and "forged" in caught.value.message
    with load(samples=[tmp_path / "a.png", tmp_path / name], on_error="skip") as loader:
        list(loader)
        [error] = loader.errors
        assert error.name == str(tmp_path / name) and hostile_names.is_safe(str(error)) and "\n" not in str(error)


@pytest.mark.parametrize("decode", ["exact", "callable"])
def test_saved_errors_lead_back_to_the_files(tree, tmp_path, decode):
    root, paths = tree
    for path in paths[1:]:
        (root / path).write_bytes(b"not a picture")

    def refuse(view):
        if bytes(view).startswith(b"not"):
            raise ValueError("not a picture")
        return numpy.zeros(3)

    with load(root, on_error="skip", batch_size=100, decode=refuse if decode == "callable" else decode) as loader:
        list(loader)
        errors = loader.errors
    paths = paths[1:]
    assert [error.name for error in errors] == paths
    errors.save(tmp_path / "errors.json")
    errors.save(tmp_path / "errors.csv")
    assert [row["name"] for row in json.loads((tmp_path / "errors.json").read_text())] == paths
    with open(tmp_path / "errors.csv", newline="", encoding="utf-8", errors="surrogateescape") as file:
        assert [row["name"] for row in csv.DictReader(file)] == paths


def test_a_pack_writer_keeps_names_and_classes(tmp_path):
    names = [os.fsdecode(stem) for stem in hostile_names.STEMS]
    classes = [os.fsdecode(name) for name in hostile_names.CLASSES]
    dest = tmp_path / os.fsdecode(b"caf\xe9.pack")
    with stoker.PackWriter(dest, classes=classes) as writer:
        writer.append(numpy.zeros((len(names), 3), numpy.float32), numpy.arange(len(names)), [number % len(classes) for number in range(len(names))], names)
    with load(dest) as loader:
        assert [name for batch in loader for name in batch.names] == names and loader.classes == classes
    about = json.loads((dest / "pack.json").read_text())
    assert about["classes"] == classes
