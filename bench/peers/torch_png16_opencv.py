"""16-bit PNG slices by the PyTorch DataLoader and OpenCV."""

import contestant
import cv2
import torch
import torch_stream
from opencv_slices import view


class Slices(torch.utils.data.Dataset):
    def __init__(self, args):
        self.files, self.size = contestant.labelled_files(args["data"]), args["size"]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return torch.from_numpy(view(cv2.imread(self.files[index][0], cv2.IMREAD_UNCHANGED), self.size))


def batches(args):
    yield from torch_stream.stream(Slices(args), args)


contestant.race(batches, ["torch", "opencv-python-headless"])
