"""RandomResizedCrop's rectangle and ImageNet's figures, for peers that have none of their own."""

import math
import random

import numpy

MEAN, STD = numpy.array((0.485, 0.456, 0.406), numpy.float32), numpy.array((0.229, 0.224, 0.225), numpy.float32)
SCALE, OFFSET = 1 / (255 * STD), -MEAN / STD  # pixel * SCALE + OFFSET is (pixel / 255 - MEAN) / STD


def rectangle(height, width):
    """(top, left, height, width) as torchvision draws it: area 0.08 to 1, aspect 3/4 to 4/3, ten tries, else the middle."""
    for _ in range(10):
        area = height * width * random.uniform(0.08, 1.0)
        aspect = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, height - h), random.randint(0, width - w), h, w
    w, h = min(width, round(height * 4 / 3)), min(height, round(width * 4 / 3))
    return (height - h) // 2, (width - w) // 2, h, w


def flipped():
    return random.random() < 0.5
