"""Stoker keeps accelerators fed.

::

    import stoker
    loader = stoker.Loader("data/train", batch_size=256, shuffle=True, seed=42,
                           transform=[stoker.RandomResizedCrop(224), stoker.HorizontalFlip(), stoker.Normalize("imagenet")])
    for images, labels in loader:
        train_step(images, labels)
    print(loader.summary())

Importing this package loads numpy and the engine, no framework, and starts no thread.
"""

from ._engine import version as __version__
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
