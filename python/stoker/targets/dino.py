"""The step of a DINO run: a student and a teacher over several crops of each image."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ..errors import UsageError
from .images import HU_OFFSET, Views, _Image, _range, _Slice
from .samples import Files, loader_of
from .vit import PRECISIONS, Moved, ViT, device_of

LARGE_SCALE, SMALL_SCALE = (0.4, 1.0), (0.05, 0.4)  # share of the image's area in a crop
STUDENT_TEMPERATURE, TEACHER_TEMPERATURE, CENTER_MOMENTUM = 0.1, 0.04, 0.9


def dino(knobs: dict[str, Any]) -> tuple[Any, Any]:
    """A self-supervised step as DINO does it (Caron et al., 2021): ``large_views`` (2) crops of ``img_size`` (224), of 40 to 100 % of the
    area, and ``small_views`` (8) of ``small_size`` (96), of 5 to 40 %, from each image. The student sees all of them, the teacher the large ones; the loss compares each pair of
    different views; the teacher follows the student by ``teacher_momentum`` (0.996) after every ``accumulate_steps`` batches. ``model`` (a ViT:
    tiny, small, base, large, ...), ``dim, depth, heads, patch_size``, ``amp``, ``checkpointing`` and ``lr`` as in :func:`vit`; ``outputs``
    (65536) is the width of the head. A step is one batch of images, so the effective batch is batch_size times accumulate_steps. Without
    ``source`` the views are random and already in memory; with one they come from images, or from 16-bit slices of an index.csv."""
    knobs.setdefault("model", "base")
    if knobs.get("step_ms") is not None:
        raise UsageError("the step of dino is done by its model, not emulated", "leave step_ms out")
    size, small = int(knobs.get("img_size", 224)), int(knobs.get("small_size", 96))
    counts = int(knobs.get("large_views", 2)), int(knobs.get("small_views", 8))
    if counts[0] < 1 or counts[1] < 0 or sum(counts) < 2:
        raise UsageError(f"large_views is {counts[0]} and small_views {counts[1]}: the teacher needs a large view, the student another")
    step = Distillation(knobs, device_of(knobs), size, small, counts)
    source = knobs.get("source")
    if not source:
        return _Fixed(int(knobs.get("batch_size", 32)), size, small, counts), step
    if str(source).endswith(".csv"):
        window = str(knobs.get("window", "random"))
        ranges = _range(knobs, "window_level", "-700:100"), _range(knobs, "window_width", "300:2000", least=1)
        offset = float(knobs.get("hu_offset", HU_OFFSET))
        read = Views([(_Slice(size, window, *ranges, offset, LARGE_SCALE), counts[0]), (_Slice(small, window, *ranges, offset, SMALL_SCALE), counts[1])])
    else:
        read = Views([(_Image(size, LARGE_SCALE), counts[0]), (_Image(small, SMALL_SCALE), counts[1])])
    return loader_of(Files(knobs, read), knobs), step


class _Fixed:
    """The same random views for ever: ``((large, small), labels)``, each a tensor of views by images."""

    def __init__(self, batch_size: int, size: int, small: int, counts: tuple[int, int]) -> None:
        generator = torch.Generator().manual_seed(0)
        large = torch.rand(batch_size, counts[0], 3, size, size, generator=generator)
        views = (large, torch.rand(batch_size, counts[1], 3, small, small, generator=generator)) if counts[1] else (large,)
        self._batch = views, torch.zeros(batch_size, dtype=torch.int64)

    def __iter__(self) -> Any:
        while True:
            yield self._batch


class Head(nn.Module):
    """DINO's projection: three layers, a bottleneck of unit length, and a wide layer without a bias."""

    def __init__(self, dim: int, outputs: int) -> None:
        super().__init__()
        hidden, narrow = min(2048, 2 * dim), min(256, dim)
        self.layers = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, narrow))
        self.last = nn.Linear(narrow, outputs, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(functional.normalize(self.layers(x), dim=-1))


class Distillation(Moved):
    """Steps of student and teacher. One call is one batch of images with all their views."""

    def __init__(self, knobs: dict[str, Any], device: torch.device, size: int, small: int, counts: tuple[int, int]) -> None:
        super().__init__(device, 0)
        amp = knobs.get("amp", "off")
        amp = {True: "bf16", False: "off"}.get(amp, amp)
        if amp not in PRECISIONS:
            raise UsageError(f"amp is off, bf16 or fp16, not `{amp}`")
        self._precision = PRECISIONS[amp]
        self._every = int(knobs.get("accumulate_steps", 1))
        if self._every < 1:
            raise UsageError(f"accumulate_steps is {self._every}, but must be at least 1")
        self._momentum = float(knobs.get("teacher_momentum", 0.996))
        outputs = int(knobs.get("outputs", 65536))
        torch.manual_seed(int(knobs.get("seed", 0)))
        self.student, self.teacher = (self._network(knobs, size, outputs).to(device) for _ in range(2))
        patch = self.student[0].patches.stride[0]
        if counts[1] and small % int(patch):
            raise UsageError(f"small_size {small} must be a multiple of patch_size {patch}", f"try small_size {max(1, small // int(patch)) * int(patch)}")
        self.teacher.load_state_dict(self.student.state_dict())
        for parameter in self.teacher.parameters():
            parameter.requires_grad_(False)
        self._optimizer = torch.optim.AdamW(self.student.parameters(), lr=float(knobs.get("lr", 1e-4)))
        self._scaler = torch.amp.GradScaler(device.type, enabled=self._precision is torch.float16)
        self._center = torch.zeros(1, outputs, device=device)
        self._done = 0

    @staticmethod
    def _network(knobs: dict[str, Any], size: int, outputs: int) -> nn.Sequential:
        backbone = ViT(knobs, 3, size, 0)
        return nn.Sequential(backbone, Head(backbone.dim, outputs))

    def transfer(self, batch: Any) -> Any:
        views, labels = batch
        return [one.to(self._device, non_blocking=True) for one in views], labels

    def __call__(self, batch: Any) -> None:
        views, _ = batch
        cast = torch.autocast(self._device.type, self._precision) if self._precision else contextlib.nullcontext()
        with cast:
            with torch.no_grad():
                wanted = self._each(self.teacher, views[:1])
            given = self._each(self.student, views)
        targets = [functional.softmax((one.float() - self._center) / TEACHER_TEMPERATURE, dim=-1) for one in wanted]
        losses = [-(target * functional.log_softmax(one.float() / STUDENT_TEMPERATURE, dim=-1)).sum(-1).mean()
                  for i, target in enumerate(targets) for j, one in enumerate(given) if i != j]
        self._scaler.scale(torch.stack(losses).mean() / self._every).backward()
        self._center = CENTER_MOMENTUM * self._center + (1 - CENTER_MOMENTUM) * torch.cat(wanted).float().mean(0, keepdim=True)
        self._done += 1
        if self._done % self._every:
            return
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            for slow, fast in zip(self.teacher.parameters(), self.student.parameters()):
                slow.lerp_(fast, 1 - self._momentum)

    @staticmethod
    def _each(network: nn.Module, groups: Any) -> list[torch.Tensor]:
        """The output for each view. Views of one size go through the network together."""
        found: list[torch.Tensor] = []
        for views in groups:
            images, count = views.shape[:2]
            out = network(views.flatten(0, 1)).view(images, count, -1)
            found += out.unbind(1)
        return found
