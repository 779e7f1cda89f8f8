"""What trainers written for PyTorch's DataLoader read from a loader besides its batches.

Some of them build a DataLoader of their own from ``dataset``, ``batch_sampler`` and ``collate_fn``: accelerate's
``skip_first_batches`` does, which the Hugging Face Trainer calls when it resumes. That works. The batch sampler gives one
step after the other, the data set takes the batch of each step from the loader, and steps that were skipped are not read.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .errors import UsageError, shortened

__all__ = ["ReadByTrainers"]


class ReadByTrainers:
    """The attributes of a DataLoader, for :class:`stoker.Loader`. They hold the loader; the loader does not hold them."""

    _known_to_accelerate = False
    use_stateful_dataloader = True  # for accelerate: the loader saves a state of its own
    # For a DataLoader that is built from these attributes: the loader has threads, so there are no worker processes.
    num_workers = 0
    prefetch_factor = None
    generator = None

    @property
    def _is_accelerate_prepared(self) -> bool:
        """Asked by accelerate when it takes a loader: the ranks share the batches already."""
        self._known_to_accelerate = True
        return True

    @_is_accelerate_prepared.setter
    def _is_accelerate_prepared(self, value: bool) -> None:
        self._known_to_accelerate = True

    def _note_on_accelerate(self) -> str | None:
        """What to say if accelerate was imported too late for :func:`let_accelerate_prepare_loaders`."""
        state = getattr(sys.modules.get("accelerate.state"), "AcceleratorState", None)
        lives = bool(getattr(state, "_shared_state", None))
        if not lives or self._known_to_accelerate or "transformers.trainer" in sys.modules:  # that trainer skips batches itself
            return None
        self._known_to_accelerate = True
        return ("accelerate does not know this loader, and save_state leaves its position out: "
                "pass it through accelerator.prepare_data_loader(loader), or import accelerate before the loader is made")

    @property
    def dataset(self) -> Dataset:
        """Has a length, and no single samples."""
        return Dataset(self)

    @property
    def sampler(self) -> Any:
        """Has a length and ``set_epoch``, and no list of samples. With ``sampler=`` it is that one."""
        order = self._order  # type: ignore[attr-defined]
        return Sampler(self) if order is None or order.gives_batches else order.given

    @property
    def batch_sampler(self) -> BatchSampler:
        """The steps of the epoch that begins next, for a DataLoader around ``dataset``."""
        return BatchSampler(self)

    @property
    def batch_size(self) -> int:
        """Samples of a batch, on each rank."""
        return self.options["batch_size"]  # type: ignore[attr-defined]

    @property
    def drop_last(self) -> bool:
        """Whether a short last batch is left out."""
        return self._given["drop_last"] or self._given["last_batch"] == "drop"  # type: ignore[attr-defined]

    @property
    def pin_memory(self) -> bool:
        """Whether batches are page-locked already."""
        return self.options["pin_memory"]  # type: ignore[attr-defined]

    @property
    def collate_fn(self) -> Callable[[Any], Any]:
        """Changes nothing: batches are whole already."""
        return _unchanged


def let_accelerate_prepare_loaders() -> None:
    """Lets ``Accelerator.prepare`` take a Loader as it takes a DataLoader, if accelerate is imported.

    accelerate tells loaders by their class. It would pass over this one, and ``save_state`` would leave its position out.
    """
    accelerator = getattr(sys.modules.get("accelerate.accelerator"), "Accelerator", None)
    prepare_one = getattr(accelerator, "_prepare_one", None)
    if prepare_one is None or hasattr(prepare_one, "takes_stoker_loaders"):
        return

    @functools.wraps(prepare_one)
    def prepare_one_or_loader(self: Any, obj: Any, first_pass: bool = False, *rest: Any, **named: Any) -> Any:
        if first_pass and isinstance(obj, ReadByTrainers):
            return self.prepare_data_loader(obj)
        return prepare_one(self, obj, first_pass, *rest, **named)

    prepare_one_or_loader.takes_stoker_loaders = True  # type: ignore[attr-defined]
    accelerator._prepare_one = prepare_one_or_loader  # type: ignore[union-attr]


class _View:
    def __init__(self, loader: Any) -> None:
        self._loader = loader


class Dataset(_View):
    def __len__(self) -> int:
        """Samples, over all ranks."""
        return self._loader.num_samples

    def __getitem__(self, index: Any) -> Any:
        raise UsageError(f"cannot take samples from the dataset of a Loader ({shortened(index)} was asked for): a Loader gives whole batches",
                         "iterate over the loader itself; for single samples, open the files with a dataset of your own")

    def __getitems__(self, keys: list[Any]) -> Any:
        """The batch of one step of the batch sampler. This is how a DataLoader asks."""
        if not keys:
            raise _shared_twice()
        return keys[0].batch(keys) if isinstance(keys[0], _Step) else self[keys]


class Sampler(_View):
    def __len__(self) -> int:
        """Samples of one rank, as a DistributedSampler counts them. Without drop_last some ranks get fewer."""
        steps, loader = len(self._loader), self._loader  # len() takes the rank
        if loader.drop_last:
            return steps * loader.batch_size
        return -(-loader.num_samples // loader.options["world_size"])

    def set_epoch(self, epoch: int) -> None:
        self._loader.set_epoch(epoch)

    def __iter__(self) -> Iterator[int]:
        raise UsageError("cannot list the samples that a Loader will give", "batch.indices has the samples of each batch")


class BatchSampler(_View):
    @property
    def sampler(self) -> Sampler:
        return self._loader.sampler

    @property
    def batch_size(self) -> int:
        return self._loader.batch_size

    @property
    def drop_last(self) -> bool:
        return self._loader.drop_last

    def __len__(self) -> int:
        return len(self._loader)

    def set_epoch(self, epoch: int) -> None:
        self._loader.set_epoch(epoch)

    def __iter__(self) -> Iterator[list[_Step]]:
        """One list per step, as long as its batch: a DataLoader passes each to ``dataset``."""
        one = _Pass(self._loader)
        for number in range(self._loader._steps_ahead()):
            one.given += 1
            yield self.batch_size * [_Step(one, number)]


class _Pass:
    """One pass of a DataLoader over the steps of an epoch."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.given = 0                             # steps that the batch sampler gave
        self.next = 0                              # step to take
        self.batches: Iterator[Any] | None = None  # from the first step on that is taken


class _Step:
    """What stands for a sample number in the lists of the batch sampler."""

    def __init__(self, one: _Pass, number: int) -> None:
        self._pass = one
        self._number = number

    def batch(self, keys: list[_Step]) -> Any:
        """The first steps of a pass may be left out. Later gaps mean that somebody shares the steps among processes."""
        one = self._pass
        whole = len(keys) == one.loader.batch_size and all(key is self for key in keys)
        if not whole or one.given != self._number + 1 or (one.batches is not None and one.next != self._number):
            raise _shared_twice()
        if one.batches is None:
            one.batches = one.loader._iter_after(self._number)
        one.next = self._number + 1
        return next(one.batches)


def _shared_twice() -> UsageError:
    return UsageError("cannot share the batches of this Loader among processes: each rank has its own batches already",
                      "use the loader as it is; Accelerator.prepare and Accelerator.prepare_data_loader return it unchanged")


def _unchanged(batch: Any) -> Any:
    return batch
