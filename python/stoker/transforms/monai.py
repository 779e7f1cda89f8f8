"""MONAI's random operations: intensities of float32 and 16-bit values, and flips, turns and warps of patches of volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .checks import Range, ranges
from .operation import Augmentation


class RandShiftIntensity(Augmentation):
    """Adds a random number of ``offsets`` (a number ``v`` means -v to v), with probability ``prob``: MONAI's. For float32 and uint16 values."""

    def __init__(self, offsets: Range, prob: float = 0.1) -> None:
        super().__init__(offsets=offsets, prob=prob)


class RandScaleIntensity(Augmentation):
    """Multiplies by 1 + a random number of ``factors`` (a number ``v`` means -v to v), with probability ``prob``: MONAI's. For float32 and uint16 values."""

    def __init__(self, factors: Range, prob: float = 0.1) -> None:
        super().__init__(factors=factors, prob=prob)


class RandAdjustContrast(Augmentation):
    """Gamma: a value's place between the least and the largest of its image, to the power of a random ``gamma``, with probability ``prob``: MONAI's.
    A number ``v`` means 0.5 to v."""

    def __init__(self, prob: float = 0.1, gamma: Range = (0.5, 4.5)) -> None:
        super().__init__(prob=prob, gamma=(0.5, gamma) if isinstance(gamma, (int, float)) else gamma)


class RandGaussianNoise(Augmentation):
    """Adds noise of ``mean`` and of a deviation drawn from 0 to ``std`` (``sample_std=False``: of ``std``), with probability ``prob``: MONAI's."""

    def __init__(self, prob: float = 0.1, mean: float = 0.0, std: float = 0.1, sample_std: bool = True) -> None:
        super().__init__(prob=prob, mean=mean, std=std, sample_std=sample_std)


class RandFlip(Augmentation):
    """Mirrors a patch of a volume and its mask along ``spatial_axis`` (0, 1, 2: z, y, x; several; None: all), with probability ``prob``: MONAI's."""

    def __init__(self, prob: float = 0.1, spatial_axis: int | Sequence[int] | None = None) -> None:
        super().__init__(prob=prob, spatial_axis=spatial_axis)


class RandRotate90(Augmentation):
    """Turns a patch of a volume and its mask by 1 to ``max_k`` right angles in the plane of two axes, as numpy.rot90, with probability ``prob``: MONAI's."""

    def __init__(self, prob: float = 0.1, max_k: int = 3, spatial_axes: Sequence[int] = (0, 1)) -> None:
        super().__init__(prob=prob, max_k=max_k, spatial_axes=spatial_axes)


class RandAffine(Augmentation):
    """Turns (radians), shears, shifts (voxels) and scales a patch of a volume, with probability ``prob``: MONAI's.

    A range has an entry for each axis, z, y, x (of shears up to six): a number ``v`` means -v to v, a pair is low and high. To a scale 1 is added.
    ``mode`` is ``"bilinear"`` or ``"nearest"``; masks take the nearest voxel. ``padding_mode`` is ``"reflection"``, ``"border"`` or ``"zeros"``.
    """

    def __init__(self, prob: float = 0.1, rotate_range: Any = None, shear_range: Any = None, translate_range: Any = None, scale_range: Any = None, *,
                 mode: str = "bilinear", padding_mode: str = "reflection") -> None:
        super().__init__(prob=prob, rotate_range=ranges(self, "rotate_range", rotate_range), shear_range=ranges(self, "shear_range", shear_range),
                         translate_range=ranges(self, "translate_range", translate_range), scale_range=ranges(self, "scale_range", scale_range),
                         mode=mode, padding_mode=padding_mode)
