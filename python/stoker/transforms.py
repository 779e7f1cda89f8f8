"""What happens to a sample between its file and the batch. Declared here, run by the engine.

A transform is a list of these objects, or the short text of the command line (``"rrc:224,flip,normalize:imagenet"``),
or a torchvision ``Compose`` of operations that are listed in :func:`from_torchvision`. Augmentations have torchvision's
names, arguments and defaults, and give the pixels of torchvision on Pillow images.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .errors import UsageError

__all__ = [
    "Transform", "RandomResizedCrop", "Resize", "CenterCrop", "HorizontalFlip", "Normalize", "ToFloat", "Window",
    "PadOrTrim", "Resample", "Mono", "Views", "ColorJitter", "Grayscale", "VerticalFlip", "RandomInvert", "RandomAutocontrast",
    "RandomEqualize", "RandomGrayscale", "RandomPosterize", "RandomSolarize", "RandomAdjustSharpness", "GaussianBlur",
    "RandomApply", "RandomChoice", "RandomOrder", "RandAugment", "TrivialAugmentWide", "AutoAugment", "RandomErasing", "Pad",
    "RandomCrop", "RandomRotation", "RandomAffine", "RandomPerspective", "RandomZoomOut", "MixUp", "CutMix", "FiveCrop",
    "TenCrop", "RandomTrim", "Vol", "Gain", "PolarityInversion", "Shift", "MelSpectrogram", "MFCC", "AmplitudeToDB",
    "FrequencyMasking", "TimeMasking", "TimmRandAugment", "AugMix",
    "RandShiftIntensity", "RandScaleIntensity", "RandAdjustContrast", "RandGaussianNoise", "RandFlip", "RandRotate90", "RandAffine",
]

Size = int | Sequence[int]
Range = float | Sequence[float]
Fill = float | Sequence[float] | None

_FILTERS = ("bilinear", "bicubic", "nearest", "box", "lanczos")
_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)


class Transform:
    """One operation. Immutable; two of the same kind with the same arguments are equal."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def to_json(self) -> dict[str, Any]:
        """The form in which the engine takes it."""
        return {"op": type(self).__name__, **self._fields}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transform) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_json(), sort_keys=True))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self._fields.items())})"


class RandomResizedCrop(Transform):
    """A random rectangle of the image, resized to ``size`` (a number, or height and width): torchvision's, same pixels."""

    def __init__(self, size: Size, scale: Sequence[float] = (0.08, 1.0), ratio: Sequence[float] = (3 / 4, 4 / 3),
                 interpolation: str = "bilinear") -> None:
        height, width = _height_width(self, size)
        scale_min, scale_max = _pair(self, "scale", scale)
        ratio_min, ratio_max = _pair(self, "ratio", ratio)
        super().__init__(height=height, width=width, scale_min=scale_min, scale_max=scale_max, ratio_min=ratio_min,
                         ratio_max=ratio_max, filter=_filter(self, interpolation))


class Resize(Transform):
    """One number: the shorter side becomes that long and the aspect is kept. Two: height and width."""

    def __init__(self, size: Size, interpolation: str = "bilinear") -> None:
        if isinstance(size, int) or len(size) == 1:
            height, width = _whole(self, "size", size if isinstance(size, int) else size[0]), 0
        else:
            height, width = _height_width(self, size)
        super().__init__(height=height, width=width, filter=_filter(self, interpolation))


class CenterCrop(Transform):
    """The middle ``size`` (a number, or height and width) of the image."""

    def __init__(self, size: Size) -> None:
        height, width = _height_width(self, size)
        super().__init__(height=height, width=width)


class HorizontalFlip(Transform):
    """Mirrors left and right with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        p = _number(self, "p", p)
        if not 0 <= p <= 1:
            raise UsageError(f"HorizontalFlip: p is a probability from 0 to 1, not {p}")
        super().__init__(p=p)


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
        means, stds = _numbers(self, "mean", mean), _numbers(self, "std", std)
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
        level_min, level_max = _range(self, "level", level)
        width_min, width_max = _range(self, "width", width)
        if width_min <= 0:
            raise UsageError(f"Window: width must be above 0, not {width}")
        fields = dict(level_min=level_min, level_max=level_max, width_min=width_min, width_max=width_max)
        if offset is not None:
            fields["offset"] = _number(self, "offset", offset)
        super().__init__(**fields)


class PadOrTrim(Transform):
    """Audio of exactly ``frames`` frames: zeros are added or the end is cut."""

    def __init__(self, frames: int) -> None:
        super().__init__(frames=_whole(self, "frames", frames))


class Resample(Transform):
    """Audio at ``hz`` frames per second, whatever the file has."""

    def __init__(self, hz: int) -> None:
        super().__init__(hz=_whole(self, "hz", hz))


class Mono(Transform):
    """The mean of the channels."""


class _Augmentation(Transform):
    """One of the operations whose arguments the engine checks: ``stoker --help`` of the short text has their ranges."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**{name: _plain(self, name, value) for name, value in fields.items() if value is not None})
        _check(self)


class ColorJitter(_Augmentation):
    """Random brightness, contrast, saturation and hue, in a random order. A number ``v`` means 1 - v to 1 + v (hue: -v to v)."""

    def __init__(self, brightness: Range = 0, contrast: Range = 0, saturation: Range = 0, hue: Range = 0) -> None:
        super().__init__(brightness=brightness, contrast=contrast, saturation=saturation, hue=hue)


class Grayscale(_Augmentation):
    """Gray, as 1 or 3 channels."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__(num_output_channels=num_output_channels)


class VerticalFlip(_Augmentation):
    """Turns top and bottom with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=p)


