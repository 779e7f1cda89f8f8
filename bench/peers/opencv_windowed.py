"""For window_error: the first slices of a .npy through one window and OpenCV's resizes, saved as a .npy each."""

import json
import sys

import cv2
import numpy

args = json.loads(sys.argv[1])
slices = numpy.load(args["data"], mmap_mode="r")[: args["count"]]
low, width, size = args["low"], args["width"], (args["size"], args["size"])
windowed = [numpy.clip((pixels.astype(numpy.float32) - numpy.float32(low)) / numpy.float32(width), 0, 1) for pixels in slices]
for name, how in (("area", cv2.INTER_AREA), ("linear", cv2.INTER_LINEAR)):
    numpy.save(args["into"][name], numpy.stack([cv2.resize(pixels, size, interpolation=how) for pixels in windowed]))
print(cv2.__version__)
