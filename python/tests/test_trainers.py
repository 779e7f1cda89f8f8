"""What trainers do with a loader besides iterating, by stand-ins for their code. test_real_trainers.py runs the real ones."""

import gc
import itertools
import weakref

import numpy
import pytest
from conftest import rows

import stoker

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, Subset  # noqa: E402


def load(path, **options):
    return stoker.Loader(path, **{"batch_size": 3, "num_workers": 1, "output": "torch", "rank": 0, "world_size": 1, **options})


class Skip:
    """accelerate's SkipBatchSampler."""

    def __init__(self, batch_sampler, skip_batches):
        self.batch_sampler, self.skip_batches = batch_sampler, skip_batches

    def __iter__(self):
        return itertools.islice(self.batch_sampler, self.skip_batches, None)

    def __len__(self):
        return len(self.batch_sampler) - self.skip_batches


class Share:
    """accelerate's BatchSamplerShard: every second batch, once its neighbour is there too."""

    def __init__(self, batch_sampler, rank):
        self.batch_sampler, self.rank = batch_sampler, rank

    def __iter__(self):
        for number, batch in enumerate(self.batch_sampler):
            if number % 2 == self.rank:
                mine = batch
            if number % 2 == 1:
                yield mine


class Split(Share):
    """The same with split_batches: half of every batch."""

    def __iter__(self):
        for batch in self.batch_sampler:
            half = len(batch) // 2
            yield batch[self.rank * half:(self.rank + 1) * half]


def rebuilt(loader, batch_sampler=None):
    """A DataLoader made of the loader's attributes."""
    return DataLoader(loader.dataset, batch_sampler=batch_sampler or loader.batch_sampler, collate_fn=loader.collate_fn,
                      num_workers=loader.num_workers, pin_memory=loader.pin_memory, generator=loader.generator)


def test_the_attributes_of_a_dataloader_are_there(array):
    with load(array(20)) as loader:
        assert len(loader.dataset) == 20 and len(loader.sampler) == 20 and len(loader.batch_sampler) == len(loader) == 7
        assert (loader.batch_size, loader.drop_last, loader.num_workers, loader.pin_memory, loader.generator) == (3, False, 0, False, None)
        assert loader.batch_sampler.batch_size == 3 and loader.batch_sampler.drop_last is False
    with load(array(20), drop_last=True, rank=1, world_size=3) as loader:
        assert loader.drop_last and len(loader.dataset) == 20 and len(loader.sampler) == 6 and len(loader) == 2


def test_the_attributes_do_not_keep_a_loader_alive(array):
    loader = load(array(20))
    views = loader.dataset, loader.sampler, loader.batch_sampler, loader.collate_fn
    gone = weakref.ref(loader)
    gc.disable()
    try:
        del views, loader
        assert gone() is None
    finally:
        gc.enable()


def test_set_epoch_of_the_sampler_sets_the_loaders(array):
    with load(array(20)) as loader:
        loader.sampler.set_epoch(4)
        assert loader.epoch == 4
        loader.batch_sampler.sampler.set_epoch(5)
        assert loader.epoch == 5
        loader.batch_sampler.set_epoch(6)
        assert loader.epoch == 6


def test_a_dataloader_made_of_the_attributes_gives_the_same_batches(array):
    with load(array(20), shuffle=True) as loader, load(array(20), shuffle=True) as plain:
        around = rebuilt(loader)
        assert len(around) == 7
        assert [rows(around) for _ in range(3)] == [rows(plain) for _ in range(3)]
        assert loader.state_dict() == plain.state_dict()


def test_batches_that_are_skipped_are_not_read(photos, tmp_path):
    good = sorted(photos.rglob("*.jpg"))[:12]
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"no picture")
    with load(None, samples=[good[0], bad, *good[2:]]) as loader:
        skipped = rebuilt(loader, Skip(loader.batch_sampler, 2))
        assert len(skipped) == 2
        assert [batch.indices.tolist() for batch in skipped] == [[6, 7, 8], [9, 10, 11]]
        assert loader.epoch == 1 and not loader.errors


def test_the_hugging_face_trainer_resumes_like_this(array):
    with load(array(20), shuffle=True, seed=3) as loader:
        by_epoch = [rows(loader) for _ in range(3)]
    with load(array(20), shuffle=True, seed=3) as loader:
        first = rebuilt(loader, Skip(loader.batch_sampler, 4))
        first.batch_sampler.batch_sampler.set_epoch(1)
        batches = iter(first)
        assert next(batches).epoch == 1
        assert (loader.state_dict()["epoch"], loader.state_dict()["position"]) == (1, 15)
        assert rows(batches) == by_epoch[1][15:]
        loader.set_epoch(2)
        assert rows(loader) == by_epoch[2]


@pytest.mark.parametrize("share, batch_size, count", [(Share, 1, 4), (Share, 1, 9), (Share, 4, 30), (Split, 4, 30)])
def test_sharing_the_batches_of_a_rank_again_is_refused(array, share, batch_size, count):
    failures = 0
    for rank in range(2):
        with load(array(count), batch_size=batch_size, rank=rank, world_size=2) as loader:
            try:
                rows(rebuilt(loader, share(loader.batch_sampler, rank)))
            except ValueError as error:
                assert "each rank has its own batches already" in str(error) and "use the loader as it is" in error.hint
                failures += 1
    assert failures > 0


def test_a_dataset_of_batches_has_no_samples(array):
    with load(array(20)) as loader:
        for ask in (lambda: loader.dataset[3], lambda: next(iter(loader.dataset)), lambda: next(iter(DataLoader(loader.dataset))),
                    lambda: next(iter(DataLoader(Subset(loader.dataset, [3, 4]), batch_size=2)))):
            with pytest.raises(ValueError, match="gives whole batches"):
                ask()
        with pytest.raises(ValueError, match="cannot list the samples"):
            iter(loader.sampler)


def needs_more(val_loader, world_size):
    """What validate() of PyTorch's ImageNet example asks, to look at the samples that its sampler dropped."""
    return len(val_loader.sampler) * world_size < len(val_loader.dataset)


def test_the_imagenet_example_validates(array):
    for count, drop_last in itertools.product((20, 21, 24), (False, True)):
        with load(array(count), rank=1, world_size=2, drop_last=drop_last) as loader:
            assert needs_more(loader, 2) == (drop_last and count != 24)
            if needs_more(loader, 2):
                rest = Subset(loader.dataset, range(len(loader.sampler) * 2, len(loader.dataset)))
                with pytest.raises(ValueError, match="gives whole batches"):
                    next(iter(DataLoader(rest, batch_size=3)))


# ---- batches that a trainer moves to its device


def test_a_batch_moves_to_a_device_and_leaves_the_slab(photos):
    with load(photos, transform=[stoker.Views(a=(1, [stoker.Resize((8, 8))]), b=(1, [stoker.Resize((4, 4))]))]) as loader:
        batch = next(iter(loader))
        ids = batch.ids.tolist()
        assert batch.to("cpu").data["a"].device.type == "cpu"
        moved = batch.to(torch.device("meta"), non_blocking=True)
        assert moved is batch and moved.labels.device.type == "meta" and {array.device.type for array in moved.data.values()} == {"meta"}
        assert moved.ids.tolist() == ids and len(moved.names) == 3
        gc.collect()
        assert loader.stats()["slabs_held"] == 0


def test_numpy_batches_do_not_move(array):
    with load(array(20), output="numpy") as loader, pytest.raises(ValueError, match="works with torch tensors"):
        next(iter(loader)).to("cpu")
    assert isinstance(next(iter(load(array(20), output="numpy"))).data, numpy.ndarray)
