"""The PyTorch DataLoader with torchvision on Pillow images, with one of the recipes of the suite `augment`."""

import contestant
import numpy
import torch
import torch_stream
from augment_recipes import torchvision_recipe

# torchvision's wheel from PyPI is built for CUDA and does not load its operators beside a torch without it.
# Their names are all that its import asks for; the transforms on Pillow images need none of them.
library = torch.library.Library("torchvision", "DEF")
for operator in ("nms", "qnms"):
    library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from PIL import Image
from torchvision.datasets import ImageFolder


class Arrays(torch.utils.data.Dataset):
    """As torchvision's CIFAR10: an array in memory, each sample a Pillow image."""

    def __init__(self, path, transform):
        self.images, self.transform = numpy.load(path), transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, at):
        return self.transform(Image.fromarray(self.images[at])), 0


def batches(args):
    kind = Arrays if args["data"].endswith(".npy") else ImageFolder
    for data, _ in torch_stream.stream(kind(args["data"], torchvision_recipe(args["recipe"])), args):
        yield data[0] if isinstance(data, (list, tuple)) else data


contestant.race(batches, ["torch", "torchvision", "pillow"])
