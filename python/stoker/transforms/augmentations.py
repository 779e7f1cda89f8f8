"""Random changes of images: colours, blur, warps, erasing, and the learned sets of them. Pixels are those of torchvision on Pillow images."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import UsageError
from .checks import Fill, Range, Size
from .operation import Augmentation


class ColorJitter(Augmentation):
    """Random brightness, contrast, saturation and hue, in a random order. A number ``v`` means 1 - v to 1 + v (hue: -v to v)."""

    def __init__(self, brightness: Range = 0, contrast: Range = 0, saturation: Range = 0, hue: Range = 0) -> None:
        super().__init__(brightness=brightness, contrast=contrast, saturation=saturation, hue=hue)


class Grayscale(Augmentation):
    """Gray, as 1 or 3 channels."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__(num_output_channels=num_output_channels)


class RandomInvert(Augmentation):
    """255 - x with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=p)


class RandomAutocontrast(Augmentation):
    """Stretches each channel over 0 to 255 with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=p)


class RandomEqualize(Augmentation):
    """Evens the histogram of each channel out with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=p)


class RandomGrayscale(Augmentation):
    """Gray with probability ``p``; the number of channels stays."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p=p)


class RandomPosterize(Augmentation):
    """Keeps the upper ``bits`` of each byte, with probability ``p``."""

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(bits=bits, p=p)


class RandomSolarize(Augmentation):
    """Inverts values from ``threshold`` on, with probability ``p``."""

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(threshold=threshold, p=p)


class RandomAdjustSharpness(Augmentation):
    """Sharper (above 1) or smoother (below), with probability ``p``."""

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(sharpness_factor=sharpness_factor, p=p)


class GaussianBlur(Augmentation):
    """A blur whose kernel is ``kernel_size`` (one odd number, or width and height), of a random ``sigma``."""

    def __init__(self, kernel_size: Size, sigma: Range = (0.1, 2.0)) -> None:
        super().__init__(kernel_size=kernel_size, sigma=sigma)


class RandomRotation(Augmentation):
    """Turns by a random angle: a number ``v`` means -v to v degrees. ``expand`` makes room for the corners."""

    def __init__(self, degrees: Range, interpolation: str = "nearest", expand: bool = False,
                 center: Sequence[float] | None = None, fill: Fill = 0) -> None:
        super().__init__(degrees=degrees, interpolation=interpolation, expand=expand, center=center, fill=fill)


class RandomAffine(Augmentation):
    """Turns, shifts (by shares of the size), scales and shears (in degrees) at random."""

    def __init__(self, degrees: Range, translate: Sequence[float] | None = None, scale: Sequence[float] | None = None,
                 shear: Range | None = None, interpolation: str = "nearest", fill: Fill = 0,
                 center: Sequence[float] | None = None) -> None:
        if isinstance(shear, (int, float)):
            shear = (-shear, shear)
        super().__init__(degrees=degrees, translate=translate, scale=scale, shear=shear, interpolation=interpolation,
                         fill=fill, center=center)


class RandomPerspective(Augmentation):
    """Moves the corners inwards by up to ``distortion_scale`` of half the size, with probability ``p``."""

    def __init__(self, distortion_scale: float = 0.5, p: float = 0.5, interpolation: str = "bilinear", fill: Fill = 0) -> None:
        super().__init__(distortion_scale=distortion_scale, p=p, interpolation=interpolation, fill=fill)


class RandomZoomOut(Augmentation):
    """Puts the image into a larger one, whose sides are ``side_range`` times as long, with probability ``p``."""

    def __init__(self, fill: Fill = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5) -> None:
        super().__init__(fill=fill, side_range=side_range, p=p)


class RandAugment(Augmentation):
    """``num_ops`` random operations of one magnitude."""

    def __init__(self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31, interpolation: str = "nearest",
                 fill: Fill = None) -> None:
        super().__init__(num_ops=num_ops, magnitude=magnitude, num_magnitude_bins=num_magnitude_bins,
                         interpolation=interpolation, fill=fill)


class TimmRandAugment(Augmentation):
    """timm's RandAugment in timm's own words: ``TimmRandAugment("rand-m9-mstd0.5-inc1")``.

    ``interpolation="random"`` draws bilinear or bicubic for each operation, as timm does. ``fill`` is gray, or the mean of the
    data set: ``fill=(124, 116, 104)``.
    """

    def __init__(self, config: str, interpolation: str = "random", fill: Fill = 128) -> None:
        super().__init__(config=config, interpolation=interpolation, fill=fill)


class TrivialAugmentWide(Augmentation):
    """One random operation of a random magnitude."""

    def __init__(self, num_magnitude_bins: int = 31, interpolation: str = "nearest", fill: Fill = None) -> None:
        super().__init__(num_magnitude_bins=num_magnitude_bins, interpolation=interpolation, fill=fill)


class AugMix(Augmentation):
    """The image mixed with ``mixture_width`` chains of 1 to 3 random operations (``chain_depth``: that many), by random shares.

    The chains have the pixels of torchvision's operations on Pillow images; torchvision's own AugMix makes a tensor of the image first.
    """

    def __init__(self, severity: int = 3, mixture_width: int = 3, chain_depth: int = -1, alpha: float = 1.0, all_ops: bool = True,
                 interpolation: str = "bilinear", fill: Fill = None) -> None:
        super().__init__(severity=severity, mixture_width=mixture_width, chain_depth=max(chain_depth, -1), alpha=alpha, all_ops=all_ops,
                         interpolation=interpolation, fill=fill)


class AutoAugment(Augmentation):
    """One of 25 learned pairs of operations: ``policy`` is ``"imagenet"``, ``"cifar10"`` or ``"svhn"``."""

    def __init__(self, policy: str = "imagenet", interpolation: str = "nearest", fill: Fill = None) -> None:
        super().__init__(policy=policy, interpolation=interpolation, fill=fill)


class RandomErasing(Augmentation):
    """Overwrites a random rectangle with ``value`` (one number, one per channel, or ``"random"``), with probability ``p``."""

    def __init__(self, p: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3),
                 value: float | Sequence[float] | str = 0) -> None:
        if isinstance(value, str) and value != "random":
            raise UsageError(f"RandomErasing: value is a number, one per channel, or \"random\", not {value!r}")
        is_random = isinstance(value, str)
        super().__init__(p=p, scale=scale, ratio=ratio, value=None if is_random else value, random=is_random or None)
