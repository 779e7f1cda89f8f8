"""The PyTorch DataLoader with pillow-simd, crop and resize in one call."""

import contestant
import numpy
import torch
import torch_stream
from images import OFFSET, SCALE, flipped, rectangle
from PIL import Image


class Photos(torch.utils.data.Dataset):
    def __init__(self, args):
        self.files, self.size, self.dtype = contestant.labelled_files(args["data"]), args["size"], args["dtype"]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path, label = self.files[index]
        with Image.open(path) as opened:
            image = opened.convert("RGB")
        top, left, height, width = rectangle(image.height, image.width)
        image = image.resize((self.size, self.size), Image.BILINEAR, box=(left, top, left + width, top + height))
        if flipped():
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        planes = torch.from_numpy(numpy.array(image)).permute(2, 0, 1).contiguous()
        if self.dtype == "float32":
            planes = planes.float().mul_(torch.from_numpy(SCALE)[:, None, None]).add_(torch.from_numpy(OFFSET)[:, None, None])
        return planes, label


def batches(args):
    for data, _ in torch_stream.stream(Photos(args), args):
        yield data


contestant.race(batches, ["torch", "pillow-simd"])