class RandomInvert(_Augmentation):
    """255 - x with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=p)


class RandomAutocontrast(_Augmentation):
    """Stretches each channel over 0 to 255 with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=p)


class RandomEqualize(_Augmentation):
    """Evens the histogram of each channel out with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=p)


class RandomGrayscale(_Augmentation):
    """Gray with probability ``p``; the number of channels stays."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p=p)


class RandomPosterize(_Augmentation):
    """Keeps the upper ``bits`` of each byte, with probability ``p``."""

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(bits=bits, p=p)


class RandomSolarize(_Augmentation):
    """Inverts values from ``threshold`` on, with probability ``p``."""

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(threshold=threshold, p=p)


class RandomAdjustSharpness(_Augmentation):
    """Sharper (above 1) or smoother (below), with probability ``p``."""

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(sharpness_factor=sharpness_factor, p=p)


class GaussianBlur(_Augmentation):
    """A blur whose kernel is ``kernel_size`` (one odd number, or width and height), of a random ``sigma``."""

    def __init__(self, kernel_size: Size, sigma: Range = (0.1, 2.0)) -> None:
        super().__init__(kernel_size=kernel_size, sigma=sigma)


class Pad(_Augmentation):
    """Adds pixels: on all sides; left and right, top and bottom; or left, top, right, bottom."""

    def __init__(self, padding: Size, fill: Fill = 0, padding_mode: str = "constant") -> None:
        super().__init__(padding=padding, fill=fill, padding_mode=padding_mode)


class RandomCrop(_Augmentation):
    """``size`` (a number, or height and width) from a random place, after ``padding`` was added."""

    def __init__(self, size: Size, padding: Size | None = None, pad_if_needed: bool = False, fill: Fill = 0,
                 padding_mode: str = "constant") -> None:
        super().__init__(size=size, padding=padding, pad_if_needed=pad_if_needed, fill=fill, padding_mode=padding_mode)


class RandomRotation(_Augmentation):
    """Turns by a random angle: a number ``v`` means -v to v degrees. ``expand`` makes room for the corners."""

    def __init__(self, degrees: Range, interpolation: str = "nearest", expand: bool = False,
                 center: Sequence[float] | None = None, fill: Fill = 0) -> None:
        super().__init__(degrees=degrees, interpolation=interpolation, expand=expand, center=center, fill=fill)


class RandomAffine(_Augmentation):
    """Turns, shifts (by shares of the size), scales and shears (in degrees) at random."""

    def __init__(self, degrees: Range, translate: Sequence[float] | None = None, scale: Sequence[float] | None = None,
                 shear: Range | None = None, interpolation: str = "nearest", fill: Fill = 0,
                 center: Sequence[float] | None = None) -> None:
        if isinstance(shear, (int, float)):
            shear = (-shear, shear)
        super().__init__(degrees=degrees, translate=translate, scale=scale, shear=shear, interpolation=interpolation,
                         fill=fill, center=center)


class RandomPerspective(_Augmentation):
    """Moves the corners inwards by up to ``distortion_scale`` of half the size, with probability ``p``."""

    def __init__(self, distortion_scale: float = 0.5, p: float = 0.5, interpolation: str = "bilinear", fill: Fill = 0) -> None:
        super().__init__(distortion_scale=distortion_scale, p=p, interpolation=interpolation, fill=fill)


class RandomZoomOut(_Augmentation):
    """Puts the image into a larger one, whose sides are ``side_range`` times as long, with probability ``p``."""

    def __init__(self, fill: Fill = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5) -> None:
        super().__init__(fill=fill, side_range=side_range, p=p)


class RandAugment(_Augmentation):
    """``num_ops`` random operations of one magnitude."""

    def __init__(self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31, interpolation: str = "nearest",
                 fill: Fill = None) -> None:
        super().__init__(num_ops=num_ops, magnitude=magnitude, num_magnitude_bins=num_magnitude_bins,
                         interpolation=interpolation, fill=fill)


class TimmRandAugment(_Augmentation):
    """timm's RandAugment in timm's own words: ``TimmRandAugment("rand-m9-mstd0.5-inc1")``.

    ``interpolation="random"`` draws bilinear or bicubic for each operation, as timm does. ``fill`` is gray, or the mean of the
    data set: ``fill=(124, 116, 104)``.
    """

    def __init__(self, config: str, interpolation: str = "random", fill: Fill = 128) -> None:
        super().__init__(config=config, interpolation=interpolation, fill=fill)


class TrivialAugmentWide(_Augmentation):
    """One random operation of a random magnitude."""

    def __init__(self, num_magnitude_bins: int = 31, interpolation: str = "nearest", fill: Fill = None) -> None:
        super().__init__(num_magnitude_bins=num_magnitude_bins, interpolation=interpolation, fill=fill)


class AugMix(_Augmentation):
    """The image mixed with ``mixture_width`` chains of 1 to 3 random operations (``chain_depth``: that many), by random shares.

    The chains have the pixels of torchvision's operations on Pillow images; torchvision's own AugMix makes a tensor of the image first.
    """

    def __init__(self, severity: int = 3, mixture_width: int = 3, chain_depth: int = -1, alpha: float = 1.0, all_ops: bool = True,
                 interpolation: str = "bilinear", fill: Fill = None) -> None:
        super().__init__(severity=severity, mixture_width=mixture_width, chain_depth=max(chain_depth, -1), alpha=alpha, all_ops=all_ops,
                         interpolation=interpolation, fill=fill)


class AutoAugment(_Augmentation):
    """One of 25 learned pairs of operations: ``policy`` is ``"imagenet"``, ``"cifar10"`` or ``"svhn"``."""

    def __init__(self, policy: str = "imagenet", interpolation: str = "nearest", fill: Fill = None) -> None:
        super().__init__(policy=policy, interpolation=interpolation, fill=fill)


