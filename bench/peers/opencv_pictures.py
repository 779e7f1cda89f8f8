"""One photo with OpenCV: decode, random crop, bilinear resize without antialiasing, flip, CHW."""

import cv2
import numpy
from pictures import OFFSET, SCALE, flipped, rectangle

cv2.setNumThreads(0)  # the loader's workers are the parallelism


def crop(encoded, size, dtype):
    """`encoded` is a uint8 array of a JPEG file."""
    picture = cv2.imdecode(encoded, cv2.IMREAD_COLOR_RGB)
    top, left, height, width = rectangle(*picture.shape[:2])
    picture = cv2.resize(picture[top:top + height, left:left + width], (size, size), interpolation=cv2.INTER_LINEAR)
    if flipped():
        picture = cv2.flip(picture, 1)
    planes = cv2.split(picture)
    if dtype == "uint8":
        return numpy.stack(planes)
    out = numpy.empty((3, size, size), numpy.float32)
    for plane, row, scale, offset in zip(planes, out, SCALE, OFFSET):
        numpy.multiply(plane, scale, out=row, dtype=numpy.float32, casting="unsafe")
        row += offset
    return out
