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
from .spans import Span, span
from .stitching import stitch
from .transforms import CenterCrop, HorizontalFlip, Mono, Normalize, PadOrTrim, RandomResizedCrop, Resample, Resize, ToFloat, Transform, Views, Window
from .volumes import Volumes

__all__ = [
    "Batch", "CenterCrop", "Error", "ErrorList", "HorizontalFlip", "Loader", "Measurement", "Mono", "Normalize", "NotFoundError",
    "Note", "PackWriter", "PadOrTrim", "PermissionDeniedError", "RandomResizedCrop", "Resample", "Resize", "SampleError", "Span",
    "ToFloat", "Transform", "UsageError", "Views", "Volumes", "Window", "__version__", "measure", "span", "stitch",
]
