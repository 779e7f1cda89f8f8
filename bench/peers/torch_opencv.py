"""The PyTorch DataLoader with OpenCV."""

import contestant
import numpy
import torch
import torch_stream
from opencv_images import crop


class Photos(torch.utils.data.Dataset):
    def __init__(self, args):
        self.files, self.size, self.dtype = contestant.labelled_files(args["data"]), args["size"], args["dtype"]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path, label = self.files[index]
        return torch.from_numpy(crop(numpy.fromfile(path, numpy.uint8), self.size, self.dtype)), label


def batches(args):
    for data, _ in torch_stream.stream(Photos(args), args):
        yield data


contestant.race(batches, ["torch", "opencv-python-headless"])
