"""Order, epochs, resuming: the same batches whatever the workers, ranks and interruptions."""

import itertools
import json

import numpy
import pytest
from conftest import picture, rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import stoker

FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """``numbers(n)``: an .npy whose sample i is the number i."""
    folder, made = tmp_path_factory.mktemp("numbers"), {}

    def make(count):
        if count not in made:
            made[count] = folder / f"{count}.npy"
            numpy.save(made[count], numpy.arange(count, dtype=numpy.float32)[:, None])
        return made[count]

    return make


def load(path, **options):
    return stoker.Loader(path, output="numpy", **{"num_workers": 2, "batch_size": 4, **options})


# ---- exactly once, in the same order


@FEW
@given(count=some.integers(1, 60), batch_size=some.integers(1, 9), ranks=some.integers(1, 4), seed=some.integers(0, 2**64 - 1),
       shuffle=some.sampled_from([False, True, "blocks", "blocks:3:12", "nodes:2:7", "nodes:3:5"]), storage=some.sampled_from(["buffered", "direct"]))
def test_every_sample_comes_exactly_once_over_all_ranks(numbers, count, batch_size, ranks, seed, shuffle, storage):
    seen, steps = [], set()
    for rank in range(ranks):
        with load(numbers(count), batch_size=batch_size, seed=seed, shuffle=shuffle, storage=storage, rank=rank, world_size=ranks) as loader:
            batches = [numpy.array(data)[:, 0] for data, _ in loader]
            assert len(batches) == len(loader)
        steps.add(len(batches))
        seen.extend(int(value) for batch in batches for value in batch)
    assert sorted(seen) == list(range(count))
    assert len(steps) == 1


