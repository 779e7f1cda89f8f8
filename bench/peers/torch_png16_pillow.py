"""16-bit PNG slices by the PyTorch DataLoader and Pillow."""

import contestant
import numpy
import torch
import torch_stream
from PIL import Image
from slices import windowed


class Slices(torch.utils.data.Dataset):
    def __init__(self, args):
        self.files, self.size = contestant.labelled_files(args["data"]), args["size"]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with Image.open(self.files[index][0]) as image:
            pixels = windowed(numpy.asarray(image))
        return torch.from_numpy(numpy.array(Image.fromarray(pixels).resize((self.size, self.size), Image.BILINEAR)))[None]


def batches(args):
    yield from torch_stream.stream(Slices(args), args)


contestant.race(batches, ["torch", "pillow"])
