"""One pass over a DataLoader, fed by the engine: the job's own order, types, labels and errors."""

from __future__ import annotations

import itertools
import operator
import os
import random
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import default_collate
from torch.utils.data.dataloader import _BaseDataLoaderIter

from ..errors import Error
from ..loader import Loader
from ..source import Numbered
from .known import NotKnown, Reading, leaf_of
from .told import Teller

__all__ = ["Native", "SuppliedIterator"]

_OWN, _OWN_S = 3, 0.1   # samples of the first batch that the job's own code makes, too; two where that takes long. One in later passes
_MOST_BY_PYTHON = 1 / 8  # of a batch, or of an epoch: more is left to the job's own workers
_EPOCHS = 2**62


class _LargerBatch(Exception):
    """The batch sampler gave more samples than any batch before."""

    def __init__(self, batch: list[int]) -> None:
        super().__init__(len(batch))
        self.batch = batch


class _Order:
    """The batch sampler that the engine's loader follows: each pass gives it another iterator."""

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size
        self.batches: Iterator[list[int]] = iter(())

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.batches:
            if len(batch) > self.batch_size:
                raise _LargerBatch(batch)
            yield batch


class _Replay:
    """A batch sampler for one pass, whose batches are known or on their way."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return self._batches


class Native:
    """A loader of the engine for one DataLoader, used by one pass at a time."""

    def __init__(self, loader: Any, reading: Reading, batch_size: int) -> None:
        dataset = loader.dataset
        self.reading = reading
        self.paths = Numbered(_path(dataset, index) for index in range(len(dataset)))
        self.user: weakref.ref[Any] | None = None  # the pass that uses it
        self.was_right = False            # the first batch of a pass was what the job would have made
        self.own_s: float | None = None   # that the job's own code takes for a sample
        self.pid = os.getpid()
        self._order = _Order(batch_size)
        ready = max(2, -(-4 * _cores() // batch_size))
        self._loader = Loader(samples=self.paths, batch_sampler=self._order, batch_size=batch_size, transform=reading.transform, output="torch",
                              on_error="zero", num_workers=_cores() if "LOCAL_WORLD_SIZE" in os.environ else "auto", prefetch_factor=ready,
                              pin_memory=bool(loader.pin_memory and torch.cuda.is_available()), timeout=loader.timeout or None)
        self._loader._known_to_accelerate = True  # it prepares the DataLoader around this one

    @property
    def batch_size(self) -> int:
        return self._order.batch_size

    @property
    def is_free(self) -> bool:
        user = self.user() if self.user is not None else None
        return self.pid == os.getpid() and (user is None or user.is_over)

    def fits(self, dataset: Any, reading: Reading) -> bool:
        return reading == self.reading and len(dataset) == len(self.paths)

    def begin(self, batches: Iterator[list[int]], epoch: int) -> Iterator[Any]:
        """``epoch`` names the random draws."""
        self._order.batches = batches
        self._loader.set_epoch(epoch % _EPOCHS)
        return iter(self._loader)

    def holds_many(self) -> bool:
        """The job keeps more batches than the one in use and the one that it asks for."""
        return self._loader._usable().slabs_held > 2

    def stats(self) -> dict[str, Any]:
        return self._loader.stats()

    @property
    def why_bad(self) -> str:
        """What was wrong with the first sample that the engine could not make."""
        errors = self._loader.errors
        return errors[0].message if errors else "the engine could not make it"

    def close(self) -> None:
        self._loader.close()


class SuppliedIterator(_BaseDataLoaderIter):
    """What ``iter(loader)`` gives. torch's own constructor draws the seeds, so that the order is the one that torch would give."""

    is_of_stoker = True  # for the hook of ``stoker measure``

    def __init__(self, loader: Any, take: Callable[[int], Native], own: Callable[[], Any], teller: Teller, failed: Callable[[str], None],
                 random_state: Any) -> None:
        super().__init__(loader)
        self._loader = loader
        self._take = take          # gives a loader of the engine, for batches of at most that size
        self._make_own = own       # makes the iterator that torch would have made
        self._teller = teller
        self._failed = failed      # told why the job's own loader is used from now on
        self._random_state = random_state
        self._own: Any = None
        self._native: Native | None = None
        self._batches: Iterator[Any] = iter(())
        self._passes = 0
        self.is_over = False
        self.samples = self.by_python = 0
        self._begin_pass()

    # ---- torch's protocol

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """Persistent workers: the same iterator serves the next epoch."""
        if self._own is not None:
            self._own._reset(loader, first_iter)
            return
        super()._reset(loader, first_iter)
        self._begin_pass()

    def _begin_pass(self) -> None:
        self.is_over = False
        self._first = True
        self._indices: list[list[int]] = []  # of batches that the engine knows and the job does not have yet
        self._read: list[Any] = []           # what the sampler gave before the first batch was found right
        self._passes += 1
        self._begun = False
        if self._num_workers > 0:  # torch reads the sampler at once where it has workers, else with the first batch
            self._start()

    def _start(self) -> None:
        if self._begun:
            return
        self._begun = True
        try:
            batches = self._numbers()
            size = self._batch_size()
            if size is None:
                first = next(batches, None)
                size = len(first) if first else 1
                batches = itertools.chain([first] if first is not None else [], batches)
            self._enter(batches, size)
        except (Error, NotKnown, OSError, MemoryError) as error:
            self._give_up(str(getattr(error, "message", error)))

    def _enter(self, batches: Iterator[list[int]], size: int) -> None:
        if self._native is not None:
            self._native.user = None  # it may be taken again
        self._native = self._take(max(size, 1))
        self._native.user = weakref.ref(self)
        self._batches = self._native.begin(self._noted(batches), self._base_seed + self._passes)

    def _next_data(self) -> Any:
        if self._own is None:
            self._start()
        if self._own is not None:
            return self._next_of_own()
        while True:
            try:
                batch = next(self._batches)
                break
            except StopIteration:
                self.is_over = True
                self._teller.record(**self._told())
                raise
            except _LargerBatch as larger:
                self._go_on_with(larger.batch)
            except Error as error:
                if not self._first:
                    raise
                self._give_up(error.message)
                return self._next_of_own()
        data = self._finished(batch, self._indices.pop(0))
        return data if data is not None else self._next_of_own()

    def _next_of_own(self) -> Any:
        return next(self._own)

    # ---- the order

    def _batch_size(self) -> int | None:
        size = self._loader.batch_size or getattr(self._loader.batch_sampler, "batch_size", None)
        return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None

    def _numbers(self) -> Iterator[list[int]]:
        """The batches of the job's own sampler. Numbers count from 0; what the data set itself refuses, it refuses here."""
        size = len(self._dataset)
        for batch in self._sampler_iter:
            if self._first:
                self._read.append(batch)
            numbers = [operator.index(index) for index in batch]
            for place, number in enumerate(numbers):
                if not -size <= number < size:
                    self._dataset[number]  # raises what the job would have seen
                    raise IndexError(f"the sampler gave {number}, and the data set has {size} samples")
                numbers[place] = number % size
            yield numbers

    def _noted(self, batches: Iterator[list[int]]) -> Iterator[list[int]]:
        for batch in batches:
            self._indices.append(batch)
            yield batch

    def _go_on_with(self, batch: list[int]) -> None:
        """A batch is larger than those that the engine's loader was made for: another one takes over, from this batch on."""
        rest = self._native._order.batches if self._native else iter(())
        self._indices.clear()
        self._passes += 1
        self._enter(itertools.chain([batch], rest), max(len(batch), 2 * self._native.batch_size if self._native else 1))

    # ---- one batch

    def _finished(self, batch: Any, indices: list[int]) -> Any:
        """The batch as torch's default collate gives it. None: the job's own loader takes over, with its first batch."""
        assert self._native is not None
        data, paths = batch.data, self._native.paths
        for operation in self._native.reading.tail or ():
            data = operation(data)
        leaves = [leaf_of(self._dataset, index) for index in indices]
        valid = batch._row_values("valid")
        by_python = [row for row, leaf in enumerate(leaves) if not valid[row] or leaf.dataset.samples[leaf.number][0] is not paths[indices[row]]]
        if self._first:
            why = self._refusal(data, indices, by_python)
            if why:
                self._give_up(why)
                return None
            self._first = False
            self._native.was_right = True
            self._read.clear()
            self._teller.record(**self._told())
        if self._native.reading.tail is None and self._native.holds_many():
            data = data.clone()
        targets = []
        for row, leaf in enumerate(leaves):
            if row not in by_python:
                targets.append(self._target(leaf))
                continue
            sample, target = self._dataset[indices[row]]
            if sample.shape != data[row].shape:
                default_collate([data[row], sample])  # raises what the job would have seen
            data[row] = sample
            targets.append(target)
        self.samples += len(indices)
        self.by_python += len(by_python)
        if by_python:
            self._teller.say(f"the job's own code makes {len(by_python)} of {len(indices)} samples of a batch: {self._native.why_bad}")
            if self.by_python > 1000 * _MOST_BY_PYTHON and self.by_python > self.samples * _MOST_BY_PYTHON:
                self._failed("the engine cannot make more than an eighth of its samples")
        return [data, default_collate(tuple(targets))]  # a tuple, as torch's own: texts stay in it

    def _target(self, leaf: Any) -> Any:
        target = leaf.dataset.samples[leaf.number][1]
        return target if leaf.dataset.target_transform is None else leaf.dataset.target_transform(target)

    def _refusal(self, data: Any, indices: list[int], by_python: list[int]) -> str:
        """Why the first batch is not what the job would have made; empty: it is."""
        assert self._native is not None
        reading, was_right = self._native.reading, self._native.was_right
        if len(by_python) > max(1, len(indices) * _MOST_BY_PYTHON):
            return f"the engine cannot make {len(by_python)} of {len(indices)} samples of the first batch: {self._native.why_bad}"
        rows = [row for row in range(len(indices)) if row not in by_python]
        if was_right and not reading.is_fixed:
            return ""
        seconds, samples = _own_samples(self._dataset, [indices[row] for row in rows[: 1 if was_right else _OWN]])
        self._native.own_s = self._native.own_s or seconds
        for row, sample in zip(rows, samples):
            if (data.dtype, data.shape[1:]) != (sample.dtype, sample.shape):
                return (f"the engine gives {str(data.dtype)[6:]} {list(data.shape[1:])}, and the job's own code {str(sample.dtype)[6:]} "
                        f"{list(sample.shape)}")
            if reading.is_fixed and not torch.equal(sample, data[row]):
                return f"the engine gives other pixels than the job's own code for `{self._native.paths[indices[row]]}`"
        return ""

    def _give_up(self, why: str) -> None:
        """Before the first batch: torch's own iterator takes over, as if nothing had been tried. A sampler may draw from a generator of
        its own, so it is not asked again: what it gave goes first."""
        self.is_over = True
        self._failed(why)
        loader, sampler = self._loader, self._loader.batch_sampler
        generator = loader.generator if loader.generator is not None else torch.default_generator
        state = generator.get_state()
        generator.set_state(self._random_state)  # for the seed that torch draws first
        object.__setattr__(loader, "batch_sampler", _Replay(itertools.chain(self._read, self._sampler_iter)))
        try:
            self._own = self._make_own()
        finally:
            object.__setattr__(loader, "batch_sampler", sampler)
            generator.set_state(state)
        self._own._index_sampler = sampler  # of the next pass of persistent workers

    # ---- what is told

    def _told(self) -> dict[str, Any]:
        assert self._native is not None
        stats = self._native.stats()
        prep = stats["prep"]
        native_s = prep["busy_s"] / prep["items"] if prep["items"] else None
        own_s = self._native.own_s
        return {"replaced": True, "why": None, "operations": self._native.reading.operations, "dataset": self._native.reading.dataset_name,
                "samples": stats["samples"], "samples_per_s": stats["samples_per_s"], "own_s": own_s, "native_s": native_s,
                "by_python": self.by_python, "gain": own_s / native_s if own_s and native_s else None}

    def __del__(self) -> None:
        try:
            if self._native is not None and not self.is_over:
                self._teller.record(**self._told())
        except BaseException:
            pass


