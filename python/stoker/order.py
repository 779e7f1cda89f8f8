"""An order from outside: the samples that a sampler names, told to the engine a few batches before the loop takes them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator
from typing import Any

from . import _engine
from .errors import UsageError, shortened

__all__ = ["GivenOrder", "given_order"]


def given_order(sampler: Any, batch_sampler: Any, *, batch_size: int, shuffle: Any, drop_last: bool, last_batch: Any, rank: Any) -> GivenOrder | None:
    """What ``sampler=`` or ``batch_sampler=`` say, checked; None where there is neither."""
    if sampler is None and batch_sampler is None:
        return None
    word, given = ("sampler", sampler) if sampler is not None else ("batch_sampler", batch_sampler)
    if sampler is not None and batch_sampler is not None:
        raise UsageError("sampler= and batch_sampler= exclude each other", "give one of them", option="sampler")
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise UsageError(f"{word} gives sample numbers when it is iterated; {shortened(given)} cannot be", "a list, or a sampler of torch.utils.data", option=word)
    if isinstance(given, Iterator):
        raise UsageError(f"{word} is an iterator, which is spent after one epoch", "give a list, or an object whose __iter__ starts again", option=word)
    if shuffle not in (False, None):
        raise UsageError(f"{word}= says the order, and shuffle= another", "leave shuffle out", option="shuffle")
    if rank is not None:
        raise UsageError(f"{word}= gives the samples of one rank, and rank= would share them again", "leave rank and world_size out, or use shuffle=", option="rank")
    if last_batch not in (None, "keep", "drop"):
        raise UsageError(f"last_batch=\"pad\" does not work with {word}=", "let the sampler repeat samples", option="last_batch")
    drop_last = drop_last or last_batch == "drop"
    if batch_sampler is not None and drop_last:
        raise UsageError("batch_sampler= decides about its last batch, and drop_last= too", "leave drop_last out", option="drop_last")
    return GivenOrder(given, batch_size if sampler is not None else None, drop_last)


def largest_batch(batch_sampler: Any, batch_size: int) -> int:
    """How many samples a batch of a batch sampler has at most: it says so itself, or ``batch_size`` does."""
    if batch_size != 1:
        return batch_size
    size = getattr(batch_sampler, "batch_size", None)
    if isinstance(batch_sampler, (list, tuple)):
        size = max((len(batch) for batch in batch_sampler), default=1)
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise UsageError("batch_sampler does not say how many samples a batch has", "batch_size=: those of its largest batch", option="batch_size")
    return size


class GivenOrder:
    """One pass after the other over a sampler. Used by the thread that iterates."""

    def __init__(self, given: Iterable[Any], batch_size: int | None, drop_last: bool) -> None:
        self.given = given
        self._batch_size = batch_size  # None: the items are batches
        self._drop_last = drop_last
        self._batches: Iterator[list[int]] = iter(())
        self._told = self._handed_out = 0
        self._ended = True
        self._failure: BaseException | None = None

    @property
    def gives_batches(self) -> bool:
        return self._batch_size is None

    def __len__(self) -> int:
        """Batches of a pass."""
        count = len(self.given)  # type: ignore[arg-type]
        return count if self._batch_size is None else self.steps_of(count)

    def steps_of(self, samples: int) -> int:
        size = self._batch_size or 1
        return samples // size if self._drop_last else -(-samples // size)

    @property
    def steps_left(self) -> int:
        """Of the pass that runs, as far as the sampler says its length."""
        try:
            return max(0, len(self) - self._handed_out)
        except TypeError:
            return 0

    @property
    def is_over(self) -> bool:
        return self._ended and self._failure is None and self._told == self._handed_out

    def begin(self, engine: _engine.Loader, epoch: int, position: int) -> None:
        """The engine was sent to this place. A sampler that has ``set_epoch`` is told the epoch."""
        if hasattr(self.given, "set_epoch"):
            self.given.set_epoch(epoch)
        self._told = self._handed_out = 0
        self._ended, self._failure = False, None
        self._batches = self._read(position)
        self.tell(engine)

    def tell(self, engine: _engine.Loader) -> None:
        """Tells the engine as many batches as it wants to know now. What the sampler raises waits for its turn."""
        while not self._ended and engine.steps_wanted > 0:
            try:
                batch = next(self._batches, None)
                if batch is not None:
                    engine.give(batch)
                    self._told += 1
                    continue
                engine.end_order()
            except Exception as error:
                self._failure = error
            self._ended = True

    def before_next(self, engine: _engine.Loader) -> None:
        self.tell(engine)
        if self._failure is not None and self._told == self._handed_out:
            raise self._failure

    def after_next(self, engine: _engine.Loader) -> None:
        """A batch was handed out: the engine reads on while the loop uses it."""
        self._handed_out += 1
        self.tell(engine)

    def _read(self, position: int) -> Iterator[list[int]]:
        items = iter(self.given)
        if self._batch_size is None:
            skipped = 0
            while skipped < position:
                skipped += len(next(items, [None] * (position - skipped)))
            if skipped > position:
                raise UsageError(f"cannot continue at sample {position} of the epoch: batch_sampler has no batch that begins there",
                                 "resume with the batch sampler the state was saved with")
            for item in items:
                yield [_number(index, "batch_sampler") for index in _batch(item)]
            return
        numbers = (_number(item, "sampler") for item in itertools.islice(items, position, None))
        while batch := list(itertools.islice(numbers, self._batch_size)):
            if len(batch) == self._batch_size or not self._drop_last:
                yield batch


def _batch(item: Any) -> Iterable[Any]:
    if isinstance(item, (str, bytes)) or not isinstance(item, Iterable):
        raise UsageError(f"batch_sampler gave {shortened(item)}, which is not a list of sample numbers", "sampler= takes one number after the other")
    return item


def _number(item: Any, word: str) -> int:
    try:
        number = operator.index(item)
    except TypeError:
        raise UsageError(f"{word} gave {shortened(item)}, which is not the number of a sample") from None
    if number < 0:
        raise UsageError(f"{word} gave {number}: samples are numbered from 0")
    return number
