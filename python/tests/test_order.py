"""An order from outside: sampler= and batch_sampler= of a Loader."""

import numpy
import pytest

import stoker


def load(source, **options):
    return stoker.Loader(source, **{"output": "numpy", "cache_dir": False, **options})


def steps(loader):
    return [[int(index) for index in batch.indices] for batch in loader]


ORDER = [7, 7, 0, 3, 9, 1, 7, 2]


def test_a_sampler_says_the_order_and_may_repeat_samples(array):
    with load(array(10), sampler=ORDER, batch_size=3) as loader:
        assert len(loader) == 3 and steps(loader) == [[7, 7, 0], [3, 9, 1], [7, 2]]
        batch = next(iter(loader))
        assert batch.epoch == 1 and (batch.data[:, 0] == [7, 7, 0]).all()
    with load(array(10), sampler=ORDER, batch_size=3, drop_last=True) as loader:
        assert len(loader) == 2 and steps(loader) == [[7, 7, 0], [3, 9, 1]]


def test_a_batch_sampler_says_the_batches(array):
    batches = [[1], [2, 3, 4], numpy.array([5, 6])]
    with load(array(10), batch_sampler=batches) as loader:
        assert loader.batch_size == 3 and len(loader) == 3 and steps(loader) == [[1], [2, 3, 4], [5, 6]] == steps(loader)


def test_samplers_of_torch_are_followed_and_told_the_epoch(array):
    torch_data = pytest.importorskip("torch.utils.data")
    for rank in range(2):
        sampler = torch_data.distributed.DistributedSampler(range(20), num_replicas=2, rank=rank, seed=3)
        wanted = []
        for epoch in range(3):
            sampler.set_epoch(epoch)
            wanted.append(list(sampler))
        with load(array(20), sampler=sampler, batch_size=4) as loader:
            assert [sum(steps(loader), []) for _ in range(3)] == wanted
            assert loader.sampler is sampler
            loader.set_epoch(1)
            assert sum(steps(loader), []) == wanted[1]
    batches = torch_data.BatchSampler(torch_data.SequentialSampler(range(20)), 6, drop_last=True)
    with load(array(20), batch_sampler=batches) as loader:
        assert steps(loader) == list(batches)


def test_the_number_of_workers_changes_nothing(photos):
    def pixels(workers):
        options = dict(sampler=ORDER, batch_size=3, num_workers=workers, transform="rrc:16,flip")
        with load(photos, **options) as loader:
            return numpy.concatenate([batch.data for batch in loader])

    first = pixels(0)
    assert all((pixels(workers) == first).all() for workers in (1, 3))
    assert not (first[0] == first[1]).all(), "each repeat of a sample is another draw"


def test_the_sampler_is_read_a_few_batches_ahead_and_no_more(array):
    read = []

    class Sampler:
        def __iter__(self):
            for number in range(1000):
                read.append(number)
                yield number % 10

    with load(array(10), sampler=Sampler(), batch_size=2, io_depth=4) as loader:
        batches = iter(loader)
        for step in range(20):
            next(batches)
            assert len(read) <= 2 * (step + 1) + 2 * 8
        with pytest.raises(TypeError):
            len(loader)


@pytest.mark.parametrize("words", [dict(sampler=ORDER, batch_size=3), dict(batch_sampler=[[7, 7], [0], [3, 9, 1], [7, 2]])])
def test_a_state_resumes_in_the_same_order(array, words):
    with load(array(10), **words) as loader:
        whole = steps(loader)
    for taken in range(len(whole)):
        with load(array(10), **words) as loader:
            batches = iter(loader)
            begun = [next(batches).indices.tolist() for _ in range(taken)]
            state = loader.state_dict()
        assert state["epoch"] == 0 and state["position"] == len(sum(begun, [])) and state["shuffle"] == "given"
        with load(array(10), **words) as loader:
            loader.load_state_dict(state)
            assert begun + steps(loader) == whole and loader.epoch == 1
    with load(array(10), **words) as loader:
        steps(loader)
        assert loader.state_dict()["epoch"] == 1, "after the last batch it stands at the next epoch"
    with load(array(10)) as other, pytest.raises(ValueError, match="shuffle"):
        other.load_state_dict(state)


def test_an_index_beyond_the_data_set_is_named_when_its_batch_is_due(array):
    with load(array(10), sampler=[1, 2, 3, 10, 4], batch_size=2) as loader:
        batches = iter(loader)
        assert next(batches).indices.tolist() == [1, 2]
        with pytest.raises(ValueError, match=r"sample 10, and the data set has samples 0 to 9"):
            next(batches)
        with pytest.raises(ValueError, match="sample 10"):
            next(batches)


def test_what_the_sampler_raises_comes_through_when_its_batch_is_due(array):
    class Sampler:
        def __iter__(self):
            yield from (1, 2, 3)
            raise KeyError("curriculum")

    with load(array(10), sampler=Sampler(), batch_size=2) as loader:
        batches = iter(loader)
        assert next(batches).indices.tolist() == [1, 2]
        with pytest.raises(KeyError, match="curriculum"):
            next(batches)


@pytest.mark.parametrize("words, text", [
    (dict(sampler=[1], batch_sampler=[[1]]), "exclude each other"), (dict(sampler=7), "cannot be"), (dict(sampler="123"), "cannot be"),
    (dict(sampler=iter([1])), "spent after one epoch"), (dict(sampler=[1], shuffle=True), "shuffle"), (dict(sampler=[1], rank=0, world_size=2), "rank"),
    (dict(sampler=[1], last_batch="pad"), "pad"), (dict(batch_sampler=[[1]], drop_last=True), "drop_last"), (dict(batch_sampler={1: 2}), "does not say")])
def test_orders_that_cannot_be_are_refused_at_once(array, words, text):
    with pytest.raises(ValueError, match=text):
        load(array(10), **words)


@pytest.mark.parametrize("words, text", [(dict(sampler=[-1]), "-1"), (dict(sampler=["a"]), "'a'"), (dict(sampler=[1.5]), "1.5"),
                                         (dict(batch_sampler=[3], batch_size=2), "not a list of sample numbers"),
                                         (dict(batch_sampler=[[1, 2, 3]], batch_size=2), "batch of 3 samples")])
def test_items_that_are_no_samples_are_named(array, words, text):
    with load(array(10), **words) as loader, pytest.raises(ValueError, match=text):
        list(loader)


def test_leaving_an_epoch_starts_the_sampler_again(array):
    with load(array(10), sampler=ORDER, batch_size=2) as loader:
        for _ in range(3):
            assert next(iter(loader)).indices.tolist() == [7, 7]
        assert steps(loader) == [[7, 7], [0, 3], [9, 1], [7, 2]]
        assert list(iter(loader)) and loader.epoch == 5