class RandomErasing(_Augmentation):
    """Overwrites a random rectangle with ``value`` (one number, one per channel, or ``"random"``), with probability ``p``."""

    def __init__(self, p: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3),
                 value: float | Sequence[float] | str = 0) -> None:
        if isinstance(value, str) and value != "random":
            raise UsageError(f"RandomErasing: value is a number, one per channel, or \"random\", not {value!r}")
        is_random = isinstance(value, str)
        super().__init__(p=p, scale=scale, ratio=ratio, value=None if is_random else value, random=is_random or None)


class RandShiftIntensity(_Augmentation):
    """Adds a random number of ``offsets`` (a number ``v`` means -v to v), with probability ``prob``: MONAI's. For float32 and uint16 values."""

    def __init__(self, offsets: Range, prob: float = 0.1) -> None:
        super().__init__(offsets=offsets, prob=prob)


class RandScaleIntensity(_Augmentation):
    """Multiplies by 1 + a random number of ``factors`` (a number ``v`` means -v to v), with probability ``prob``: MONAI's. For float32 and uint16 values."""

    def __init__(self, factors: Range, prob: float = 0.1) -> None:
        super().__init__(factors=factors, prob=prob)


class RandAdjustContrast(_Augmentation):
    """Gamma: a value's place between the least and the largest of its image, to the power of a random ``gamma``, with probability ``prob``: MONAI's.
    A number ``v`` means 0.5 to v."""

    def __init__(self, prob: float = 0.1, gamma: Range = (0.5, 4.5)) -> None:
        super().__init__(prob=prob, gamma=(0.5, gamma) if isinstance(gamma, (int, float)) else gamma)


class RandGaussianNoise(_Augmentation):
    """Adds noise of ``mean`` and of a deviation drawn from 0 to ``std`` (``sample_std=False``: of ``std``), with probability ``prob``: MONAI's."""

    def __init__(self, prob: float = 0.1, mean: float = 0.0, std: float = 0.1, sample_std: bool = True) -> None:
        super().__init__(prob=prob, mean=mean, std=std, sample_std=sample_std)


class RandFlip(_Augmentation):
    """Mirrors a patch of a volume and its mask along ``spatial_axis`` (0, 1, 2: z, y, x; several; None: all), with probability ``prob``: MONAI's."""

    def __init__(self, prob: float = 0.1, spatial_axis: int | Sequence[int] | None = None) -> None:
        super().__init__(prob=prob, spatial_axis=spatial_axis)


class RandRotate90(_Augmentation):
    """Turns a patch of a volume and its mask by 1 to ``max_k`` right angles in the plane of two axes, as numpy.rot90, with probability ``prob``: MONAI's."""

    def __init__(self, prob: float = 0.1, max_k: int = 3, spatial_axes: Sequence[int] = (0, 1)) -> None:
        super().__init__(prob=prob, max_k=max_k, spatial_axes=spatial_axes)


class RandAffine(_Augmentation):
    """Turns (radians), shears, shifts (voxels) and scales a patch of a volume, with probability ``prob``: MONAI's.

    A range has an entry for each axis, z, y, x (of shears up to six): a number ``v`` means -v to v, a pair is low and high. To a scale 1 is added.
    ``mode`` is ``"bilinear"`` or ``"nearest"``; masks take the nearest voxel. ``padding_mode`` is ``"reflection"``, ``"border"`` or ``"zeros"``.
    """

    def __init__(self, prob: float = 0.1, rotate_range: Any = None, shear_range: Any = None, translate_range: Any = None, scale_range: Any = None, *,
                 mode: str = "bilinear", padding_mode: str = "reflection") -> None:
        super().__init__(prob=prob, rotate_range=_ranges(self, "rotate_range", rotate_range), shear_range=_ranges(self, "shear_range", shear_range),
                         translate_range=_ranges(self, "translate_range", translate_range), scale_range=_ranges(self, "scale_range", scale_range),
                         mode=mode, padding_mode=padding_mode)


class RandomApply(_Augmentation):
    """All of ``transforms`` with probability ``p``, or none."""

    def __init__(self, transforms: Sequence[Transform], p: float = 0.5) -> None:
        super().__init__(transforms=_held(self, transforms), p=p)


class RandomChoice(_Augmentation):
    """One of ``transforms``, by the weights ``p`` where they are given."""

    def __init__(self, transforms: Sequence[Transform], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms=_held(self, transforms), p=p)


class RandomOrder(_Augmentation):
    """All of ``transforms``, in a random order."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        super().__init__(transforms=_held(self, transforms))


class FiveCrop(_Augmentation):
    """The four corners and the middle, as five views: ``data`` is ``[batch, 5, ...]``."""

    def __init__(self, size: Size) -> None:
        super().__init__(size=size)


class TenCrop(_Augmentation):
    """FiveCrop of the image and of the mirrored one (``vertical_flip``: upside down), as ten views."""

    def __init__(self, size: Size, vertical_flip: bool = False) -> None:
        super().__init__(size=size, vertical_flip=vertical_flip)


class RandomTrim(_Augmentation):
    """Audio of exactly ``frames`` frames, from a random place; shorter audio gets zeros at its end."""

    def __init__(self, frames: int) -> None:
        super().__init__(frames=frames)


class Vol(_Augmentation):
    """Audio times a fixed gain, clipped to [-1, 1]: torchaudio's. ``gain_type`` is ``"amplitude"``, ``"power"`` or ``"db"``."""

    def __init__(self, gain: float, gain_type: str = "amplitude") -> None:
        super().__init__(gain=gain, gain_type=gain_type)


