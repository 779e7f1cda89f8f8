"""Images: a folder of them, and 16-bit slices with random windows."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy
import torch

from ..errors import UsageError
from .samples import Files, loader_of
from .vit import step_of

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
DEVIATION = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
HU_OFFSET = 32768  # of 16-bit slices whose index has no column hu_offset


def image_folder(knobs: dict[str, Any]) -> tuple[Any, Any]:
    """Images in a folder per class, or an index.csv: RandomResizedCrop, flip and ImageNet's mean, as torchvision's ImageFolder with
    such a transform, by Pillow alone. Further knobs: ``img_size`` (224)."""
    size = int(knobs.get("img_size", 224))
    return loader_of(Files(knobs, _Image(size)), knobs), step_of(knobs, channels=3, size=size)


def ct_slices(knobs: dict[str, Any]) -> tuple[Any, Any]:
    """16-bit PNG slices named by an index.csv: a random window of Hounsfield units, a random crop, a flip, three equal channels.
    Further knobs: ``img_size`` (224), ``window`` (``"random"``, or ``"-1000:400"``), ``hu_offset`` (32768, where the index has no such
    column)."""
    size = int(knobs.get("img_size", 224))
    read = _Slice(size, str(knobs.get("window", "random")), float(knobs.get("hu_offset", HU_OFFSET)))
    return loader_of(Files(knobs, read), knobs), step_of(knobs, channels=3, size=size)


def random_box(width: int, height: int) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of a crop with 8 to 100 % of the area and sides of 3:4 to 4:3."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, top = random.randint(0, width - w), random.randint(0, height - h)
            return left, top, left + w, top + h
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    return left, top, left + side, top + side


class _Image:
    def __init__(self, size: int) -> None:
        self._size = size

    def __call__(self, path: str, _: dict[str, str]) -> torch.Tensor:
        from PIL import Image

        with Image.open(path) as opened:
            image = opened.convert("RGB")
        image = image.resize((self._size, self._size), Image.Resampling.BILINEAR, box=random_box(*image.size))
        pixels = torch.from_numpy(numpy.array(image)).permute(2, 0, 1).float().div_(255)
        if random.random() < 0.5:
            pixels = pixels.flip(2)
        return (pixels - MEAN) / DEVIATION


class _Slice:
    def __init__(self, size: int, window: str, offset: float) -> None:
        self._size, self._offset = size, offset
        self._window = None
        if window != "random":
            try:
                low, high = map(float, window.split(":"))
            except ValueError:
                raise UsageError(f"window is `random` or LOW:HIGH in Hounsfield units, not `{window}`") from None
            self._window = low, high

    def __call__(self, path: str, row: dict[str, str]) -> torch.Tensor:
        from PIL import Image

        with Image.open(path) as opened:
            stored = numpy.asarray(opened)
        if stored.dtype not in (numpy.uint16, numpy.int32) or stored.ndim != 2:
            raise UsageError(f"`{path}` is not a 16-bit gray image")
        low, high = self._window or _random_window()
        hu = torch.from_numpy(stored.astype(numpy.float32)) - float(row.get("hu_offset") or self._offset)
        unit = ((hu - low) / (high - low)).clamp_(0, 1)
        left, top, right, bottom = map(int, random_box(unit.shape[1], unit.shape[0]))
        crop = unit[None, None, top:bottom, left:right]
        view = torch.nn.functional.interpolate(crop, (self._size, self._size), mode="bilinear", antialias=True, align_corners=False)[0]
        if random.random() < 0.5:
            view = view.flip(2)
        return view.expand(3, -1, -1)


def _random_window() -> tuple[float, float]:
    """Around those of lung, soft tissue and bone."""
    level, width = random.choice(((-600.0, 1500.0), (40.0, 400.0), (400.0, 1800.0)))
    level += random.uniform(-50, 50)
    width *= random.uniform(0.8, 1.2)
    return level - width / 2, level + width / 2
