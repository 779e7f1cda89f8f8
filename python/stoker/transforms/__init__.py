"""What happens to a sample between its file and the batch. Declared here, run by the engine.

A transform is a list of these objects, or the short text of the command line (``"rrc:224,flip,normalize:imagenet"``),
or a torchvision ``Compose`` of operations that are listed in :func:`from_torchvision`. Augmentations have torchvision's
names, arguments and defaults, and give the pixels of torchvision on Pillow images.
"""

from .audio import MFCC, AmplitudeToDB, FrequencyMasking, Gain, MelSpectrogram, Mono, PadOrTrim, PolarityInversion, RandomTrim, Resample, Shift, TimeMasking, Vol
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
    TimmRandAugment,
    TrivialAugmentWide,
)
from .combined import CutMix, MixUp, RandomApply, RandomChoice, RandomOrder, Views
from .compiled import compile_steps as compile_steps
from .compiled import compile_transform as compile_transform
from .images import CenterCrop, FiveCrop, HorizontalFlip, Normalize, Pad, RandomCrop, RandomResizedCrop, Resize, TenCrop, ToFloat, VerticalFlip, Window
from .monai import RandAdjustContrast, RandAffine, RandFlip, RandGaussianNoise, RandRotate90, RandScaleIntensity, RandShiftIntensity
from .operation import Transform
from .torchvision import from_torchvision as from_torchvision

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
