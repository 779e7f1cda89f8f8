"""One photo with OpenCV: decode, random crop, bilinear resize without antialiasing, flip, CHW."""

import cv2
import numpy
from images import OFFSET, SCALE, flipped, rectangle

cv2.setNumThreads(0)  # the loader's workers are the parallelism


def crop(encoded, size, dtype):
    """`encoded` is a uint8 array of a JPEG file."""
    image = cv2.imdecode(encoded, cv2.IMREAD_COLOR_RGB)
    top, left, height, width = rectangle(*image.shape[:2])
    image = cv2.resize(image[top:top + height, left:left + width], (size, size), interpolation=cv2.INTER_LINEAR)
    if flipped():
        image = cv2.flip(image, 1)
    planes = cv2.split(image)
    if dtype == "uint8":
        return numpy.stack(planes)
    out = numpy.empty((3, size, size), numpy.float32)
    for plane, row, scale, offset in zip(planes, out, SCALE, OFFSET):
        numpy.multiply(plane, scale, out=row, dtype=numpy.float32, casting="unsafe")
        row += offset
    return out
