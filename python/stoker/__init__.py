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
    AutoAugment,
    CenterCrop,
    ColorJitter,
    CutMix,
    FiveCrop,
    GaussianBlur,
    Grayscale,
    HorizontalFlip,
    MixUp,
    Mono,
    Normalize,
    Pad,
    PadOrTrim,
    RandAugment,
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
    RandomZoomOut,
    Resample,
    Resize,
    TenCrop,
    ToFloat,
    Transform,
    TrivialAugmentWide,
    VerticalFlip,
    Views,
    Window,
)
from .volumes import Volumes

__all__ = [
    "AutoAugment", "Batch", "CenterCrop", "ColorJitter", "CutMix", "Error", "ErrorList", "FiveCrop", "GaussianBlur", "Grayscale",
    "HorizontalFlip", "Loader", "Measurement", "MixUp", "Mono", "Normalize", "NotFoundError", "Note", "PackWriter", "Pad",
    "PadOrTrim", "PermissionDeniedError", "RandAugment", "RandomAdjustSharpness", "RandomAffine", "RandomApply",
    "RandomAutocontrast", "RandomChoice", "RandomCrop", "RandomEqualize", "RandomErasing", "RandomGrayscale",
    "RandomInvert", "RandomOrder", "RandomPerspective", "RandomPosterize", "RandomResizedCrop", "RandomRotation",
    "RandomSolarize", "RandomZoomOut", "Resample", "Resize", "SampleError", "Span", "TenCrop", "ToFloat", "Transform",
    "TrivialAugmentWide", "UsageError", "VerticalFlip", "Views", "Volumes", "Window", "__version__", "measure",
    "sample_seed", "span", "stitch",
]
