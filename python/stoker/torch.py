"""Batches as torch tensors, in place; their way to a device; and a DataLoader that feeds itself from the engine where it can.

The device part follows PyTorch's rules for side streams and is tested with a stand-in runtime: it was never run on a GPU.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections import deque
from typing import Any

import torch

from . import measuring
from .batch import each
from .errors import UsageError

NAME = "torch"
__all__ = ["DataLoader"]


def check_dtype(dtype: str | None) -> None:
    """torch has every type that the engine makes."""


def tensor(batch: Any, index: int) -> torch.Tensor:
    """Tensor ``index`` of an engine batch. The tensor holds the numpy array, which holds the slab."""
    array = batch.numpy(index)
    if batch.dtype(index) == "bfloat16":
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    if array.dtype == "uint64":
        array = array.view("uint64")  # torch takes unsigned long, and not unsigned long long of the same size
    return torch.from_numpy(array)


def from_numpy(array: Any) -> torch.Tensor:
    return torch.from_numpy(array)


def copied(array: torch.Tensor) -> torch.Tensor:
    return array.clone()


def current_stream() -> int:
    """The handle of the stream that this thread queues its work on; 0 is the default stream."""
    return torch.cuda.current_stream().cuda_stream if torch.cuda.is_available() else 0


class DeviceCopier:
    """Copies batches to a device on a side stream, so that the copy runs beside the step that is still computing.

    Order per batch: the side stream copies and records an event; the consumer's stream waits for that event (the host
    does not); the device tensors are told that the consumer's stream uses them; the host batch is held until the event
    has completed, so its slab cannot be refilled under the copy.
    """

    def __init__(self, device: Any, runtime: Any = torch) -> None:
        self._runtime = runtime
        self.device = runtime.device(device)
        if self.device.type != "cuda":
            raise UsageError(f"device: {self.device.type!r} has no copy stream here", "device=\"cuda\", or batch.to(device) in the loop")
        if not runtime.cuda.is_available():
            raise UsageError("device=\"cuda\": torch sees no such device", "leave device out; tensors then stay in host memory")
        self._stream = runtime.cuda.Stream(self.device)
        self._in_flight: deque[tuple[Any, Any]] = deque()

    def move(self, batch: Any) -> None:
        """Replaces ``data`` and ``labels`` of the batch by their copies on the device."""
        cuda = self._runtime.cuda
        host = (batch.data, batch.labels)
        with cuda.stream(self._stream):
            data = each(batch.data, lambda array: array.to(self.device, non_blocking=True))
            labels = batch.labels.to(self.device, non_blocking=True)
        event = self._stream.record_event()
        consumer = cuda.current_stream(self.device)
        consumer.wait_event(event)
        each(data, lambda array: array.record_stream(consumer))
        labels.record_stream(consumer)
        self._in_flight.append((event, host))
        self.release_finished()
        batch._replace(data, labels)

    def release_finished(self, wait: bool = False) -> None:
        """Lets go of host batches whose copy has completed; with ``wait``, of all."""
        while self._in_flight:
            event, _ = self._in_flight[0]
            if wait:
                event.synchronize()
            elif not event.query():
                return
            self._in_flight.popleft()


class _PlaceNoted:
    """The last method that torch's constructor calls. It notes where the program made the loader, and adds no frame: torch's
    warnings count frames to find the line that they name."""

    def __get__(self, loader: Any, owner: Any = None) -> Any:
        if loader is not None and loader not in _made_at:
            _made_at[loader] = measuring.caller()
            _let_accelerate_keep_the_class()
        return torch.utils.data.DataLoader.check_worker_number_rationality.__get__(loader, owner)


_made_at: weakref.WeakKeyDictionary[Any, dict[str, Any] | None] = weakref.WeakKeyDictionary()


class DataLoader(torch.utils.data.DataLoader):
    """torch's DataLoader, fed by Stoker where that gives the same samples: one changed import.

    ::

        from stoker.torch import DataLoader

        loader = DataLoader(ImageFolder("data/train", transform), batch_size=256, shuffle=True, num_workers=8)

    The arguments are torch's, and so are the types and the order of what comes out. It is torch's own DataLoader, with its
    workers, wherever Stoker does not know the data set, an operation of the transform or the collate_fn; ``loader.supply.why``
    and one warning say why. ``loader.supply.stats()`` has the counters of the engine.
    """

    check_worker_number_rationality = _PlaceNoted()

    @property
    def supply(self) -> Any:
        """What feeds this loader: ``is_native``, ``why`` it is not, and ``stats()``."""
        from .supply import supply_of

        return supply_of(self, _made_at.get(self))

    def _get_iterator(self) -> Any:
        return self.supply.iterator(self, super()._get_iterator)


def _let_accelerate_keep_the_class() -> None:
    """accelerate builds a DataLoader of torch from one that it prepares. Where it was one of these, the new one is too."""
    adapter = getattr(sys.modules.get("accelerate.data_loader"), "DataLoaderAdapter", None)
    if adapter is None or hasattr(adapter.__init__, "keeps_stoker_loaders"):
        return
    original = adapter.__init__

    @functools.wraps(original)
    def made(self: Any, dataset: Any, *arguments: Any, **options: Any) -> None:
        original(self, dataset, *arguments, **options)
        if type(self.base_dataloader) is torch.utils.data.DataLoader:
            for loader, place in list(_made_at.items()):
                if loader.dataset is dataset:
                    self.base_dataloader.__class__ = DataLoader
                    _made_at[self.base_dataloader] = place
                    return

    made.keeps_stoker_loaders = True  # type: ignore[attr-defined]
    adapter.__init__ = made
