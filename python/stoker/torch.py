"""Batches as torch tensors, in place; and their way to a device.

The device part follows PyTorch's rules for side streams and is tested with a stand-in runtime: it was never run on a GPU.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

from .batch import each
from .errors import UsageError

NAME = "torch"


def check_dtype(dtype: str | None) -> None:
    """torch has every type that the engine makes."""


def tensor(batch: Any, index: int) -> torch.Tensor:
    """Tensor ``index`` of an engine batch. The tensor holds the numpy array, which holds the slab."""
    array = batch.numpy(index)
    if batch.dtype(index) == "bfloat16":
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
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
