"""Operations on images: sizes, crops, flips and what makes floats of pixels."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import UsageError
from .checks import Fill, Range, Size, checked_filter, checked_number, checked_numbers, checked_pair, checked_whole, height_width, low_high
from .operation import Augmentation, Transform

_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)


class RandomResizedCrop(Transform):
    """A random rectangle of the image, resized to ``size`` (a number, or height and width): torchvision's, same pixels."""

    def __init__(self, size: Size, scale: Sequence[float] = (0.08, 1.0), ratio: Sequence[float] = (3 / 4, 4 / 3),
                 interpolation: str = "bilinear") -> None:
        height, width = height_width(self, size)
        scale_min, scale_max = checked_pair(self, "scale", scale)
        ratio_min, ratio_max = checked_pair(self, "ratio", ratio)
        super().__init__(height=height, width=width, scale_min=scale_min, scale_max=scale_max, ratio_min=ratio_min,
                         ratio_max=ratio_max, filter=checked_filter(self, interpolation))


class Resize(Transform):
    """One number: the shorter side becomes that long and the aspect is kept. Two: height and width."""

    def __init__(self, size: Size, interpolation: str = "bilinear") -> None:
        if isinstance(size, int) or len(size) == 1:
            height, width = checked_whole(self, "size", size if isinstance(size, int) else size[0]), 0
        else:
            height, width = height_width(self, size)
        super().__init__(height=height, width=width, filter=checked_filter(self, interpolation))


class CenterCrop(Transform):
    """The middle ``size`` (a number, or height and width) of the image."""

    def __init__(self, size: Size) -> None:
        height, width = height_width(self, size)
        super().__init__(height=height, width=width)


class HorizontalFlip(Transform):
    """Mirrors left and right with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        p = checked_number(self, "p", p)
        if not 0 <= p <= 1:
            raise UsageError(f"HorizontalFlip: p is a probability from 0 to 1, not {p}")
        super().__init__(p=p)


class VerticalFlip(Augmentation):
    """Turns top and bottom with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=p)


class Pad(Augmentation):
    """Adds pixels: on all sides; left and right, top and bottom; or left, top, right, bottom."""

    def __init__(self, padding: Size, fill: Fill = 0, padding_mode: str = "constant") -> None:
        super().__init__(padding=padding, fill=fill, padding_mode=padding_mode)


class RandomCrop(Augmentation):
    """``size`` (a number, or height and width) from a random place, after ``padding`` was added."""

    def __init__(self, size: Size, padding: Size | None = None, pad_if_needed: bool = False, fill: Fill = 0,
                 padding_mode: str = "constant") -> None:
        super().__init__(size=size, padding=padding, pad_if_needed=pad_if_needed, fill=fill, padding_mode=padding_mode)


class FiveCrop(Augmentation):
    """The four corners and the middle, as five views: ``data`` is ``[batch, 5, ...]``."""

    def __init__(self, size: Size) -> None:
        super().__init__(size=size)


class TenCrop(Augmentation):
    """FiveCrop of the image and of the mirrored one (``vertical_flip``: upside down), as ten views."""

    def __init__(self, size: Size, vertical_flip: bool = False) -> None:
        super().__init__(size=size, vertical_flip=vertical_flip)


class Normalize(Transform):
    """``(x / 255 - mean) / std`` per channel, as float. ``Normalize("imagenet")`` knows its figures."""

    def __init__(self, mean: str | float | Sequence[float], std: float | Sequence[float] | None = None) -> None:
        if isinstance(mean, str):
            if mean != "imagenet" or std is not None:
                raise UsageError(f"Normalize: the only named figures are \"imagenet\", not {mean!r}",
                                 "give mean and std per channel: Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))")
            mean, std = _IMAGENET_MEAN, _IMAGENET_STD
        if std is None:
            raise UsageError("Normalize: std is missing", "Normalize(mean, std), or Normalize(\"imagenet\")")
        means, stds = checked_numbers(self, "mean", mean), checked_numbers(self, "std", std)
        if len(means) != len(stds):
            raise UsageError(f"Normalize: mean has {len(means)} channels and std has {len(stds)}")
        if any(value <= 0 for value in stds):
            raise UsageError(f"Normalize: std must be above 0, not {stds}")
        super().__init__(mean=means, std=stds)


class ToFloat(Transform):
    """uint8 to float in [0, 1] (16-bit images by 65535)."""


class Window(Transform):
    """16-bit slices to [0, 1]: the values around ``level``, ``width`` wide, in Hounsfield units.

    A number is fixed, ``(low, high)`` is drawn for each sample (and each view). The value of a pixel is
    ``stored - offset``; without ``offset`` it comes from the column ``hu_offset`` of the index.csv.
    """

    def __init__(self, level: Range = (-700, 100), width: Range = (300, 2000), offset: float | None = None) -> None:
        level_min, level_max = low_high(self, "level", level)
        width_min, width_max = low_high(self, "width", width)
        if width_min <= 0:
            raise UsageError(f"Window: width must be above 0, not {width}")
        fields = dict(level_min=level_min, level_max=level_max, width_min=width_min, width_max=width_max)
        if offset is not None:
            fields["offset"] = checked_number(self, "offset", offset)
        super().__init__(**fields)
