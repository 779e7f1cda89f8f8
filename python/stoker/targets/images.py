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
    Further knobs: ``img_size`` (224), ``window`` (``"random"``; ``"presets"`` around those of lung, soft tissue and bone; ``"-1000:400"``),
    ``window_level`` (``"-700:100"``) and ``window_width`` (``"300:2000"``), the ranges that a random window is drawn from, ``hu_offset``
    (32768, where the index has no such column)."""
    size = int(knobs.get("img_size", 224))
    window = str(knobs.get("window", "random"))
    read = _Slice(size, window, _range(knobs, "window_level", "-700:100"), _range(knobs, "window_width", "300:2000", least=1),
                  float(knobs.get("hu_offset", HU_OFFSET)))
    if hasattr(knobs, "used"):
        knobs.used["window"] = read.window_facts()
    return loader_of(Files(knobs, read), knobs), step_of(knobs, channels=3, size=size)


def _range(knobs: dict[str, Any], name: str, usual: str, least: float = -math.inf) -> tuple[float, float]:
    """``-700:100`` as a range; one number is a range of that value."""
    text = str(knobs.get(name, usual))
    try:
        low, _, high = text.partition(":")
        found = float(low), float(high or low)
    except ValueError:
        raise UsageError(f"{name} is LOW:HIGH in Hounsfield units, not `{text}`", f"write it like {usual}") from None
    if not least <= found[0] <= found[1] < math.inf:
        raise UsageError(f"{name} is `{text}`, which is no range", f"write it like {usual}")
    return found


def random_box(width: int, height: int, scale: tuple[float, float] = (0.08, 1)) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of a crop with that share of the area and sides of 3:4 to 4:3."""
    for _ in range(10):
        area = width * height * random.uniform(*scale)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, top = random.randint(0, width - w), random.randint(0, height - h)
            return left, top, left + w, top + h
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    return left, top, left + side, top + side


class Views:
    """Several views of each file, drawn one by one: for each reader and count a tensor of views."""

    def __init__(self, readers: list[tuple[Any, int]]) -> None:
        self._readers = [(read, count) for read, count in readers if count > 0]

    def __call__(self, path: str, row: dict[str, str]) -> tuple[torch.Tensor, ...]:
        opened = self._readers[0][0].open(path)  # all readers are of one kind
        return tuple(torch.stack([read.view(opened, row) for _ in range(count)]) for read, count in self._readers)


class _Image:
    def __init__(self, size: int, scale: tuple[float, float] = (0.08, 1)) -> None:
        self._size, self._scale = size, scale

    def __call__(self, path: str, row: dict[str, str]) -> torch.Tensor:
        return self.view(self.open(path), row)

    def open(self, path: str) -> Any:
        from PIL import Image

        with Image.open(path) as opened:
            return opened.convert("RGB")

    def view(self, image: Any, _: dict[str, str]) -> torch.Tensor:
        from PIL import Image

        width, height = image.size
        image = image.resize((self._size, self._size), Image.Resampling.BILINEAR, box=random_box(width, height, self._scale))
        pixels = torch.from_numpy(numpy.array(image)).permute(2, 0, 1).float().div_(255)
        if random.random() < 0.5:
            pixels = pixels.flip(2)
        return (pixels - MEAN) / DEVIATION


class _Slice:
    def __init__(self, size: int, window: str, level: tuple[float, float], width: tuple[float, float], offset: float,
                 scale: tuple[float, float] = (0.08, 1)) -> None:
        self._size, self._offset, self._scale = size, offset, scale
        self._level, self._width = level, width
        self._presets = window == "presets"
        self._window = None
        if window not in ("random", "presets"):
            try:
                low, high = map(float, window.split(":"))
            except ValueError:
                raise UsageError(f"window is `random`, `presets` or LOW:HIGH in Hounsfield units, not `{window}`") from None
            self._window = low, high

    def window_facts(self) -> Any:
        """What config.json says of it."""
        if self._presets:
            return "presets"
        if self._window:
            return list(self._window)
        return {"level": list(self._level), "width": list(self._width)}

    def _draw(self) -> tuple[float, float]:
        if self._window:
            return self._window
        if self._presets:
            return _preset_window()
        level, width = random.uniform(*self._level), random.uniform(*self._width)
        return level - width / 2, level + width / 2

    def __call__(self, path: str, row: dict[str, str]) -> torch.Tensor:
        return self.view(self.open(path), row)

    def open(self, path: str) -> Any:
        from PIL import Image

        with Image.open(path) as opened:
            stored = numpy.asarray(opened)
        if stored.dtype not in (numpy.uint16, numpy.int32) or stored.ndim != 2:
            raise UsageError(f"`{path}` is not a 16-bit gray image")
        return torch.from_numpy(stored.astype(numpy.float32))

    def view(self, stored: torch.Tensor, row: dict[str, str]) -> torch.Tensor:
        low, high = self._draw()
        hu = stored - float(row.get("hu_offset") or self._offset)
        unit = ((hu - low) / (high - low)).clamp_(0, 1)
        left, top, right, bottom = map(int, random_box(unit.shape[1], unit.shape[0], self._scale))
        crop = unit[None, None, top:bottom, left:right]
        view = torch.nn.functional.interpolate(crop, (self._size, self._size), mode="bilinear", antialias=True, align_corners=False)[0]
        if random.random() < 0.5:
            view = view.flip(2)
        return view.expand(3, -1, -1)


def _preset_window() -> tuple[float, float]:
    """Around those of lung, soft tissue and bone."""
    level, width = random.choice(((-600.0, 1500.0), (40.0, 400.0), (400.0, 1800.0)))
    level += random.uniform(-50, 50)
    width *= random.uniform(0.8, 1.2)
    return level - width / 2, level + width / 2
