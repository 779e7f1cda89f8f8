"""The engine's table of options is what Loader takes, with the same defaults."""

import inspect
import pathlib

import numpy
import pytest

import stoker
from stoker import _engine

# Keywords of Loader that only Python has. Everything else is a row of the table.
PYTHON_ONLY = {"samples", "dataset", "sampler", "batch_sampler", "batch_transform", "output", "copy", "device", "persistent_workers", "python_workers"}
TABLE = {row["name"]: row for row in _engine.loader_options()}


def keywords():
    parameters = inspect.signature(stoker.Loader.__init__).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}


def test_the_signature_has_every_option_of_the_table_and_no_other():
    assert set(keywords()) == set(TABLE) | PYTHON_ONLY


@pytest.mark.parametrize("name", TABLE)
def test_a_default_of_the_signature_is_that_of_the_table(name):
    row, default = TABLE[name], keywords()[name]
    if default is None:
        assert row["takes_none"], "None is not a value of this option"
    else:
        assert (default, type(default)) == (row["default"], type(row["default"]))


@pytest.mark.parametrize("name", TABLE)
def test_the_help_of_loader_names_every_option(name):
    assert name in stoker.Loader.__doc__


@pytest.mark.parametrize("name", TABLE)
def test_a_value_of_the_wrong_type_names_the_option_and_the_right_values(name):
    with pytest.raises(ValueError) as caught:
        _engine.checked_option(name, [1, 2])
    assert caught.value.option == name
    assert caught.value.message == f"{name} is {TABLE[name]['values']}, not `[1, 2]`"


def test_numbers_of_numpy_are_taken():
    assert _engine.checked_option("batch_size", numpy.int32(4)) == 4
    assert _engine.checked_option("max_errors", numpy.float32(0.5)) == 0.5
    for wrong in (True, numpy.float64(4), 4.0, -4, 2**70, "4"):
        with pytest.raises(ValueError, match="batch_size is a whole number"):
            _engine.checked_option("batch_size", wrong)


def test_an_unknown_option_offers_the_nearest(photos):
    dataset = _engine.open_dataset(str(photos), label=[], use_cache=False, options={})
    with pytest.raises(ValueError, match="no option `bach_size`") as caught:
        _engine.Loader(dataset, {"bach_size": 4})
    assert caught.value.hint == "did you mean batch_size?"


def test_the_options_in_force_are_those_of_the_table(photos):
    with stoker.Loader(photos, batch_size=4, shuffle=numpy.bool_(True), timeout="2m", memory_limit="64MB", last_batch="pad") as loader:
        options = loader.options
    assert set(options) == {name for name, row in TABLE.items() if row["heading"] != "samples"} | {"output"}
    assert (options["batch_size"], options["shuffle"], options["timeout"]) == (4, True, 120.0)
    assert (options["memory_limit"], options["last_batch"], options["drop_last"]) == (64_000_000, "pad", False)


def test_encoded_bytes_come_as_they_are(photos):
    with stoker.Loader(photos, batch_size=2, decode="none", output="numpy", copy=True) as loader:
        batch = next(iter(loader))
    first = bytes(batch.data[0, : batch.lengths[0]])
    assert first == (photos / batch.names[0]).read_bytes()


@pytest.mark.parametrize("output", ["numpy", "torch"])
@pytest.mark.parametrize("copy", [False, True])
def test_encoded_bytes_come_row_by_row_and_padded(photos, output, copy):
    with stoker.Loader(photos, batch_size=4, decode="none", output=output, copy=copy) as loader:
        for batch in loader:
            wanted = [(photos / name).read_bytes() for name in batch.names]
            assert "encoded" in repr(batch) or copy
            assert [bytes(row.tolist()) for row in batch.rows] == wanted
            data, labels = batch
            assert data.shape == (len(wanted), max(map(len, wanted))) and len(labels) == len(wanted)
            assert [bytes(data[i].tolist()) for i in range(len(wanted))] == [file.ljust(data.shape[1], bytes(1)) for file in wanted]
            assert [bytes(row.tolist()) for row in batch.rows] == wanted, "also once the padded array was made"


def test_rows_of_skipped_samples_are_left_out_of_encoded_batches(photos, tmp_path):
    listed = sorted(map(str, photos.rglob("*.jpg")))[:3]
    listed.insert(1, str(tmp_path / "gone.jpg"))
    (tmp_path / "gone.jpg").write_bytes(b"soon")
    with stoker.Loader(samples=listed, batch_size=4, decode="none", shuffle=False, on_error="skip", output="numpy") as loader:
        (tmp_path / "gone.jpg").unlink()
        batch = next(iter(loader))
        assert [bytes(row) for row in batch.rows] == [pathlib.Path(path).read_bytes() for path in listed if "gone" not in path]


@pytest.mark.parametrize("name", ["drop_last", "exif_orientation", "pin_memory", "copy"])
@pytest.mark.parametrize("value", ["off", "on", "", 2, [1]])
def test_a_switch_takes_no_text(photos, name, value):
    """`drop_last="off"` would be true."""
    with pytest.raises(stoker.UsageError, match=f"{name} is True or False") as caught:
        stoker.Loader(photos, **{name: value})
    assert caught.value.option == name


def test_an_epoch_without_a_batch_is_noted(photos):
    with stoker.Loader(photos, batch_size=1000, drop_last=True) as loader:
        assert len(loader) == 0 and any("an epoch has no batch: batch_size=1000" in note for note in loader.notes)
