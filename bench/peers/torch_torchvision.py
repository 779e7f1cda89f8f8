"""The PyTorch DataLoader with torchvision's ImageFolder and Pillow: how most people read photos today."""

import contestant
import torch

# torchvision's wheel from PyPI is built for CUDA and does not load its operators beside a torch without it.
# Their names are all that its import asks for; the transforms on Pillow images need none of them.
library = torch.library.Library("torchvision", "DEF")
for operator in ("nms", "qnms"):
    library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import PIL
import torchvision
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def work(args, stopwatch):
    workers = args["num_workers"]
    if workers:
        torch.set_num_threads(1)
    steps = [transforms.RandomResizedCrop(args["size"]), transforms.RandomHorizontalFlip()]
    if args["dtype"] == "uint8":
        steps += [transforms.PILToTensor()]
    else:
        steps += [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    loader = DataLoader(ImageFolder(args["data"], transforms.Compose(steps)), batch_size=args["batch_size"], shuffle=True,
                        num_workers=workers, persistent_workers=workers > 0)
    items = 0
    for epoch in range(args["epochs"]):
        for data, _ in loader:
            items += len(data)
    shape = list(data.shape)
    stopwatch.stop()
    del loader
    return {"items": items, "shape": shape,
            "versions": {"torch": torch.__version__, "torchvision": torchvision.__version__, "Pillow": PIL.__version__}}


if __name__ == "__main__":
    contestant.main(work)
