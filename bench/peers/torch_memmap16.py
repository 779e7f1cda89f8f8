"""Raw 16-bit slices of one .npy by the PyTorch DataLoader on np.memmap, resized by OpenCV."""

import contestant
import numpy
import torch
import torch_stream
from opencv_slices import view


class Slices(torch.utils.data.Dataset):
    def __init__(self, args):
        self.rows, self.size = numpy.load(args["data"], mmap_mode="r"), args["size"]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.from_numpy(view(self.rows[index], self.size))


def batches(args):
    yield from torch_stream.stream(Slices(args), args)


contestant.race(batches, ["torch", "opencv-python-headless"])
