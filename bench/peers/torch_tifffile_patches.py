"""Random patches of a TIFF stack by the PyTorch DataLoader on tifffile: the pages of the patch are read, and it is cut out of them."""

import contestant
import tifffile
import torch_patches


def open_volume(path):
    file = tifffile.TiffFile(path)
    return file.series[0].shape, lambda box: file.asarray(key=box[0])[:, box[1], box[2]]


def batches(args):
    yield from torch_patches.stream(args, open_volume)


contestant.race(batches, ["torch", "numpy", "tifffile", "imagecodecs"])
