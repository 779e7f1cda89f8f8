"""What a batch is: arrays in the loader's memory, who keeps it, and what else comes with them."""

import gc
import threading

import numpy
import pytest
from PIL import Image

import stoker
from stoker import numpy as numpy_framework


def load(path, **options):
    return stoker.Loader(path, **{"output": "numpy", "batch_size": 4, **options})


def held(loader):
    gc.collect()
    return loader.stats()["slabs_held"]


def test_a_batch_unpacks_to_data_and_labels(photos):
    with load(photos) as loader:
        batch = next(iter(loader))
        data, labels = batch
        assert data is batch.data is batch[0] and labels is batch.labels is batch[1] and len(batch) == 2
        assert data.shape == (4, 3, 40, 48) and data.dtype == numpy.uint8
        assert labels.dtype == numpy.int64 and labels.tolist() == [0, 0, 0, 0]
        assert loader.classes == ["cat", "dog", "emu"] and loader.num_samples == 24
        assert batch.names == ["cat/000.jpg", "cat/003.jpg", "cat/006.jpg", "cat/009.jpg"]
        assert batch.indices.tolist() == [0, 1, 2, 3] and len(set(batch.ids.tolist())) == 4
        assert batch.valid.dtype == bool and batch.valid.all()
        assert batch.lengths is None and batch.coords is None and batch.size == 4
        assert "uint8 [4, 3, 40, 48]" in repr(batch)


@pytest.mark.parametrize("layout, shape, strides", [
    ("NCHW", (4, 3, 16, 20), (960, 320, 20, 1)), ("NHWC", (4, 16, 20, 3), (960, 60, 3, 1)),
    ("channels_last", (4, 3, 16, 20), (960, 1, 60, 3))])
def test_layouts_hold_the_same_picture(photos, layout, shape, strides):
    with load(photos, transform="resize:16x20", layout=layout) as loader, load(photos, transform="resize:16x20") as plain:
        data, expected = next(iter(loader)).data, next(iter(plain)).data
        assert data.shape == shape and data.strides == strides
        numpy.testing.assert_array_equal(data.transpose(0, 3, 1, 2) if layout == "NHWC" else data, expected)


def test_arrays_are_views_that_hold_the_slab(photos):
    with load(photos) as loader:
        iterator = iter(loader)
        batch = next(iterator)
        assert held(loader) == 1
        data, labels, ids = batch.data, batch.labels, batch.ids
        assert not data.flags.owndata and not labels.flags.owndata
        part = data[2:3, :, ::2]
        del batch, data, ids
        assert held(loader) == 1
        del labels
        assert held(loader) == 1, "a slice of the data still needs the slab"
        del part
        assert held(loader) == 0


def test_a_slab_may_be_dropped_by_another_thread(photos):
    with load(photos) as loader:
        box = [next(iter(loader)).data]
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()
        assert held(loader) == 0


def test_arrays_outlive_their_loader(photos):
    loader = load(photos)
    data, labels = next(iter(loader))
    copy = data.copy()
    loader.close()
    numpy.testing.assert_array_equal(data, copy)
    del loader
    gc.collect()
    numpy.testing.assert_array_equal(data, copy)
    assert labels.tolist() == [0, 0, 0, 0]


def test_a_held_batch_is_not_overwritten(array):
    with load(array(200), prefetch_factor=1) as loader:
        iterator = iter(loader)
        kept = next(iterator).data
        for _ in iterator:
            pass
        assert kept[:, 0].tolist() == [0, 1, 2, 3]


def test_keeping_every_batch_ends_with_an_error_that_names_the_remedy(big_array):
    with load(big_array, batch_size=16, memory_limit="16MB", timeout=60) as loader:
        with pytest.raises(stoker.Error) as caught:
            list(loader)
        text = str(caught.value)
        assert "copy=True" in text and any(unit in text for unit in ("MiB", "KiB", "GiB"))
        assert any(character.isdigit() for character in text)


def test_copy_gives_arrays_of_their_own(big_array):
    with load(big_array, batch_size=100, memory_limit="64MB", copy=True) as loader:
        batches = list(loader)
        assert held(loader) == 0
    assert [int(value) for batch in batches for value in batch.data[:, 0]] == list(range(2000))
    assert batches[7].names[3].endswith("[703]") and batches[7].ids.flags.owndata


