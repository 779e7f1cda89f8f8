"""Python callables in the calling thread: in transform=, batch_transform=, decode=."""

import io
import time

import numpy
import pytest

import stoker


def load(path, **options):
    return stoker.Loader(path, **{"output": "numpy", "batch_size": 4, **options})


def test_a_callable_in_transform_takes_one_sample(photos):
    shapes = []

    def gray(image):
        shapes.append(image.shape)
        return image[:1] * 0 + 7

    with load(photos, transform=[stoker.Resize((8, 8)), gray]) as loader:
        data, labels = next(iter(loader))
        assert data.shape == (4, 1, 8, 8) and (data == 7).all() and len(labels) == 4
    assert set(shapes) == {(3, 8, 8)}


def test_callables_give_the_batches_that_python_workers_give(photos):
    def batches(**options):
        with load(photos, transform=[stoker.Resize((8, 8)), numpy.flipud, stoker.Normalize("imagenet")], **options) as loader:
            return [batch.data.copy() for batch in loader]

    for ours, theirs in zip(batches(), batches(python_workers=1), strict=True):
        numpy.testing.assert_array_equal(ours, theirs)


def test_batch_transform_takes_and_returns_both(photos):
    with load(photos, batch_transform=lambda data, labels: (data.astype(float), labels + 10)) as loader:
        data, labels = next(iter(loader))
        assert data.dtype == float and labels.tolist() == [10, 10, 10, 10]


def test_a_batch_transform_that_forgets_the_labels_is_told_so(photos):
    with load(photos, batch_transform=lambda data, labels: data) as loader, pytest.raises(ValueError, match="not \\(data, labels\\)"):
        next(iter(loader))


def test_an_exception_of_a_callable_names_the_sample(photos):
    def broken(image):
        raise KeyError("mine")

    with load(photos, transform=[broken]) as loader, pytest.raises(stoker.Error, match="cannot transform `.*: KeyError: 'mine'") as caught:
        next(iter(loader))
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_exception_of_batch_transform_comes_through(photos):
    def broken(data, labels):
        raise KeyError("mine")

    with load(photos, batch_transform=broken) as loader, pytest.raises(KeyError, match="mine"):
        next(iter(loader))


def test_time_in_callables_is_shown_as_python(photos):
    def slow(data):
        time.sleep(0.02)
        return data

    with load(photos, transform=[slow]) as loader:
        for _ in loader:
            pass
        stats = loader.stats()
        assert stats["python_s"] >= 6 * 0.02 and stats["compute_s"] < stats["python_s"]
        assert loader.summary().startswith("python_bound") and "python" in loader.summary()
        loader.reset_stats()
        assert loader.stats()["python_s"] == 0


@pytest.fixture
def records(tmp_path):
    """Files of a format that Stoker lacks: two numbers and a text."""
    for number in range(10):
        (tmp_path / f"{number}.rec").write_bytes(bytes([number, number * 2]) + b"x" * number)
    return tmp_path


def two_numbers(view):
    return numpy.array([view[0], view[1], len(view)], dtype=numpy.int32)


def samples(folder):
    return [(path, int(path.stem)) for path in sorted(folder.glob("*.rec"))]


def test_decode_is_given_the_bytes_of_one_file(records):
    kinds = set()

    def decode(view):
        kinds.add(type(view))
        return two_numbers(view)

    with load(None, samples=samples(records), decode=decode) as loader:
        batches = list(loader)
    assert numpy.concatenate([batch.data for batch in batches]).tolist() == [[n, 2 * n, n + 2] for n in range(10)]
    assert [int(label) for batch in batches for label in batch.labels] == list(range(10))
    assert kinds == {memoryview} and batches[2].names[1].endswith("9.rec")
    assert loader.stats()["python_s"] > 0


def test_decode_may_return_a_view_of_its_argument(records):
    with load(None, samples=samples(records), decode=lambda view: numpy.frombuffer(view[:2], numpy.uint8)) as loader:
        assert numpy.concatenate([batch.data for batch in loader]).tolist() == [[n, 2 * n] for n in range(10)]


