"""Stoker keeps accelerators fed.

::

    import stoker
    loader = stoker.Loader("data/train", batch_size=256, shuffle=True, seed=42,
                           transform=[stoker.RandomResizedCrop(224), stoker.HorizontalFlip(), stoker.Normalize("imagenet")])
    for images, labels in loader:
        train_step(images, labels)
    print(loader.summary())

Importing this package loads the engine, no framework, and starts no thread. The rest of it and numpy are loaded when a name of it is used first.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._engine import version as __version__

if TYPE_CHECKING:
    from .batch import Batch
    from .errors import Error, Note, NotFoundError, PermissionDeniedError, UsageError
    from .loader import ErrorList, Loader, SampleError
    from .measuring import Measurement, measure
    from .pack import PackWriter
    from .python_rows import sample_seed
    from .spans import Span, span
    from .stitching import stitch
    from .transforms import (
        MFCC,
        AmplitudeToDB,
        AugMix,
        AutoAugment,
        CenterCrop,
        ColorJitter,
        CutMix,
        FiveCrop,
        FrequencyMasking,
        Gain,
        GaussianBlur,
        Grayscale,
        HorizontalFlip,
        MelSpectrogram,
        MixUp,
        Mono,
        Normalize,
        Pad,
        PadOrTrim,
        PolarityInversion,
        RandAdjustContrast,
        RandAffine,
        RandAugment,
        RandFlip,
        RandGaussianNoise,
        RandomAdjustSharpness,
        RandomAffine,
        RandomApply,
        RandomAutocontrast,
        RandomChoice,
        RandomCrop,
        RandomEqualize,
        RandomErasing,
        RandomGrayscale,
        RandomInvert,
        RandomOrder,
        RandomPerspective,
        RandomPosterize,
        RandomResizedCrop,
        RandomRotation,
        RandomSolarize,
        RandomTrim,
        RandomZoomOut,
        RandRotate90,
        RandScaleIntensity,
        RandShiftIntensity,
        Resample,
        Resize,
        Shift,
        TenCrop,
        TimeMasking,
        TimmRandAugment,
        ToFloat,
        Transform,
        TrivialAugmentWide,
        VerticalFlip,
        Views,
        Vol,
        Window,
    )
    from .volumes import Volumes

__all__ = [
    "AmplitudeToDB", "AugMix", "AutoAugment", "Batch", "CenterCrop", "ColorJitter", "CutMix", "Error", "ErrorList", "FiveCrop",
    "FrequencyMasking", "Gain", "GaussianBlur", "Grayscale", "HorizontalFlip", "Loader", "MFCC", "Measurement",
    "MelSpectrogram", "MixUp", "Mono", "Normalize", "NotFoundError", "Note", "PackWriter", "Pad", "PadOrTrim",
    "PermissionDeniedError", "PolarityInversion", "RandAdjustContrast", "RandAffine", "RandAugment", "RandFlip", "RandGaussianNoise", "RandRotate90", "RandScaleIntensity",
    "RandShiftIntensity", "RandomAdjustSharpness", "RandomAffine", "RandomApply",
    "RandomAutocontrast", "RandomChoice", "RandomCrop", "RandomEqualize", "RandomErasing", "RandomGrayscale", "RandomInvert",
    "RandomOrder", "RandomPerspective", "RandomPosterize", "RandomResizedCrop", "RandomRotation", "RandomSolarize",
    "RandomTrim", "RandomZoomOut", "Resample", "Resize", "SampleError", "Shift", "Span", "TenCrop", "TimeMasking", "TimmRandAugment", "ToFloat",
    "Transform", "TrivialAugmentWide", "UsageError", "VerticalFlip", "Views", "Vol", "Volumes", "Window", "__version__",
    "measure", "sample_seed", "span", "stitch",
]

# Where the public names live. All others are operations, in transforms.
_HOMES = {
    "batch": ("Batch",),
    "errors": ("Error", "Note", "NotFoundError", "PermissionDeniedError", "UsageError"),
    "loader": ("ErrorList", "Loader", "SampleError"),
    "measuring": ("Measurement", "measure"),
    "pack": ("PackWriter",),
    "python_rows": ("sample_seed",),
    "spans": ("Span", "span"),
    "stitching": ("stitch",),
    "volumes": ("Volumes",),
}
_MORE_MODULES = ("numpy", "ranks", "sample_errors", "source", "trainers", "transforms")
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in __all__:
        value = getattr(importlib.import_module("." + _HOME_OF.get(name, "transforms"), __name__), name)
        globals()[name] = value  # the next use finds it at once
        return value
    if name in _HOMES or name in _MORE_MODULES:  # but stoker.torch, which would load torch, wants its own import
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