class Gain(_Augmentation):
    """Audio times a random gain between two numbers of decibels, with probability ``p``; not clipped."""

    def __init__(self, min_gain_in_db: float = -18.0, max_gain_in_db: float = 6.0, p: float = 0.5) -> None:
        super().__init__(min_gain_in_db=min_gain_in_db, max_gain_in_db=max_gain_in_db, p=p)


class PolarityInversion(_Augmentation):
    """-x with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=p)


class Shift(_Augmentation):
    """Moves audio in time by a random share of its length, with probability ``p``. What leaves at one end comes back at the
    other (``rollover``), or zeros take its place."""

    def __init__(self, min_shift: float = -0.5, max_shift: float = 0.5, rollover: bool = True, p: float = 0.5) -> None:
        super().__init__(min_shift=min_shift, max_shift=max_shift, rollover=rollover, p=p)


_LENGTHS = {"win_length": "n_fft", "hop_length": "half of win_length"}


class MelSpectrogram(_Augmentation):
    """Audio to ``[n_mels, steps]`` (``[channels, n_mels, steps]``): torchaudio's, with a periodic Hann window."""

    def __init__(self, sample_rate: int = 16000, n_fft: int = 400, win_length: int | None = None, hop_length: int | None = None,
                 f_min: float = 0.0, f_max: float | None = None, pad: int = 0, n_mels: int = 128, *, power: float = 2.0,
                 normalized: bool = False, center: bool = True, pad_mode: str = "reflect", norm: str | None = None,
                 mel_scale: str = "htk") -> None:
        for word, length, most in (("win_length", win_length, 65536), ("hop_length", hop_length, 2**20)):
            if length is not None and length == 0:
                raise UsageError(f"MelSpectrogram: {word} = 0 is not between 1 and {most}", f"None, or leave it out: {_LENGTHS[word]}")
        if f_max is not None and f_max == 0:
            raise UsageError("MelSpectrogram: f_max = 0 is not above 0", "None, or leave it out: half the sample rate")
        if power is None:
            raise UsageError("MelSpectrogram: power=None would give complex values, of which there are no bands", "power=2 gives power, power=1 magnitude")
        if isinstance(normalized, str):
            raise UsageError(f"MelSpectrogram: normalized is True or False, not {normalized!r}", "True is torchaudio's \"window\"; there is no \"frame_length\"")
        super().__init__(sample_rate=sample_rate, n_fft=n_fft, win_length=win_length, hop_length=hop_length, f_min=f_min, f_max=f_max,
                         pad=pad, n_mels=n_mels, power=power, normalized=normalized, center=center, pad_mode=pad_mode, norm=norm,
                         mel_scale=mel_scale)


class MFCC(_Augmentation):
    """Audio to ``[n_mfcc, steps]``: torchaudio's. ``melkwargs`` has arguments of :class:`MelSpectrogram`."""

    def __init__(self, sample_rate: int = 16000, n_mfcc: int = 40, dct_type: int = 2, norm: str | None = "ortho",
                 log_mels: bool = False, melkwargs: dict[str, Any] | None = None) -> None:
        if dct_type != 2:
            raise UsageError(f"MFCC: dct_type is 2, not {dct_type!r}")
        mel = MelSpectrogram(sample_rate, **(melkwargs or {})).to_json()
        if "norm" in mel:
            mel["mel_norm"] = mel["norm"]
        fields = {name: value for name, value in mel.items() if name not in ("op", "norm", "sample_rate")}
        super().__init__(sample_rate=sample_rate, n_mfcc=n_mfcc, norm="none" if norm is None else norm, log_mels=log_mels, **fields)


class AmplitudeToDB(_Augmentation):
    """A spectrogram in decibels: torchaudio's. ``top_db`` raises what is further below the largest value."""

    def __init__(self, stype: str = "power", top_db: float | None = None) -> None:
        if top_db is not None and _number(self, "top_db", top_db) < 0:
            raise UsageError(f"AmplitudeToDB: top_db must be at least 0, not {top_db}")
        super().__init__(stype=stype, top_db=top_db)


class FrequencyMasking(_Augmentation):
    """Zeroes up to ``freq_mask_param`` neighbouring bands of a spectrogram: torchaudio's. Every sample draws its own mask,
    and with ``iid_masks`` every channel."""

    def __init__(self, freq_mask_param: int, iid_masks: bool = False) -> None:
        super().__init__(freq_mask_param=freq_mask_param, iid_masks=iid_masks)


class TimeMasking(_Augmentation):
    """Zeroes up to ``time_mask_param`` neighbouring steps of a spectrogram, and at most ``p`` of them: torchaudio's."""

    def __init__(self, time_mask_param: int, iid_masks: bool = False, p: float = 1.0) -> None:
        super().__init__(time_mask_param=time_mask_param, iid_masks=iid_masks, p=p)


class MixUp(_Augmentation):
    """The last of a list: mixes every row of a batch with the one before it. Labels become float32 ``[batch, classes]``.

    ``num_classes`` is as many as the data set has, where it is not given. ``p`` is the chance that a batch is mixed.
    """

    def __init__(self, alpha: float = 1.0, num_classes: int | None = None, p: float = 1.0, label_smoothing: float = 0.0) -> None:
        super().__init__(alpha=alpha, num_classes=num_classes, p=p, label_smoothing=label_smoothing)


class CutMix(_Augmentation):
    """The last of a list: a rectangle of every row of a batch comes from the row before it. Arguments as for MixUp.

    ``RandomChoice([CutMix(), MixUp()])`` does one of them, by chance.
    """

    def __init__(self, alpha: float = 1.0, num_classes: int | None = None, p: float = 1.0, label_smoothing: float = 0.0) -> None:
        super().__init__(alpha=alpha, num_classes=num_classes, p=p, label_smoothing=label_smoothing)


