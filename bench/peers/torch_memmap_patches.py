"""Random patches of a volume by the PyTorch DataLoader on np.memmap, z-scored by numpy."""

import contestant
import numpy
import torch
import torch_stream


class Patches(torch.utils.data.Dataset):
    def __init__(self, args):
        self.volume, self.patch = numpy.load(args["data"], mmap_mode="r"), args["patch"]

    def __len__(self):
        return 2000

    def __getitem__(self, index):
        corner = [int(torch.randint(extent - edge + 1, ())) for extent, edge in zip(self.volume.shape, self.patch, strict=True)]
        patch = self.volume[tuple(slice(at, at + edge) for at, edge in zip(corner, self.patch, strict=True))].astype(numpy.float32)
        return torch.from_numpy((patch - patch.mean()) / patch.std())


def batches(args):
    yield from torch_stream.stream(Patches(args), args)


contestant.race(batches, ["torch", "numpy"])
