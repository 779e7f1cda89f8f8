"""One 16-bit slice with OpenCV: window, area resize."""

import cv2
from slices import windowed

cv2.setNumThreads(0)  # the loader's workers are the parallelism


def view(pixels, size):
    return cv2.resize(windowed(pixels), (size, size), interpolation=cv2.INTER_AREA)[None]