class Views(Transform):
    """One decode, many independently drawn views: ``Views(big=(2, [...]), small=(8, [...]))``.

    Each group becomes one tensor ``[batch, count, ...]`` (``[batch, ...]`` for a count of 1), and ``data`` of the batch
    is a dict of them by group name: ``for views, labels in loader: views["big"]``. A torchvision ``Compose`` may be a group's list.
    """

    def __init__(self, **groups: tuple[int, Any]) -> None:
        if not groups:
            raise UsageError("Views: no group was given", "Views(big=(2, [...]), small=(8, [...]))")
        listed = []
        for name, group in groups.items():
            if not (isinstance(group, (tuple, list)) and len(group) == 2 and isinstance(group[0], int)):
                raise UsageError(f"Views: {name} is not (count, [transforms]): {group!r}",
                                 "Views(big=(2, [stoker.RandomResizedCrop(224)]))")
            count, transform = group
            listed.append({"name": name, "count": _whole(self, name, count), "ops": [operation.to_json() for operation in _operations(transform)]})
        super().__init__(groups=listed)


# What needs the whole batch, several views, a column of the index, or sound.
_NEVER_AFTER = (Views, MixUp, CutMix, FiveCrop, TenCrop, Window, Resample, Mono, PadOrTrim)


def compile_steps(transform: Any) -> tuple[str, list[Callable[[Any], Any]], str]:
    """For callables on single samples: the engine's form of the operations before them, the callables, and the form of the operations after them."""
    if transform is None or isinstance(transform, (str, Transform)):
        return compile_transform(transform), [], "[]"
    before: list[Any] = []
    callables: list[Callable[[Any], Any]] = []
    after: list[Any] = []
    for item in _flattened([transform]):
        is_ours = isinstance(item, Transform) or _is_library(item)
        if not is_ours and callable(item) and not isinstance(item, type):
            if after:
                raise UsageError(f"transform: {_name(item)} stands behind operations that stand behind a Python callable",
                                 "put the callables next to each other: operations, callables, operations", option="transform")
            callables.append(item)
        elif callables:
            after.append(item)
        else:
            before.append(item)
    for item in after:
        if isinstance(item, _NEVER_AFTER):
            raise UsageError(f"transform: {type(item).__name__} cannot stand behind a Python callable", "put it before the callable, or do it in the callable", option="transform")
    return compile_transform(before), callables, compile_transform(after)


def compile_transform(transform: Any) -> str:
    """The engine's form (JSON or short text) of what was given as ``transform=``, without callables."""
    if isinstance(transform, str):
        return transform if transform.strip() else "[]"
    return json.dumps([operation.to_json() for operation in _operations([] if transform is None else transform)])


def _operations(transform: Any) -> list[Transform]:
    """Operations of Stoker, torchvision or timm, alone or in lists, as operations of Stoker."""
    operations: list[Transform] = []
    for item in _flattened([transform]):
        operations.extend(from_torchvision(item) if _is_library(item) else [_checked(item)])
    return _without_double_scaling(operations)


def from_torchvision(operation: Any) -> list[Transform]:
    """The same thing in Stoker's words, or UsageError naming the operation that has none.

    Known: Compose, RandomResizedCrop, Resize, CenterCrop, RandomHorizontalFlip, Normalize, ToTensor, PILToTensor,
    ConvertImageDtype, and of v2 also ToImage, ToDtype, ToPureTensor, RGB; the presets of its weights,
    ``ResNet50_Weights.DEFAULT.transforms()``; and the augmentations of this page that have torchvision's name. Of timm:
    RandAugment, RandomResizedCropAndInterpolation, MaybeToTensor and RandomErasing.
    """
    name = type(operation).__name__
    if _library(operation) == "timm":
        return _from_timm(operation)
    if _library(operation) == "torchaudio":
        hint = f"write stoker.{name}(...), which gives its values" if name in __all__ else f"put a function of your own into the list; {_OWN}"
        raise UsageError(f"transform: torchaudio's {name} is not translated", hint)
    if name == "Compose":
        return [mine for inner in operation.transforms for mine in from_torchvision(inner)]
    if name == "RandomResizedCrop":
        return [RandomResizedCrop(operation.size, operation.scale, operation.ratio, _torchvision_filter(operation))]
    if name == "Resize":
        if getattr(operation, "max_size", None) is not None:
            raise UsageError("transform: torchvision's Resize(max_size=...) has no counterpart here", "leave max_size out")
        return [Resize(operation.size, _torchvision_filter(operation))]
    if name == "CenterCrop":
        return [CenterCrop(operation.size)]
    if name == "RandomHorizontalFlip":
        return [HorizontalFlip(operation.p)]
    if name == "Normalize":
        return [Normalize(operation.mean, operation.std)]
    if name == "ToTensor":
        return [ToFloat()]
    if name in ("PILToTensor", "ToImage", "ToPureTensor", "Identity", "RGB"):  # images are RGB unless color= says otherwise
        return []
    if name == "ImageClassification":  # what a model's weights want
        crop = [Resize(operation.resize_size, _torchvision_filter(operation)), CenterCrop(operation.crop_size)]
        return [*crop, Normalize(operation.mean, operation.std)]
    if name in ("ConvertImageDtype", "ToDtype"):
        dtype = str(operation.dtype)
        if dtype == "torch.float32" and getattr(operation, "scale", name == "ConvertImageDtype"):
            return [ToFloat()]
        if dtype == "torch.uint8":
            return []
        raise UsageError(f"transform: torchvision's {name}({dtype}) has no counterpart here",
                         "use ToDtype(torch.float32, scale=True), or the dtype= of the loader")
    if name in _SAME_NAME:
        return [_translated(operation)]
    if name == "Lambda":
        raise UsageError("transform: torchvision's Lambda has no counterpart in Stoker",
                         f"put the function itself into the list; {_OWN}. After FiveCrop and TenCrop leave it out: crops are stacked")
    known = ", ".join(("RandomResizedCrop, Resize, CenterCrop, RandomHorizontalFlip, Normalize, ToTensor, ToDtype", *_SAME_NAME))
    raise UsageError(f"transform: torchvision's {name} has no counterpart in Stoker",
                     f"known: {known}; for anything else, put a function of your own into the list; {_OWN}")


