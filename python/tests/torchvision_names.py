"""torchvision's wheel from PyPI is built for CUDA and does not load its operators beside a torch without it. Their names are
all that its import asks for; the transforms on Pillow images need none of them. Import this before torchvision."""

import torch

library = None
try:
    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
except RuntimeError:
    pass  # somebody else has named them
