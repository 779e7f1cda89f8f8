"""torchvision as a reference for tests. Its wheel from PyPI is built for CUDA and does not load its operators beside a torch
without it; their names are all that its import asks for, and transforms on Pillow images need none of them."""

import sys

import pytest


def torchvision():
    """The package, or a skip."""
    torch = pytest.importorskip("torch")
    if "torchvision" not in sys.modules:
        try:
            library = torch.library.Library("torchvision", "DEF")
            for operator in ("nms", "qnms"):
                library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            torchvision._library = library
        except RuntimeError:
            pass  # the operators are there
    return pytest.importorskip("torchvision")