_OWN = "it gets one sample as a numpy array: transform=[..., function]"

# torchvision's augmentations, with their arguments in the order of Stoker's class.
_SAME_NAME: dict[str, tuple[type[Transform], tuple[str, ...]]] = {
    "ColorJitter": (ColorJitter, ("brightness", "contrast", "saturation", "hue")),
    "Grayscale": (Grayscale, ("num_output_channels",)),
    "RandomVerticalFlip": (VerticalFlip, ("p",)),
    "RandomInvert": (RandomInvert, ("p",)),
    "RandomAutocontrast": (RandomAutocontrast, ("p",)),
    "RandomEqualize": (RandomEqualize, ("p",)),
    "RandomGrayscale": (RandomGrayscale, ("p",)),
    "RandomPosterize": (RandomPosterize, ("bits", "p")),
    "RandomSolarize": (RandomSolarize, ("threshold", "p")),
    "RandomAdjustSharpness": (RandomAdjustSharpness, ("sharpness_factor", "p")),
    "GaussianBlur": (GaussianBlur, ("kernel_size", "sigma")),
    "Pad": (Pad, ("padding", "fill", "padding_mode")),
    "RandomCrop": (RandomCrop, ("size", "padding", "pad_if_needed", "fill", "padding_mode")),
    "RandomRotation": (RandomRotation, ("degrees", "interpolation", "expand", "center", "fill")),
    "RandomAffine": (RandomAffine, ("degrees", "translate", "scale", "shear", "interpolation", "fill", "center")),
    "RandomPerspective": (RandomPerspective, ("distortion_scale", "p", "interpolation", "fill")),
    "RandomZoomOut": (RandomZoomOut, ("fill", "side_range", "p")),
    "RandAugment": (RandAugment, ("num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill")),
    "TrivialAugmentWide": (TrivialAugmentWide, ("num_magnitude_bins", "interpolation", "fill")),
    "AutoAugment": (AutoAugment, ("policy", "interpolation", "fill")),
    "AugMix": (AugMix, ("severity", "mixture_width", "chain_depth", "alpha", "all_ops", "interpolation", "fill")),
    "RandomErasing": (RandomErasing, ("p", "scale", "ratio", "value")),
    "RandomApply": (RandomApply, ("transforms", "p")),
    "RandomChoice": (RandomChoice, ("transforms", "p")),
    "RandomOrder": (RandomOrder, ("transforms",)),
    "FiveCrop": (FiveCrop, ("size",)),
    "TenCrop": (TenCrop, ("size", "vertical_flip")),
    "MixUp": (MixUp, ("alpha", "num_classes")),
    "CutMix": (CutMix, ("alpha", "num_classes")),
}


def _translated(operation: Any) -> Transform:
    mine, words = _SAME_NAME[type(operation).__name__]
    values: dict[str, Any] = {}
    for word in words:
        value = getattr(operation, word, None)
        if word == "interpolation":
            value = _torchvision_filter(operation)
        elif word == "policy":
            value = str(getattr(value, "value", value)).lower()
        elif word == "transforms":
            value = [_grouped(from_torchvision(inner)) for inner in value or []]
        elif word in ("size", "kernel_size", "padding") and isinstance(value, (list, tuple)) and len(set(value)) == 1:
            value = value[0]
        elif word == "fill":
            value = _torchvision_fill(operation, value)
        elif mine is ColorJitter and value is None:
            value = 0 if word == "hue" else (1.0, 1.0)
        elif word == "p" and mine is RandomChoice and value is not None and len(set(value)) == 1:
            value = None
        if value is not None:
            values[word] = value
    if mine is RandomErasing and "value" not in values:
        values["value"] = "random"
    return mine(**values)


_TIMM_PICKS = ("AutoContrast", "Equalize", "Invert", "Rotate", "Posterize", "Solarize", "SolarizeAdd", "Color", "Contrast", "Brightness",
               "Sharpness", "ShearX", "ShearY", "TranslateXRel", "TranslateYRel")
_TIMM_INCREASING = tuple(f"{name}Increasing" if name in ("Posterize", "Solarize", "Color", "Contrast", "Brightness", "Sharpness") else name
                         for name in _TIMM_PICKS)
_TIMM_SETS: dict[str, dict[str, float] | tuple[str, ...]] = {
    "tweights": {"Rotate": 3, "ShearX": 2, "ShearY": 2, "TranslateXRel": 1, "TranslateYRel": 1, "ColorIncreasing": 0.25, "SharpnessIncreasing": 0.25,
                 "AutoContrast": 0.25, "SolarizeIncreasing": 0.05, "SolarizeAdd": 0.05, "ContrastIncreasing": 0.05, "BrightnessIncreasing": 0.05,
                 "Equalize": 0.05, "PosterizeIncreasing": 0.05, "Invert": 0.05},
    "t3a": ("SolarizeIncreasing", "Desaturate", "GaussianBlur"),
    "t3aw": {"SolarizeIncreasing": 6, "Desaturate": 6, "GaussianBlur": 6, "Rotate": 3, "ShearX": 2, "ShearY": 2, "PosterizeIncreasing": 1, "AutoContrast": 1,
             "ColorIncreasing": 1, "SharpnessIncreasing": 1, "ContrastIncreasing": 1, "BrightnessIncreasing": 1, "Equalize": 1, "Invert": 1},
}
_PILLOW_FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box"}  # the numbers of Image.Resampling