def test_the_data_is_a_dlpack_object(photos):
    with load(photos) as loader:
        batch = next(iter(loader))
        other = numpy.from_dlpack(batch)
        assert numpy.shares_memory(other, batch.data)
        assert batch.__dlpack_device__() == (1, 0)
    with load(photos, output="dlpack") as loader:
        data, labels = next(iter(loader))
        assert numpy.from_dlpack(data).shape == (4, 3, 40, 48) and labels.tolist() == [0, 0, 0, 0]


def test_a_dlpack_consumer_holds_the_slab(photos):
    with load(photos, output="dlpack") as loader:
        array = numpy.from_dlpack(next(iter(loader)).data)
        assert held(loader) == 1
        del array
        assert held(loader) == 0


def test_views_come_as_a_dict_by_group(photos):
    views = stoker.Views(big=(2, [stoker.RandomResizedCrop(20)]), small=(5, [stoker.RandomResizedCrop(8), stoker.ToFloat()]),
                         whole=(1, [stoker.Resize((10, 12))]))
    with load(photos, transform=[views]) as loader:
        batch = next(iter(loader))
        data, labels = batch
        assert list(data) == ["big", "small", "whole"] and len(labels) == 4
        assert data["big"].shape == (4, 2, 3, 20, 20) and data["big"].dtype == numpy.uint8
        assert data["small"].shape == (4, 5, 3, 8, 8) and data["small"].dtype == numpy.float32
        assert data["whole"].shape == (4, 3, 10, 12)
        assert (data["big"][:, 0] != data["big"][:, 1]).any(), "views are drawn independently"
        with pytest.raises(ValueError, match="3 tensors"):
            batch.__dlpack__()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_floats_come_in_the_type_asked_for(photos, dtype):
    with load(photos, transform=[stoker.ToFloat()], dtype=dtype) as loader, load(photos) as plain:
        data, expected = next(iter(loader)).data, next(iter(plain)).data
        assert data.dtype == dtype
        numpy.testing.assert_allclose(data.astype(float), expected / 255, atol=1e-3)


