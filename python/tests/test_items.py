"""Loader(dataset=...): the items of a map-style Dataset, in the calling thread and in workers."""

import json
import re

import numpy
import per_sample
import pytest

import stoker


def load(dataset, **options):
    return stoker.Loader(dataset=dataset, **{"output": "numpy", "batch_size": 4, "copy": True, **options})


def plain(value):
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value.tolist() if hasattr(value, "tolist") else value


def test_items_come_as_default_collate_gives_them():
    torch = pytest.importorskip("torch")
    with load(per_sample.Items(), output="torch") as loader:
        mine = list(loader)
    theirs = list(torch.utils.data.DataLoader(per_sample.Items(), batch_size=4))
    assert len(mine) == len(theirs) == 6
    for a, b in zip(mine, theirs, strict=True):
        assert list(a) == list(b) and type(a["pair"]) is type(b["pair"])
        assert a["pair"][1] == b["pair"][1]
        for x, y in [(a[key], b[key]) for key in ("image", "number", "half", "is_even")] + [(a["pair"][0], b["pair"][0])]:
            assert x.dtype == y.dtype and x.shape == y.shape
        assert all(torch.equal(a[key], b[key]) for key in ("number", "half", "is_even"))


def test_items_are_the_same_with_any_number_of_workers_and_resume():
    seen = []
    for workers in (None, 0, 2):
        with load(per_sample.Items(), shuffle=True, seed=4, python_workers=workers) as loader:
            seen.append([plain(batch) for batch in loader])
    assert seen[0] == seen[1] == seen[2]
    assert sorted(number for batch in seen[0] for number in batch["number"]) == list(range(21))
    with load(per_sample.Items(), shuffle=True, seed=4, python_workers=2) as loader:
        iterator = iter(loader)
        for _ in range(2):
            next(iterator)
        state = loader.state_dict()
    with load(per_sample.Items(), shuffle=True, seed=4) as loader:
        loader.load_state_dict(state)
        assert [plain(batch) for batch in loader] == seen[0][2:]
        assert len(loader) == 6 and loader.num_samples == 21
    with load(per_sample.Items(), sampler=[7, 3, 3, 1], python_workers=1) as loader:
        assert [plain(batch)["number"] for batch in loader] == [[7, 3, 3, 1]]


def straight_and_resumed(make, read):
    """What is left after each number of batches: of one run, and of a run that resumes there, with the state as a checkpoint keeps it."""
    with make() as loader:
        straight, states, taken = [], [], iter(loader)
        for batch in taken:
            straight.append(read(batch))
            states.append(json.loads(json.dumps(loader.state_dict())))
    for number, state in enumerate(states[:-1]):
        with make() as loader:
            loader.load_state_dict(state)
            assert loader.state_dict() == state
            yield straight[number + 1 :], [read(batch) for batch in loader]


def shown(batch):
    return plain(batch["point"].x), str(batch["point"].x.dtype), batch["point"].name, plain(batch[1]), type(batch["point"])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_resumed_run_judges_items_as_the_first_item_of_all_decided(workers):
    for straight, resumed in straight_and_resumed(lambda: load(per_sample.Mixed(), python_workers=workers, on_error="skip"), shown):
        assert resumed == straight
    for straight, resumed in straight_and_resumed(lambda: load(per_sample.Mixed(), python_workers=workers, on_error="replace", batch_size=7), shown):
        assert resumed == straight


def test_a_state_tells_the_form_of_items_and_may_lack_it():
    with load(per_sample.Mixed(), on_error="skip") as loader:
        assert "results" not in loader.state_dict()
        next(iter(loader))
        state = loader.state_dict()
        assert state["results"] == {"dict": [["point", {"named": ["per_sample", "Point", "x", "name"], "items": [["<f4", 2], ["object"]]}], [1, {"items": [["<i8"]]}]]}
        loader.load_state_dict({**state, "results": {"items": [["<f8", 2]]}})
        assert loader.state_dict()["results"] == {"items": [["<f8", 2]]}
    del state["results"]
    with load(per_sample.Mixed(), on_error="skip", sampler=list(range(4, 8))) as loader:
        before = loader.state_dict()
        loader.load_state_dict(before)
        assert plain(next(iter(loader))[1]) == [[4, 7]]
    with load(per_sample.Items()) as loader:
        for wrong in (5, "x", "in place", [], [1], ["<f4", -1], ["<f4", 2.0], ["O"], ["V8"], ["float32"], {"dict": 3},
                      {"dict": [[[], ["<f4"]]]}, {"items": 5}, {"named": ["a"], "items": []}, {"x": 1}, {"dict": [], "items": []}):
            with pytest.raises(ValueError, match="cannot load a state: results is"):
                loader.load_state_dict({**state, "results": wrong})
        deep = ["<f4"]
        for _ in range(500):
            deep = {"items": [deep]}
        with pytest.raises(ValueError, match="cannot load a state: results is"):
            loader.load_state_dict({**state, "results": deep})


def test_a_rank_without_any_item_says_so():
    with load([1, 2], rank=3, world_size=4) as loader, pytest.raises(ValueError, match="this rank gets no item of step 0"):
        next(iter(loader))