def picky(view):
    if view[0] == 5:
        raise ValueError("five is bad")
    return two_numbers(view)


def test_decode_that_raises_names_the_file(records):
    with load(None, samples=samples(records), decode=picky) as loader:
        with pytest.raises(stoker.Error, match="5.rec.*five is bad") as caught:
            list(loader)
        assert isinstance(caught.value.__cause__, ValueError)


def test_decode_that_raises_obeys_skip_and_zero(records):
    with load(None, samples=samples(records), decode=picky, on_error="skip") as loader:
        batches = list(loader)
        assert [int(label) for batch in batches for label in batch.labels] == [0, 1, 2, 3, 4, 6, 7, 8, 9]
        assert [batch.size for batch in batches] == [4, 3, 2] and len(batches[1].ids) == 3
        assert len(loader.errors) == 1 and loader.errors[0].name.endswith("5.rec") and loader.errors[0].action == "skip"
        assert loader.stats()["errors"] == 1
    with load(None, samples=samples(records), decode=picky, on_error="zero") as loader:
        batches = list(loader)
        assert batches[1].data.tolist()[1] == [0, 0, 0] and batches[1].valid.tolist() == [True, False, True, True]


@pytest.mark.parametrize("place", [{}, {"rank": 1, "world_size": 2}], ids=["alone", "second of two ranks"])
@pytest.mark.parametrize("start", [0, 3], ids=["from the start", "resumed"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_bad_sample_has_the_same_position_whoever_finds_it(tmp_path, place, start, shuffle):
    """The engine knows the global position. What a Python decoder refuses is listed with the same one, also in a batch that lost a row."""
    listed = []
    for number in range(40):
        numpy.save(tmp_path / f"{number:02}.npy", numpy.full(3, number))
        listed.append((tmp_path / f"{number:02}.npy", number))
    for number in (2, 5, 12, 23, 31):
        (tmp_path / f"{number:02}.npy").write_bytes(b"not an array at all")

    def bad(decode):
        with load(None, samples=listed, decode=decode, on_error="skip", batch_size=6, drop_last=True, shuffle=shuffle, seed=9, prefetch_factor=0, **place) as loader:
            loader.load_state_dict({**loader.state_dict(), "position": start})
            (tmp_path / "01.npy").rename(tmp_path / "away")
            try:
                list(loader)
            finally:
                (tmp_path / "away").rename(tmp_path / "01.npy")
            return [(error.name, error.position, error.epoch) for error in loader.errors]

    assert bad(lambda view: numpy.load(io.BytesIO(view))) == bad("exact")


def test_what_decode_cannot_have_is_refused(records):
    with pytest.raises(ValueError, match="transform"):
        load(None, samples=samples(records), decode=picky, transform=[stoker.Resize(4)])


def test_a_decoded_array_of_another_shape_is_a_bad_sample(records):
    with load(None, samples=samples(records), decode=lambda view: numpy.zeros(len(view))) as loader:
        with pytest.raises(stoker.Error, match="cannot decode `.*1.rec`"):
            next(iter(loader))


@pytest.mark.parametrize("returned, name", [(None, "None"), ({}, "dict"), ("text", "str"), ([1, None], "list")])
def test_decode_that_returns_no_array_names_the_sample(records, returned, name):
    with load(None, samples=samples(records), decode=lambda view: returned) as loader:
        with pytest.raises(stoker.Error, match=f"cannot decode .*0.rec.*it returned {name}.*, not an array of numbers"):
            next(iter(loader))
    with load(None, samples=samples(records), decode=lambda view: returned if view[0] == 2 else numpy.zeros(3), on_error="skip") as loader:
        assert next(iter(loader)).data.shape == (3, 3)
        assert [error.index for error in loader.errors] == [2]


def test_decode_and_batch_callables_work_together(records):
    with load(None, samples=samples(records), decode=two_numbers, transform=[lambda numbers: numbers + 1],
              batch_transform=lambda data, labels: (data * 2, labels)) as loader:
        assert next(iter(loader)).data[1].tolist() == [4, 6, 8]
