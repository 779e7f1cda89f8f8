"""The PyTorch DataLoader with torchvision's ImageFolder and Pillow: how most people read photos today."""

import contestant
import torch
import torch_stream

# torchvision's wheel from PyPI is built for CUDA and does not load its operators beside a torch without it.
# Their names are all that its import asks for; the transforms on Pillow images need none of them.
library = torch.library.Library("torchvision", "DEF")
for operator in ("nms", "qnms"):
    library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from torchvision import transforms
from torchvision.datasets import ImageFolder

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def batches(args):
    steps = [transforms.RandomResizedCrop(args["size"]), transforms.RandomHorizontalFlip()]
    if args["dtype"] == "uint8":
        steps += [transforms.PILToTensor()]
    else:
        steps += [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    for data, _ in torch_stream.stream(ImageFolder(args["data"], transforms.Compose(steps)), args):
        yield data


contestant.race(batches, ["torch", "torchvision", "pillow"])
