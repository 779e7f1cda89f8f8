"""Random patches of a volume by the PyTorch DataLoader, z-scored by numpy. Each peer says how it opens its volume, and reads a box of it."""

import numpy
import torch
import torch_stream


class Patches(torch.utils.data.Dataset):
    """`open_volume(path)` gives the shape and a function of a tuple of slices. It is called in the process that reads."""

    def __init__(self, args, open_volume):
        self.path, self.patch, self.open_volume = args["data"], args["patch"], open_volume
        self.shape = self.read = None

    def __len__(self):
        return 2000

    def __getitem__(self, index):
        if self.read is None:
            self.shape, self.read = self.open_volume(self.path)
        corner = [int(torch.randint(extent - edge + 1, ())) for extent, edge in zip(self.shape, self.patch, strict=True)]
        patch = self.read(tuple(slice(at, at + edge) for at, edge in zip(corner, self.patch, strict=True))).astype(numpy.float32)
        return torch.from_numpy((patch - patch.mean()) / patch.std())


def stream(args, open_volume):
    yield from torch_stream.stream(Patches(args, open_volume), args)
