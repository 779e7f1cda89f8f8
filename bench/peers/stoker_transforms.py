"""Transforms as the suites name them in JSON: [["random_resized_crop", 224], ["flip"]]."""

import stoker

_ = stoker.Loader  # names are loaded when they are used first: now, outside every time, as the imports of the others are

KNOWN = {"pad_or_trim": stoker.PadOrTrim, "random_resized_crop": stoker.RandomResizedCrop, "flip": stoker.HorizontalFlip,
         "normalize": stoker.Normalize, "window": stoker.Window, "resize": stoker.Resize}


def transforms(names):
    return [KNOWN[name](*args) for name, *args in names]