@FEW
@given(ranks=some.sampled_from([1, 2, 3, 6]), seed=some.integers(0, 99))
def test_the_global_sequence_does_not_depend_on_the_rank_count(numbers, ranks, seed):
    def sequence(ranks):
        parts = []
        for rank in range(ranks):
            with load(numbers(50), batch_size=12 // ranks, shuffle=True, seed=seed, rank=rank, world_size=ranks) as loader:
                parts.append([[int(value) for value in data[:, 0]] for data, _ in loader])
        return [value for step in zip(*parts) for part in step for value in part]

    assert sequence(ranks) == sequence(1)


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("storage", ["buffered", "direct", "mmap"])
def test_workers_and_storage_change_nothing(photos, workers, storage):
    def batches(**options):
        loader = load(photos, shuffle=True, seed=3, transform=[stoker.RandomResizedCrop(16), stoker.HorizontalFlip()], **options)
        with loader:
            return [(numpy.array(data), labels.tolist()) for data, labels in itertools.chain(loader, loader)]

    for (data, labels), (other, other_labels) in zip(batches(num_workers=workers, storage=storage), batches(), strict=True):
        assert labels == other_labels
        numpy.testing.assert_array_equal(data, other)


def test_workers_change_their_number_while_running(numbers):
    with load(numbers(60), shuffle=True) as loader:
        expected = rows(loader)
        loader.set_epoch(0)
        seen = []
        for step, (data, _) in enumerate(loader):
            loader.set_num_workers((3, 1, 2)[step % 3])
            seen.extend(int(value) for value in data[:, 0])
        assert seen == expected


def test_shuffle_depends_on_seed_and_epoch(numbers):
    with load(numbers(60), shuffle=True, seed=1) as loader:
        first, second = rows(loader), rows(loader)
        loader.set_epoch(0)
        again = rows(loader)
    with load(numbers(60), shuffle=True, seed=2) as loader:
        other = rows(loader)
    assert first == again and first != second and first != other
    assert sorted(first) == sorted(second) == sorted(other) == list(range(60))


def test_blocks_keep_neighbours_near_and_are_part_of_the_state(numbers):
    with load(numbers(600), shuffle="blocks:10:100", seed=1) as loader:
        first = rows(loader)
        assert sorted(first) == list(range(600))
        for start in range(0, 600, 100):  # a window: ten whole blocks, mixed
            window = first[start:start + 100]
            assert len({value // 10 for value in window}) == 10 and window != sorted(window)
        assert any("10 neighbours" in note and "100 samples" in note for note in loader.notes)
        next(iter(loader))
        state = json.loads(json.dumps(loader.state_dict()))
        expected = rows(loader)
    assert state["shuffle"] == "blocks:10:100"
    with load(numbers(600), shuffle="blocks:10:100", seed=1, storage="direct") as loader:
        loader.load_state_dict(state)
        assert len(rows(loader)) == 596 and rows(loader) == expected
    with load(numbers(600), shuffle=True, seed=1) as loader:
        with pytest.raises(ValueError, match="shuffle blocks:10:100"):
            loader.load_state_dict(state)


@pytest.mark.parametrize("wrong", ["yes", "block", "blocks:", "blocks:0:9", "blocks:9", "blocks:9:3", "blocks:3:9x", "node", "nodes:", "nodes:0",
                                   "nodes:2:0", "nodes:2:3:4", [1], b"blocks"])
def test_a_wrong_shuffle_is_refused(numbers, wrong):
    with pytest.raises(ValueError, match="shuffle is"):
        load(numbers(10), shuffle=wrong)


@pytest.mark.parametrize("options, sizes", [
    (dict(), [4, 4, 2]), (dict(drop_last=True), [4, 4]), (dict(last_batch="drop"), [4, 4]), (dict(last_batch="pad"), [4, 4, 4])])
def test_the_last_batch_is_kept_dropped_or_padded(numbers, options, sizes):
    with load(numbers(10), copy=True, **options) as loader:
        batches = list(loader)
        assert [len(batch.data) for batch in batches] == sizes and len(loader) == len(sizes)
        assert sum(int(batch.valid.sum()) for batch in batches) == min(10, sum(sizes))


def test_padding_keeps_ranks_in_step_and_is_marked(numbers):
    sizes, valid = [], 0
    for rank in range(4):
        with load(numbers(10), batch_size=2, last_batch="pad", rank=rank, world_size=4, copy=True) as loader:
            batches = list(loader)
            sizes.append([len(batch.data) for batch in batches])
            valid += sum(int(batch.valid.sum()) for batch in batches)
    assert valid == 10 and all(size == sizes[0] for size in sizes)


# ---- epochs


def test_each_iter_starts_the_next_epoch_also_after_a_break(numbers):
    with load(numbers(20), shuffle=True) as loader:
        by_epoch = [rows(loader) for _ in range(3)]
        assert loader.epoch == 3
        loader.set_epoch(0)
        for batch in loader:
            assert (batch.epoch, loader.epoch) == (0, 0)
            break
        assert loader.epoch == 0
        assert rows(loader) == by_epoch[1]
        assert rows(loader) == by_epoch[2]


def place(loader):
    """Where a checkpoint taken now would resume, and what the loader calls its epoch."""
    state = loader.state_dict()
    return state["epoch"], state["position"], loader.epoch


def test_an_iterator_that_handed_out_nothing_has_begun_nothing(numbers):
    """Trainers call iter() once to see whether they can iterate."""
    with load(numbers(20), shuffle=True) as loader:
        by_epoch = [rows(loader) for _ in range(2)]
    with load(numbers(20), shuffle=True) as loader:
        iter(loader)
        iter(loader)
        assert place(loader) == (0, 0, 0)
        assert rows(loader) == by_epoch[0]
        assert place(loader) == (1, 0, 1)
        iter(loader)
        assert place(loader) == (1, 0, 1)
        assert rows(loader) == by_epoch[1]


def test_iter_after_a_break_moves_on_with_its_first_batch(numbers):
    with load(numbers(20)) as loader:
        for _ in loader:
            break
        assert place(loader) == (0, 4, 0)
        iter(loader)
        iterator = iter(loader)
        assert place(loader) == (0, 4, 0)
        assert next(iterator).epoch == 1
        assert place(loader) == (1, 4, 1)


def test_iter_without_a_batch_keeps_a_loaded_state(numbers):
    with load(numbers(20), shuffle=True) as loader:
        expected = rows(loader)
        loader.set_epoch(0)
        next(iter(loader))
        state = loader.state_dict()
    with load(numbers(20), shuffle=True) as loader:
        loader.load_state_dict(state)
        for _ in range(3):
            iter(loader)
            assert loader.state_dict() == state and loader.epoch == 0
        assert rows(loader) == expected[4:]


def test_iter_without_a_batch_still_ends_the_iterator_before(numbers):
    with load(numbers(20)) as loader:
        old = iter(loader)
        next(old)
        iter(loader)
        with pytest.raises(stoker.Error, match="another one since"):
            next(old)


def test_set_epoch_before_the_first_batch_is_for_the_iterator_that_is_there(numbers):
    """Lightning calls iter() before it tells the epoch."""
    with load(numbers(20)) as loader:
        iterator = iter(loader)
        loader.set_epoch(7)
        assert place(loader) == (7, 0, 7)
        assert next(iterator).epoch == 7
        loader.set_epoch(3)
        assert next(iterator).epoch == 7
        assert next(iter(loader)).epoch == 3


@pytest.mark.parametrize("epoch", [0, 1, 5])
def test_set_epoch_during_an_epoch_keeps_the_place(numbers, epoch):
    with load(numbers(20), shuffle=True) as loader:
        iterator = iter(loader)
        for _ in range(2):
            next(iterator)
        loader.set_epoch(epoch)
        assert place(loader) == (0, 8, 0)
        state = loader.state_dict()
        expected = [batch.ids.tolist() for batch in iterator]
        assert place(loader) == (epoch, 0, epoch)
        assert next(iter(loader)).epoch == epoch
    with load(numbers(20), shuffle=True) as loader:
        loader.load_state_dict(state)
        assert [batch.ids.tolist() for batch in loader] == expected


def test_set_epoch_after_a_break_keeps_the_place_until_a_batch_is_handed_out(numbers):
    with load(numbers(20)) as loader:
        for _ in loader:
            break
        loader.set_epoch(3)
        assert place(loader) == (0, 4, 0)
        iterator = iter(loader)
        loader.set_epoch(0)
        assert place(loader) == (0, 4, 0)
        loader.set_epoch(3)
        assert next(iterator).epoch == 3
        assert place(loader) == (3, 4, 3)


def test_set_epoch_to_the_loaded_epoch_after_iter_repeats_nothing(numbers):
    with load(numbers(12)) as loader:
        next(iter(loader))
        state = loader.state_dict()
        for trainer_asks_again in (True, False):
            loader.load_state_dict(state)
            iterator = iter(loader)
            loader.set_epoch(0)
            if trainer_asks_again:
                iterator = iter(loader)
            assert [int(value) for data, _ in iterator for value in data[:, 0]] == [4, 5, 6, 7, 8, 9, 10, 11]
        assert len(rows(loader)) == 12


def test_an_epoch_without_batches_ends_when_it_was_iterated(numbers):
    with load(numbers(3), drop_last=True) as loader:
        assert len(loader) == 0
        for epoch in range(3):
            assert place(loader) == (epoch, 0, epoch)
            iter(loader)
            assert place(loader) == (epoch, 0, epoch)
            assert list(loader) == []


def test_a_first_batch_that_fails_begins_nothing(photos, tmp_path):
    good = sorted(photos.rglob("*.jpg"))[:8]
    late = tmp_path / "late.jpg"
    late.write_bytes(bytes(good[1].stat().st_size))
    with stoker.Loader(samples=[good[0], late, *good[2:]], batch_size=4, output="numpy", num_workers=2) as loader:
        with pytest.raises(stoker.Error, match="late.jpg"):
            next(iter(loader))
        assert place(loader) == (0, 0, 0)
        late.write_bytes(good[1].read_bytes())
        assert [batch.epoch for batch in loader] == [0, 0]


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_epochs_that_are_left_early_do_not_hang(tmp_path, workers):
    """Reads of the epoch before are still in flight when the next one begins."""
    for number in range(97):
        picture(number, 32, 32).save(tmp_path / f"{number:02}.png")
    with load(tmp_path, num_workers=workers, timeout=30) as loader:
        for epoch in range(100):
            for batch in loader:
                assert (batch.epoch, batch.step) == (epoch, 0)
                break
        state = loader.state_dict()
        for _ in range(20):
            loader.load_state_dict(state)
            assert next(iter(loader)).epoch == 99


def test_the_usual_loop_of_pytorch_works(numbers):
    with load(numbers(20), shuffle=True) as loader:
        epochs = []
        for epoch in range(loader.epoch, 3):
            loader.set_epoch(epoch)
            epochs.append(rows(loader))
    with load(numbers(20), shuffle=True) as loader:
        assert epochs == [rows(loader) for _ in range(3)]


def test_an_older_iterator_raises(numbers):
    with load(numbers(20)) as loader:
        old = iter(loader)
        next(old)
        new = iter(loader)
        with pytest.raises(stoker.Error, match="another one since"):
            next(old)
        assert next(new).epoch == 1


def test_a_finished_iterator_stays_finished(numbers):
    with load(numbers(4)) as loader:
        iterator = iter(loader)
        assert len([None for _ in iterator]) == 1
        assert list(iterator) == []
        assert iterator.__length_hint__() == 0


def test_step_and_epoch_are_on_the_batch(numbers):
    with load(numbers(10)) as loader:
        assert [(batch.epoch, batch.step) for batch in itertools.chain(loader, loader)] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


# ---- resume


@FEW
@given(count=some.integers(1, 60), cuts=some.lists(some.integers(1, 25), max_size=4), seed=some.integers(0, 99),
       workers=some.lists(some.sampled_from([0, 1, 2]), min_size=5, max_size=5))
def test_any_number_of_resumes_equals_none(numbers, count, cuts, seed, workers):
    with load(numbers(count), shuffle=True, seed=seed) as loader:
        expected = [value for _ in range(3) for value in rows(loader)]
    seen, state, resumes = [], None, 0
    while len(seen) < len(expected):
        stop_after = cuts[resumes] if resumes < len(cuts) else 10**9
        with load(numbers(count), shuffle=True, seed=seed, num_workers=workers[resumes]) as loader:
            if state is not None:
                loader.load_state_dict(json.loads(json.dumps(state)))
            taken = 0
            while taken < stop_after and len(seen) < len(expected):
                for data, _ in loader:
                    seen.extend(int(value) for value in data[:, 0])
                    taken += 1
                    if taken == stop_after:
                        break
            state = loader.state_dict()
        resumes += 1
    assert seen == expected


@FEW
@given(first=some.sampled_from([1, 2, 3]), second=some.sampled_from([1, 2, 4]), steps=some.integers(0, 3), seed=some.integers(0, 99))
def test_a_run_resumes_with_another_rank_count(numbers, first, second, steps, seed):
    def ranks(count, batch_size):
        return [load(numbers(60), shuffle=True, seed=seed, batch_size=batch_size, rank=rank, world_size=count) for rank in range(count)]

    seen, states = [], []
    for loader in ranks(first, 5):
        with loader:
            seen.extend(int(value) for data, _ in itertools.islice(loader, steps) for value in data[:, 0])
            states.append(loader.state_dict())
    assert all(state == states[0] for state in states)
    for loader in ranks(second, 3):
        with loader:
            loader.load_state_dict(states[0])
            seen.extend(rows(loader))
    assert sorted(seen) == list(range(60))


def test_after_the_last_batch_the_state_is_the_start_of_the_next_epoch(numbers):
    with load(numbers(8)) as loader:
        assert (loader.state_dict()["epoch"], loader.state_dict()["position"]) == (0, 0)
        iterator = iter(loader)
        next(iterator)
        assert (loader.state_dict()["epoch"], loader.state_dict()["position"]) == (0, 4)
        next(iterator)
        assert (loader.state_dict()["epoch"], loader.state_dict()["position"]) == (1, 0)
        assert loader.epoch == 1


def test_set_epoch_to_the_loaded_epoch_keeps_the_place(numbers):
    with load(numbers(20), shuffle=True) as loader:
        expected = rows(loader)
        loader.set_epoch(0)
        next(iter(loader))
        state = loader.state_dict()
    with load(numbers(20), shuffle=True) as loader:
        loader.load_state_dict(state)
        assert loader.epoch == 0
        loader.set_epoch(0)
        assert loader.state_dict() == state
        assert rows(loader) == expected[4:]


def test_the_state_is_small_and_survives_json(numbers):
    with load(numbers(20), seed=2**64 - 1) as loader:
        state = loader.state_dict()
        assert json.loads(json.dumps(state)) == state and len(json.dumps(state)) < 300


def test_a_state_of_other_data_or_another_seed_is_refused(numbers):
    with load(numbers(20), seed=1) as loader:
        state = loader.state_dict()
    for other in (load(numbers(21), seed=1), load(numbers(20), seed=2), load(numbers(20), seed=1, shuffle=True)):
        with other, pytest.raises(ValueError):
            other.load_state_dict(state)


@pytest.mark.parametrize("state", [None, {}, {"version": 2}, {"version": 1, "epoch": 0}, {"version": 1, "epoch": "x"}])
def test_something_else_than_a_state_is_refused(numbers, state):
    with load(numbers(20)) as loader, pytest.raises(ValueError, match="cannot load a state"):
        loader.load_state_dict(state)


@pytest.mark.parametrize("word, value", [
    ("position", "4"), ("position", 4.0), ("position", True), ("position", -4), ("position", None), ("epoch", "1"), ("epoch", 2**63),
    ("seed", "0"), ("size", 20.0), ("fingerprint", 7), ("fingerprint", "0x12"), ("fingerprint", None), ("shuffle", 3), ("shuffle", None)])
def test_a_state_with_a_value_of_a_wrong_type_is_refused_by_name(numbers, word, value):
    with load(numbers(20)) as loader:
        state = loader.state_dict()
        with pytest.raises(ValueError, match=f"cannot load a state: {word}") as caught:
            loader.load_state_dict({**state, word: value})
        assert caught.value.kind == "usage" and repr(value) in str(caught.value)
        del state[word]
        with pytest.raises(ValueError, match=f"cannot load a state: '{word}' is missing"):
            loader.load_state_dict(state)
        assert loader.epoch == 0 and len(rows(loader)) == 20
