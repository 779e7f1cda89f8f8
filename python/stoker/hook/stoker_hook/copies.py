"""Copies of batches to the device: an event before and one after each `Tensor.to` and `Tensor.cuda` of the training loop.

Both are recorded on the stream the loop runs on, so the time between them is the copy's, on the device's own clock;
they are read when they have completed, and nothing is waited for. A copy on another stream runs beside the step: it is
left alone. The methods are replaced only where there is a device, and only while torch itself is being imported:
libraries keep them as keys of tables (torchvision does), and must not meet two of each.
"""

import os
import sys
import threading

from .quiet import quiet

DEVICES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvhost-gpu", "/dev/nvgpu", "/dev/kfd", "/dev/dxg")
MOST_PER_STEP = 64


def built_for_device(torch):
    version = sys.modules.get(torch.__name__ + ".version")
    return bool(getattr(version, "cuda", None) or getattr(version, "hip", None))


def has_device(torch):
    return built_for_device(torch) and any(os.path.exists(path) for path in DEVICES)


class Copies:
    """Between `begin` and `take`, copies of that thread are timed. `take` gives pairs of events, None where none can be seen."""

    def __init__(self, torch):
        self._torch = torch
        self._installed = False
        self._thread = None  # whose copies are timed: it has a batch
        self._stream = None
        self._pairs = []
        self._spare = []

    @quiet
    def install(self):
        tensor = self._torch.Tensor
        for name in ("to", "cuda"):
            setattr(tensor, name, self._timed(getattr(tensor, name)))
        self._installed = True

    def begin(self):
        if not self._installed:
            return
        self._pairs = []
        self._stream = self._torch.cuda.current_stream()
        self._thread = threading.get_ident()

    def take(self):
        self._thread = None
        pairs, self._pairs = self._pairs, []
        return pairs if self._installed else None

    def give_back(self, pairs):
        """Events that were read."""
        for pair in pairs:
            self._spare.extend(pair)

    def _timed(self, original):
        def copy(tensor, *arguments, **options):
            if self._thread is None:
                return original(tensor, *arguments, **options)
            before = self._before(tensor)
            result = original(tensor, *arguments, **options)
            if before is not None:
                self._after(before, result)
            return result

        for name in ("__name__", "__qualname__", "__doc__"):
            setattr(copy, name, getattr(original, name))
        return copy

    @quiet
    def _before(self, tensor):
        cuda = self._torch.cuda
        if tensor.is_cuda or self._thread != threading.get_ident() or len(self._pairs) >= MOST_PER_STEP:
            return None
        if cuda.is_current_stream_capturing() or cuda.current_stream() != self._stream:
            return None
        return self._record()

    @quiet
    def _after(self, before, result):
        if result.is_cuda:
            self._pairs.append((before, self._record()))
        else:
            self._spare.append(before)

    def _record(self):
        event = self._spare.pop() if self._spare else self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event