def _path(dataset: Any, index: int) -> Any:
    leaf = leaf_of(dataset, index)
    return leaf.dataset.samples[leaf.number][0]


def _image(dataset: Any, index: int) -> Any:
    """The image of a sample, made by the job's own code. The target is left alone: what makes it may count its calls."""
    leaf = leaf_of(dataset, index)
    return leaf.dataset.transform(leaf.dataset.loader(leaf.dataset.samples[leaf.number][0]))


def _cores() -> int:
    """Cores for this process, where torchrun starts several on this machine."""
    local = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, len(os.sched_getaffinity(0)) // max(1, int(local) if local.isdigit() else 1))


def _own_samples(dataset: Any, indices: list[int]) -> tuple[float | None, list[Any]]:
    """What the job's own code makes of these samples, and its seconds for each after the first. The job's random numbers stay as they are."""
    numpy_random = sys.modules.get("numpy.random")
    states = torch.get_rng_state(), random.getstate(), numpy_random.get_state() if numpy_random else None
    samples: list[Any] = []
    seconds: list[float] = []
    try:
        for index in indices:
            began = time.perf_counter()
            samples.append(_image(dataset, index))
            seconds.append(time.perf_counter() - began)
            if len(seconds) > 1 and sum(seconds) > _OWN_S:
                break
    finally:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        if numpy_random:
            numpy_random.set_state(states[2])
    return sum(seconds[1:]) / len(seconds[1:]) if len(seconds) > 1 else None, samples


def check_torch() -> None:
    """Raises NotKnown for a torch whose DataLoader has another shape."""
    version = str(torch.__version__).split("+")[0].split(".")
    if int(version[0]) < 2:
        raise NotKnown(f"torch {torch.__version__} is older than 2.0")