def test_bfloat16_needs_a_type_that_numpy_lacks(photos, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    with pytest.raises(ValueError, match="bfloat16") as caught:
        load(photos, transform=[stoker.ToFloat()], dtype="bfloat16")
    assert "ml_dtypes" in caught.value.hint and "torch" in caught.value.hint


def test_bfloat16_works_with_ml_dtypes(photos):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with load(photos, transform=[stoker.ToFloat()], dtype="bfloat16") as loader, load(photos) as plain:
        data = next(iter(loader)).data
        assert data.dtype == ml_dtypes.bfloat16
        numpy.testing.assert_array_equal(data, (next(iter(plain)).data / numpy.float32(255)).astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("labels, kind, expected", [
    ([5, 7], numpy.int64, [5, 7]), ([0.5, 2], numpy.float32, [0.5, 2.0]), (["b", "a"], numpy.int64, [1, 0]), ([None, None], numpy.int64, [-1, -1])])
def test_a_list_of_samples_brings_its_labels(photos, labels, kind, expected):
    paths = [photos / "emu" / "002.jpg", str(photos / "dog" / "001.jpg")]
    with load(None, samples=list(zip(paths, labels))) as loader:
        batch = next(iter(loader))
        assert batch.labels.dtype == kind and batch.labels.tolist() == expected
        assert [name.endswith(end) for name, end in zip(batch.names, ("002.jpg", "001.jpg"))] == [True, True]
        assert loader.classes == (["a", "b"] if isinstance(labels[0], str) else [])


def test_labels_of_different_kinds_are_refused(photos):
    with pytest.raises(ValueError, match="different kinds"):
        load(None, samples=[("a.jpg", 1), ("b.jpg", "cat")])


def test_an_index_csv_brings_labels_and_columns(photos, tmp_path):
    lines = [f"{path},{number * 0.5},{'yes' if number % 2 else 'no'}" for number, path in enumerate(sorted(photos.rglob("*.jpg")))]
    (tmp_path / "index.csv").write_text("path,age,sick\n" + "\n".join(lines) + "\n")
    with load(tmp_path / "index.csv", label="age") as loader:
        assert next(iter(loader)).labels.tolist() == [0.0, 0.5, 1.0, 1.5]
    with load(tmp_path / "index.csv", label="sick") as loader:
        assert next(iter(loader)).labels.tolist() == [0, 1, 0, 1] and loader.classes == ["no", "yes"]


def index_of(photos, tmp_path, rows):
    """An index.csv of the first photos with the columns a, b and text."""
    files = sorted(photos.rglob("*.jpg"))
    lines = [f"{file},{a},{b},{text}" for file, (a, b, text) in zip(files, rows)]
    (tmp_path / "index.csv").write_text("path,a,b,text\n" + "\n".join(lines) + "\n")
    return tmp_path / "index.csv"


def test_several_label_columns_give_a_row_of_labels(photos, tmp_path):
    index = index_of(photos, tmp_path, [(i, 10 * i, "x") for i in range(6)])
    with load(index, label=["b", "a"], transform="resize:8x8") as loader:
        batches = list(loader)
    assert [batch.labels.shape for batch in batches] == [(4, 2), (2, 2)]
    assert batches[0].labels.dtype == numpy.int64 and batches[0].labels.tolist() == [[0, 0], [10, 1], [20, 2], [30, 3]]
    with load(index, label=["a"], transform="resize:8x8", copy=True) as loader:
        assert next(iter(loader)).labels.tolist() == [0, 1, 2, 3]


def test_label_columns_of_reals_are_float32_and_follow_skipped_rows(photos, tmp_path):
    index = index_of(photos, tmp_path, [(i, i / 2, "x") for i in range(5)])
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"nothing that a codec reads")
    index.write_text(index.read_text().replace(str(sorted(photos.rglob("*.jpg"))[1]), str(bad)))
    with load(index, label=["a", "b"], transform="resize:8x8", on_error="skip", output="torch", copy=True) as loader:
        labels = next(iter(loader)).labels
    assert str(labels.dtype) == "torch.float32" and labels.tolist() == [[0, 0], [2, 1], [3, 1.5]]


@pytest.mark.parametrize("label, message", [
    (["a", "text"], "the label .`text`. is not a number"), (["a", "a"], "given twice"), (["a", "c"], "cannot find the label column `c`"),
    ([], "label= is a column"), ([3], "label= is a column"), (3, "label= is a column")])
def test_label_columns_that_cannot_be_are_refused(photos, tmp_path, label, message):
    index = index_of(photos, tmp_path, [(1, 2, "x")])
    with pytest.raises((stoker.Error, ValueError, FileNotFoundError), match=message):
        load(index, label=label)


def test_outputs_are_found_by_name(photos):
    with load(photos, transform="resize:8x8") as loader:
        batch = next(iter(loader))
        assert list(batch.outputs) == ["data"] and batch["data"] is batch.data
        with pytest.raises(KeyError, match="no output 'mask': it has data"):
            batch["mask"]
    with load(photos, transform="views(image=1[resize:8x8],mask=1[resize:4x4])") as loader:
        batch = next(iter(loader))
        assert list(batch.outputs) == ["image", "mask"]
        assert batch["image"].shape == (4, 3, 8, 8) and batch["mask"].shape == (4, 3, 4, 4)


def test_coords_of_a_slab_reach_the_batch_and_leave_it_with_the_rows():
    """No kind of sample has coords yet, so the slab is a stand-in."""
    class Slab:
        tensor_names, epoch, step, size, packs_rows = ["image", "mask"], 0, 0, 3, False
        numpy = staticmethod(lambda index: numpy.full((3, 2), index))
        labels = ids = indices = staticmethod(lambda: numpy.arange(3))
        lengths = staticmethod(lambda: numpy.empty(0, numpy.int64))
        valid = staticmethod(lambda: numpy.ones(3, numpy.uint8))
        coords = staticmethod(lambda: numpy.array([[0, 0, 4], [0, 8, 0], [16, 0, 0]]))

    batch = stoker.Batch(Slab(), numpy_framework, lambda indices: [str(index) for index in indices])
    assert batch.coords.tolist() == [[0, 0, 4], [0, 8, 0], [16, 0, 0]] and list(batch.outputs) == ["image", "mask"]
    batch._leave_slab(batch.data, batch.labels[[0, 2]], keep=[0, 2])
    assert batch.coords.tolist() == [[0, 0, 4], [16, 0, 0]] and batch.size == 2


def test_subsets_and_inflation(photos):
    with load(photos, subset=5, copy=True, shuffle=True) as loader:
        assert loader.num_samples == 5
        first = sorted(name for batch in loader for name in batch.names)
    with load(photos, subset=5, copy=True, inflate=3, batch_size=5) as loader:
        batches = list(loader)
        assert [sorted(batch.names) for batch in batches] == [first] * 3
        assert len({int(number) for batch in batches for number in batch.ids}) == 15, "copies have ids of their own"
    with load(photos, class_subset=2) as loader:
        assert len(loader.classes) == 2 and loader.num_samples == 16


def test_classes_are_taken_by_name_from_a_list_and_from_a_file(photos, tmp_path):
    with load(photos) as loader:
        classes = loader.classes
    wanted = [classes[2], classes[0]]
    (tmp_path / "classes.txt").write_text(f"# two of them\n{wanted[0]}\n{wanted[1]}\n")
    for names in (wanted, tuple(wanted), tmp_path / "classes.txt", str(tmp_path / "classes.txt")):
        with load(photos, class_list=names, copy=True) as loader:
            assert loader.classes == sorted(wanted) and loader.num_samples == 16
            found = {(name.split("/")[0], int(label)) for batch in loader for name, label in zip(batch.names, batch.labels)}
            assert found == set(zip(sorted(wanted), range(2)))
    with pytest.raises(FileNotFoundError, match="no such class") as caught:
        load(photos, class_list=[classes[0] + "x"])
    assert caught.value.option == "class_list"
    for wrong in ([], [1], 3):
        with pytest.raises(ValueError, match="class_list is a list of names or a file"):
            load(photos, class_list=wrong)


def test_classes_of_samples_are_their_texts(photos):
    samples = [(path, path.parent.name) for path in sorted(photos.rglob("*.jpg"))]
    classes = sorted({name for _, name in samples})
    with load(None, samples=samples, class_list=classes[1:], copy=True) as loader:
        assert loader.classes == classes[1:]
        assert {(str(name).split("/")[-2], int(label)) for batch in loader for name, label in zip(batch.names, batch.labels)} == set(zip(classes[1:], range(9)))
    with load(None, samples=samples, class_subset=1) as loader:
        assert len(loader.classes) == 1
    with pytest.raises(ValueError, match="it has no classes"):
        load(None, samples=[(path, 0) for path, _ in samples], class_list=["a"])


def test_arrays_of_an_npz_are_loaded_by_name(tmp_path):
    for number in range(3):
        numpy.savez(tmp_path / f"{number}.npz", image=numpy.full(4, number), mask=numpy.full((2, 2), number, numpy.uint8), meta=numpy.ones(1))
    with pytest.raises(stoker.UsageError, match="`0.npz` holds 3 arrays: `image`, `mask`, `meta`"):
        load(tmp_path)
    with pytest.raises(stoker.UsageError, match="arrays names `label`, and `0.npz` holds `image`, `mask`, `meta`"):
        load(tmp_path, arrays="label")
    with load(tmp_path, batch_size=1, arrays="image") as loader:
        assert [batch.data.tolist() for batch in loader] == [[[number] * 4] for number in range(3)]
    with load(tmp_path, batch_size=3, arrays=("mask", "image")) as loader:
        batch = next(iter(loader))
        assert batch["image"].shape == (3, 4) and batch["mask"].dtype == numpy.uint8 and batch["mask"][2].tolist() == [[2, 2], [2, 2]]
    numpy.savez(tmp_path / "0.npz", image=numpy.full(4, 0))
    with load(tmp_path, batch_size=1, on_error="skip") as loader:
        assert sum(batch.size for batch in loader) == 1
        assert "several arrays" in loader.errors[0].cause
    for wrong in (3, [], ["a", "a"], [1]):
        with pytest.raises(stoker.UsageError, match="arrays"):
            load(tmp_path, arrays=wrong)


@pytest.mark.parametrize("save", [numpy.savez, numpy.savez_compressed])
@pytest.mark.parametrize("num_workers", [0, 2])
def test_arrays_of_different_shapes_are_padded_or_listed(tmp_path, save, num_workers):
    random = numpy.random.default_rng(1)
    arrays = [random.integers(0, 1000, (2 + number % 3, 5 - number % 4), dtype=numpy.int16) for number in range(6)]
    for number, array in enumerate(arrays):
        save(tmp_path / f"{number}.npz", x=array, y=numpy.arange(number + 1, dtype=numpy.float32))
    with load(tmp_path, arrays="x", shapes="list", num_workers=num_workers) as loader:
        for batch in loader:
            assert isinstance(batch.data, list) and batch.lengths.shape == (batch.size, 2)
            for array, index, extents in zip(batch.data, batch.indices.tolist(), batch.lengths.tolist(), strict=True):
                assert array.dtype == numpy.int16 and (array == arrays[index]).all() and list(array.shape) == extents
    with load(tmp_path, arrays=("x", "y"), shapes="pad", num_workers=num_workers) as loader:
        batch = next(iter(loader))
        assert batch["x"].shape == (4, 4, 5) and batch["y"].shape == (4, 4)
        for row, (height, width) in enumerate(batch.lengths["x"].tolist()):
            assert (batch["x"][row, :height, :width] == arrays[row]).all()
            assert batch["x"][row, height:].sum() == 0 and batch["x"][row, :, width:].sum() == 0
        assert batch.lengths["y"].tolist() == [[1], [2], [3], [4]]
    with load(tmp_path, arrays="x", shapes="pad", copy=True) as loader:
        kept = list(loader)
        assert [len(batch.rows) for batch in kept] == [4, 2] and (kept[1].rows[1] == arrays[5]).all()
    with pytest.raises(stoker.Error, match="shape"), load(tmp_path, arrays="x") as loader:
        list(loader)


def test_shapes_work_with_torch_and_bad_samples(tmp_path):
    torch = pytest.importorskip("torch")
    for number in range(4):
        numpy.save(tmp_path / f"{number}.npy", numpy.full((number + 1, 2), number, numpy.float32))
    (tmp_path / "2.npy").write_bytes(b"no array")
    with load(tmp_path, shapes="list", output="torch", on_error="zero") as loader:
        batch = next(iter(loader))
        assert [tuple(array.shape) for array in batch.data] == [(1, 2), (2, 2), (0, 0), (4, 2)] and batch.data[3].dtype == torch.float32
        assert batch.valid.tolist() == [True, True, False, True]
        assert batch.to("cpu") is batch and "list of 4 arrays" in repr(batch)
    for match, options in (("transform does not go with shapes", {"transform": [stoker.Normalize(0, 1)]}), ("dtype does not go with shapes", {"dtype": "float16"})):
        with pytest.raises(stoker.UsageError, match=match):
            load(tmp_path, shapes="pad", on_error="skip", **options)
    numpy.save(tmp_path / "rows.npy", numpy.zeros((4, 2)))
    with pytest.raises(stoker.UsageError, match="shapes does not go with"):
        load(tmp_path / "rows.npy", shapes="list")


def test_a_window_that_assumes_no_offset_says_so(tmp_path):
    Image.fromarray(numpy.full((8, 8), 33000, numpy.uint16)).save(tmp_path / "a.png")
    (tmp_path / "without.csv").write_text("path,label\na.png,0\n")
    (tmp_path / "with.csv").write_text("path,label,hu_offset\na.png,0,32768\n")

    def says(index, *transform):
        with stoker.Loader(tmp_path / index, color="keep", output="numpy", transform=transform) as loader:
            return any("Window assumes an offset of 0" in note for note in loader.notes)

    assert says("without.csv", stoker.Window())
    assert says("without.csv", stoker.Views(one=(1, [stoker.Window(), stoker.Resize((4, 4))])))
    assert not says("without.csv", stoker.Window(offset=32768))
    assert not says("with.csv", stoker.Window())
    assert not says("without.csv", stoker.Resize((4, 4)))
