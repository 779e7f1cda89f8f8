"""Grain with threads and OpenCV, which releases the interpreter's lock."""

import contestant
import grain
import numpy
from opencv_images import crop


def batches(args):
    def sample(path):
        return crop(numpy.fromfile(path, numpy.uint8), args["size"], args["dtype"])

    data = grain.MapDataset.source([path for path, _ in contestant.labelled_files(args["data"])]).seed(42).shuffle().repeat().map(sample)
    yield from data.to_iter_dataset(grain.ReadOptions(num_threads=args["num_threads"], prefetch_buffer_size=4 * args["batch_size"])).batch(args["batch_size"])


contestant.race(batches, ["grain", "opencv-python-headless"])