def _from_timm(operation: Any) -> list[Transform]:
    """timm's operations for training images."""
    name = type(operation).__name__
    if name == "RandAugment":
        return [_timm_rand_augment(operation)]
    if name in ("MaybeToTensor", "ToTensor"):
        return [ToFloat()]
    if name in ("MaybePILToTensor", "PILToTensor", "ToNumpy"):
        return []
    if name == "RandomResizedCropAndInterpolation":
        word = _timm_filter(operation.interpolation)
        if word == "random":
            raise UsageError("transform: timm's RandomResizedCropAndInterpolation has a random interpolation, which has no counterpart here",
                             "choose one: create_transform(..., interpolation=\"bicubic\")")
        return [RandomResizedCrop(operation.size, operation.scale, operation.ratio, word)]
    if name == "RandomErasing":
        if (operation.min_count, operation.max_count) != (1, 1) or operation.rand_color:
            raise UsageError("transform: timm's RandomErasing of several rectangles or of one random colour has no counterpart here",
                             "create_transform(..., re_count=1, re_mode=\"pixel\")")
        return [RandomErasing(operation.probability, (operation.min_area, operation.max_area),
                              [math.exp(value) for value in operation.log_aspect_ratio], "random" if operation.per_pixel else 0)]
    if name in ("Mixup", "FastCollateMixup"):
        raise UsageError(f"transform: timm's {name} has no counterpart in Stoker",
                         "end the list with stoker.RandomChoice([stoker.MixUp(0.8), stoker.CutMix()])")
    raise UsageError(f"transform: timm's {name} has no counterpart in Stoker",
                     "known of timm: RandAugment, RandomResizedCropAndInterpolation, MaybeToTensor, RandomErasing")


def _timm_filter(value: Any) -> str:
    """The word for a number of Pillow, a mode of torchvision, or a tuple of which timm draws one."""
    if isinstance(value, (list, tuple)):
        words = sorted(_timm_filter(entry) for entry in value)
        return "random" if words == ["bicubic", "bilinear"] else ", ".join(words)
    word = getattr(value, "value", value)
    return _PILLOW_FILTERS.get(word, str(word)) if isinstance(word, int) else str(word)


def _timm_set(names: tuple[str, ...], weights: Any) -> str | None:
    """How a set of operations is named in timm's text, with its dash; None: nobody has named it."""
    if weights is None and names in (_TIMM_PICKS, _TIMM_INCREASING):
        return ""
    for word, known in _TIMM_SETS.items():
        if names != tuple(known):
            continue
        shares = [weight / sum(known.values()) for weight in known.values()] if isinstance(known, dict) else None
        if (weights is None) == (shares is None) and (shares is None or all(map(math.isclose, shares, weights))):
            return f"-{word}"
    return None


def _timm_rand_augment(operation: Any) -> TimmRandAugment:
    ops = list(operation.ops)
    names = tuple(op.name for op in ops)
    first: Any = ops[0] if ops else None
    known = _timm_set(names, operation.choice_weights)
    is_plain = known is not None and all(
        (op.prob, op.magnitude, op.magnitude_std, op.magnitude_max, op.kwargs) ==
        (first.prob, first.magnitude, first.magnitude_std, first.magnitude_max, first.kwargs) and op.hparams.get("translate_pct", 0.45) == 0.45
        for op in ops)
    if first is None or not is_plain:
        raise UsageError("transform: timm's RandAugment with a set of operations, weights or translate_pct of its own has no counterpart here",
                         "known are those of its texts: rand_augment_transform(\"rand-m9-mstd0.5-inc1\", {}), and tweights, t3a and t3aw")
    std = 101 if math.isinf(first.magnitude_std) else first.magnitude_std
    config = (f"rand-m{first.magnitude:g}-n{operation.num_layers}-p{first.prob:f}-mstd{std:f}-mmax{first.magnitude_max or 10}"
              f"-inc{int(names == _TIMM_INCREASING)}{known}")
    fill = first.kwargs["fillcolor"]
    return TimmRandAugment(config, _timm_filter(first.kwargs["resample"]), fill[0] if isinstance(fill, tuple) and len(set(fill)) == 1 else fill)


def _torchvision_fill(operation: Any, value: Any) -> Any:
    """v2 keeps a dict by type; images have the entry of their type, or the one for all."""
    if isinstance(value, dict):
        entries = {getattr(kind, "__name__", str(kind)): entry for kind, entry in value.items()}
        value = next((entries[kind] for kind in ("PIL.Image.Image", "Image", "Tensor", "others") if entries.get(kind) is not None), None)
    return list(value) if isinstance(value, (list, tuple)) else value


def _grouped(operations: list[Transform]) -> Transform:
    """A Compose inside a RandomChoice or RandomOrder is one operation."""
    return operations[0] if len(operations) == 1 else RandomApply(operations, p=1.0)


def _library(item: Any) -> str:
    return type(item).__module__.split(".")[0]


def _is_library(item: Any) -> bool:
    """Of torchvision, of timm, whose operations stand in a Compose of torchvision, or of torchaudio."""
    return _library(item) in ("torchvision", "timm", "torchaudio")


