"""timm's operations for training images in Stoker's words."""

from __future__ import annotations

import math
from typing import Any

from ..errors import UsageError
from .augmentations import RandomErasing, TimmRandAugment
from .images import RandomResizedCrop, ToFloat
from .operation import Transform

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


def from_timm(operation: Any) -> list[Transform]:
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