@pytest.mark.parametrize("workers", [0, 1])
def test_an_item_that_raises_obeys_on_error(workers):
    with load(per_sample.Pairs(), python_workers=workers) as loader, pytest.raises(stoker.Error, match=r"cannot load `Pairs\[5\]`: KeyError") as caught:
        list(loader)
    assert caught.value.hint == 'on_error="skip" or "replace" goes on without it'
    for on_error, labels in {"skip": [4, 6, 7], "replace": [4, 6, 6, 7]}.items():
        with load(per_sample.Pairs(), python_workers=workers, on_error=on_error) as loader:
            data, numbers = list(loader)[1]
            assert numbers.tolist() == labels and data[:, 0].tolist() == labels
            assert [(error.index, error.stage) for error in loader.errors] == [(5, "dataset")]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_results_of_the_other_byte_order_are_swapped(workers, output):
    if output == "torch":
        pytest.importorskip("torch")
    with load(per_sample.Of(*(numpy.arange(3, dtype=">f4") + number for number in range(4))), python_workers=workers, output=output) as loader:
        batch = next(iter(loader))
    assert plain(batch) == [[0.0 + number, 1.0 + number, 2.0 + number] for number in range(4)]
    assert str(batch.dtype).endswith("float32") and (output == "torch" or batch.dtype.isnative)


@pytest.mark.parametrize("value, words", [
    (numpy.zeros(2, numpy.longdouble), "longdouble|float128"), (numpy.zeros(2, numpy.clongdouble), "clongdouble|complex256"),
    (numpy.zeros(2, "datetime64[s]"), r"datetime64\[s\]"), (numpy.zeros(2, "timedelta64[s]"), r"timedelta64\[s\]"),
    (numpy.array([{}, None]), "array of object, not an array of numbers"), (numpy.array(["a"]), "array of <U1, not an array of numbers"),
    (numpy.ma.masked_less(numpy.arange(2.0), 1), "masked array.*filled"),
])
def test_types_that_torch_lacks_are_bad_samples_in_words(value, words):
    pytest.importorskip("torch")
    with load(per_sample.Of(value, numpy.zeros(2)), output="torch", on_error="skip") as loader:
        assert plain(next(iter(loader))) == [[0.0, 0.0]]
        assert len(loader.errors) == 1
        assert re.search(words, loader.errors[0].cause), loader.errors[0].cause


def test_times_stay_times_in_numpy():
    with load(per_sample.Of(numpy.datetime64("2026-01-02"), numpy.datetime64("2026-01-03"))) as loader:
        assert next(iter(loader)).tolist() == [numpy.datetime64("2026-01-02").item(), numpy.datetime64("2026-01-03").item()]


@pytest.mark.parametrize("workers", [0, 1])
def test_tensors_of_bfloat16_keep_their_type(workers):
    torch = pytest.importorskip("torch")
    values = [torch.full((2,), 1.5 * number, dtype=torch.bfloat16) for number in range(4)]
    with load(per_sample.Of(*({"x": value, "y": number} for number, value in enumerate(values))), output="torch", python_workers=workers) as loader:
        batch = next(iter(loader))
        assert loader.state_dict()["results"]["dict"][0] == ["x", ["bfloat16", 2]]
    assert batch["x"].dtype == torch.bfloat16 and torch.equal(batch["x"], torch.stack(values)) and plain(batch["y"]) == [0, 1, 2, 3]
    with load(per_sample.Of(*values), output="numpy") as loader, pytest.raises(stoker.Error, match='output="torch" alone: return value.float()'):
        next(iter(loader))


def test_what_no_dataset_can_be_is_refused():
    for wrong, match in ((5, "map-style"), (iter([1]), "map-style"), ([], "length is 0")):
        with pytest.raises(stoker.Error, match=match):
            load(wrong)
    for beside in ({"source": "x.npy"}, {"transform": "flip"}, {"batch_transform": print}, {"decode": "none"}, {"label": "x"}):
        with pytest.raises(ValueError, match="does not go with dataset="):
            load(per_sample.Items(), **beside)
    for made_up, remedy in (({"on_error": "zero"}, 'on_error="skip" or "replace"'), ({"last_batch": "pad"}, 'last_batch="keep" or "drop"')):
        with pytest.raises(ValueError, match="does not go with dataset=: its batches have no `valid`") as caught:
            load(per_sample.Items(), **made_up)
        assert caught.value.hint == remedy
    with load(per_sample.Uneven(), batch_size=2) as loader, pytest.raises(stoker.Error, match=r"float64 \[2\], and float64 \[1\] for an earlier"):
        next(iter(loader))


@pytest.mark.parametrize("world_size", [2, 4])
def test_the_ranks_share_the_last_batch_and_no_item_is_made_up(world_size):
    seen = []
    for rank in range(world_size):
        with load(per_sample.Items(), rank=rank, world_size=world_size) as loader:
            batches = [plain(batch)["number"] for batch in loader]
            assert len(batches) == len(loader)
            seen += [number for batch in batches for number in batch]
    assert sorted(seen) == list(range(21))


def test_num_workers_is_told_from_python_workers():
    with pytest.warns(stoker.Note, match="python_workers= runs it in processes"):
        load(per_sample.Items(), num_workers=2).close()


def test_a_list_is_a_dataset_too():
    with load([numpy.full(3, number) for number in range(5)], python_workers=1) as loader:
        assert [plain(batch) for batch in loader] == [[[number] * 3 for number in range(4)], [[4] * 3]]