def _flattened(items: Iterable[Any]) -> Iterable[Any]:
    """Opens lists, torchvision's Compose and torch's Sequential of its operations, so that a callable inside is found at its place."""
    for item in items:
        if isinstance(item, (list, tuple)):
            yield from _flattened(item)
        elif _library(item) == "torchvision" and type(item).__name__ == "Compose":
            yield from _flattened(item.transforms)
        elif _library(item) == "torch" and type(item).__name__ == "Sequential" and any(map(_is_library, item)):
            yield from _flattened(item)
        else:
            yield item


def _without_double_scaling(operations: list[Transform]) -> list[Transform]:
    """Normalize divides by 255 itself, so a ToFloat right before it (torchvision's ToTensor) says nothing new."""
    return [operation for operation, following in zip(operations, [*operations[1:], None])
            if not (type(operation) is ToFloat and type(following) is Normalize)]


def _torchvision_filter(operation: Any) -> str:
    interpolation = getattr(operation, "interpolation", "bilinear")
    word = str(getattr(interpolation, "value", interpolation))
    if word == "nearest-exact":
        word = "nearest"
    if word not in _FILTERS:
        raise UsageError(f"transform: interpolation {word!r} of {type(operation).__name__} has no counterpart here",
                         f"one of {', '.join(_FILTERS)}")
    return word


def _checked(item: Any) -> Transform:
    if isinstance(item, Transform):
        return item
    if isinstance(item, type) and issubclass(item, Transform):
        raise UsageError(f"transform: {item.__name__} is a class, not an operation", f"write {item.__name__}(...)")
    if isinstance(item, str):
        import difflib
        near = difflib.get_close_matches(item, __all__, 1)
        raise UsageError(f"transform: {item!r} is a text inside a list",
                         f"write stoker.{near[0]}(...)" if near else "give one text instead of a list: transform=\"rrc:224,flip\"")
    raise UsageError(f"transform: {item!r} is not an operation of Stoker",
                     "a list of stoker.RandomResizedCrop(224), ...")


def _held(owner: Any, transforms: Any) -> list[dict[str, Any]]:
    if isinstance(transforms, Transform) or not isinstance(transforms, Iterable):
        raise UsageError(f"{_who(owner)}: transforms is a list of operations, not {transforms!r}")
    held = []
    for item in transforms:
        if isinstance(item, (list, tuple)):
            item = RandomApply(item, p=1.0)
        held.append(_checked(item).to_json())
    return held


def _plain(owner: Any, word: str, value: Any) -> Any:
    """Numbers, texts and lists of them, as JSON has them."""
    if isinstance(value, float):
        return _number(owner, word, value)
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Iterable):
        return [entry if isinstance(entry, dict) else _number(owner, word, entry) for entry in value]
    return _number(owner, word, value)


def _check(operation: Transform) -> None:
    from . import _engine

    _engine.transform_text(json.dumps([operation.to_json()]))


def _name(item: Any) -> str:
    return getattr(item, "__name__", type(item).__name__)


def _who(owner: Any) -> str:
    return type(owner).__name__


def _number(owner: Any, word: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"{_who(owner)}: {word} is a number, not {value!r}")
    return _finite(owner, word, float(value))


def _finite(owner: Any, word: str, value: float) -> float:
    if not math.isfinite(value):
        raise UsageError(f"{_who(owner)}: {word} is a finite number, not {value!r}")
    return value


def _numbers(owner: Any, word: str, value: Any) -> list[float]:
    if isinstance(value, (int, float)):
        return [_number(owner, word, value)]
    try:
        numbers = [float(entry) for entry in value]
    except (TypeError, ValueError):
        raise UsageError(f"{_who(owner)}: {word} is a list of numbers, not {value!r}") from None
    return [_finite(owner, word, number) for number in numbers]


def _whole(owner: Any, word: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{_who(owner)}: {word} is a whole number of at least 1, not {value!r}")
    return value


def _height_width(owner: Any, size: Any) -> tuple[int, int]:
    if isinstance(size, int):
        size = (size, size)
    try:
        sizes = list(size)
    except TypeError:
        sizes = []
    if len(sizes) == 1:
        sizes = sizes * 2
    if len(sizes) != 2:
        raise UsageError(f"{_who(owner)}: size is a number or (height, width), not {size!r}")
    return _whole(owner, "size", sizes[0]), _whole(owner, "size", sizes[1])


def _pair(owner: Any, word: str, value: Any) -> tuple[float, float]:
    numbers = _numbers(owner, word, value)
    if len(numbers) != 2 or not 0 < numbers[0] <= numbers[1]:
        raise UsageError(f"{_who(owner)}: {word} is (low, high) with 0 < low <= high, not {value!r}")
    return numbers[0], numbers[1]


def _range(owner: Any, word: str, value: Any) -> tuple[float, float]:
    numbers = _numbers(owner, word, value)
    if len(numbers) == 1:
        numbers = numbers * 2
    if len(numbers) != 2 or numbers[0] > numbers[1]:
        raise UsageError(f"{_who(owner)}: {word} is a number or (low, high), not {value!r}")
    return numbers[0], numbers[1]


def _ranges(owner: Any, word: str, value: Any) -> list[float] | None:
    """Low and high of each entry, one after another."""
    if value is None:
        return None
    ends: list[float] = []
    for entry in value if isinstance(value, Iterable) else [value]:
        if isinstance(entry, Iterable):
            ends += _range(owner, word, entry)
        else:
            most = abs(_number(owner, word, entry))
            ends += [-most, most]
    return ends


def _filter(owner: Any, word: str) -> str:
    if word not in _FILTERS:
        raise UsageError(f"{_who(owner)}: interpolation is one of {', '.join(_FILTERS)}, not {word!r}")
    return word
