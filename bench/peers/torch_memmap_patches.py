"""Random patches of a volume by the PyTorch DataLoader on np.memmap."""

import contestant
import numpy
import torch_patches


def open_volume(path):
    volume = numpy.load(path, mmap_mode="r")
    return volume.shape, volume.__getitem__


def batches(args):
    yield from torch_patches.stream(args, open_volume)


contestant.race(batches, ["torch", "numpy"])
