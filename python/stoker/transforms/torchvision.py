"""Operations of torchvision in Stoker's words."""

from __future__ import annotations

from typing import Any

from ..errors import UsageError
from .augmentations import (
    AugMix,
    AutoAugment,
    ColorJitter,
    GaussianBlur,
    Grayscale,
    RandAugment,
    RandomAdjustSharpness,
    RandomAffine,
    RandomAutocontrast,
    RandomEqualize,
    RandomErasing,
    RandomGrayscale,
    RandomInvert,
    RandomPerspective,
    RandomPosterize,
    RandomRotation,
    RandomSolarize,
    RandomZoomOut,
    TrivialAugmentWide,
)
from .checks import FILTERS
from .combined import CutMix, MixUp, RandomApply, RandomChoice, RandomOrder
from .images import CenterCrop, FiveCrop, HorizontalFlip, Normalize, Pad, RandomCrop, RandomResizedCrop, Resize, TenCrop, ToFloat, VerticalFlip
from .operation import Transform
from .timm import from_timm


def from_torchvision(operation: Any) -> list[Transform]:
    """The same thing in Stoker's words, or UsageError naming the operation that has none.

    Known: Compose, RandomResizedCrop, Resize, CenterCrop, RandomHorizontalFlip, Normalize, ToTensor, PILToTensor,
    ConvertImageDtype, and of v2 also ToImage, ToDtype, ToPureTensor, RGB; the presets of its weights,
    ``ResNet50_Weights.DEFAULT.transforms()``; and the augmentations of this page that have torchvision's name. Of timm:
    RandAugment, RandomResizedCropAndInterpolation, MaybeToTensor and RandomErasing.
    """
    name = type(operation).__name__
    if library(operation) == "timm":
        return from_timm(operation)
    if library(operation) == "torchaudio":
        from . import __all__ as known_names
        hint = f"write stoker.{name}(...), which gives its values" if name in known_names else f"put a function of your own into the list; {_OWN}"
        raise UsageError(f"transform: torchaudio's {name} is not translated", hint)
    if name == "Compose":
        return [mine for inner in operation.transforms for mine in from_torchvision(inner)]
    if name == "RandomResizedCrop":
        return [RandomResizedCrop(operation.size, operation.scale, operation.ratio, filter_of(operation))]
    if name == "Resize":
        if getattr(operation, "max_size", None) is not None:
            raise UsageError("transform: torchvision's Resize(max_size=...) has no counterpart here", "leave max_size out")
        return [Resize(operation.size, filter_of(operation))]
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
        crop = [Resize(operation.resize_size, filter_of(operation)), CenterCrop(operation.crop_size)]
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
            value = filter_of(operation)
        elif word == "policy":
            value = str(getattr(value, "value", value)).lower()
        elif word == "transforms":
            value = [_grouped(from_torchvision(inner)) for inner in value or []]
        elif word in ("size", "kernel_size", "padding") and isinstance(value, (list, tuple)) and len(set(value)) == 1:
            value = value[0]
        elif word == "fill":
            value = _fill(operation, value)
        elif mine is ColorJitter and value is None:
            value = 0 if word == "hue" else (1.0, 1.0)
        elif word == "p" and mine is RandomChoice and value is not None and len(set(value)) == 1:
            value = None
        if value is not None:
            values[word] = value
    if mine is RandomErasing and "value" not in values:
        values["value"] = "random"
    return mine(**values)


def _fill(operation: Any, value: Any) -> Any:
    """v2 keeps a dict by type; images have the entry of their type, or the one for all."""
    if isinstance(value, dict):
        entries = {getattr(kind, "__name__", str(kind)): entry for kind, entry in value.items()}
        value = next((entries[kind] for kind in ("PIL.Image.Image", "Image", "Tensor", "others") if entries.get(kind) is not None), None)
    return list(value) if isinstance(value, (list, tuple)) else value


def _grouped(operations: list[Transform]) -> Transform:
    """A Compose inside a RandomChoice or RandomOrder is one operation."""
    return operations[0] if len(operations) == 1 else RandomApply(operations, p=1.0)


def filter_of(operation: Any) -> str:
    interpolation = getattr(operation, "interpolation", "bilinear")
    word = str(getattr(interpolation, "value", interpolation))
    if word == "nearest-exact":
        word = "nearest"
    if word not in FILTERS:
        raise UsageError(f"transform: interpolation {word!r} of {type(operation).__name__} has no counterpart here",
                         f"one of {', '.join(FILTERS)}")
    return word


def library(item: Any) -> str:
    return type(item).__module__.split(".")[0]


def is_of_library(item: Any) -> bool:
    """Of torchvision, of timm, whose operations stand in a Compose of torchvision, or of torchaudio."""
    return library(item) in ("torchvision", "timm", "torchaudio")
