"""np.memmap over rows that someone has packed as int16 beforehand: no files are opened and no headers read."""

import contestant
import numpy


def batches(args):
    rows, size = numpy.load(args["rows"], mmap_mode="r"), args["batch_size"]
    while True:
        for first in range(0, len(rows), size):
            data = rows[first:first + size].astype(numpy.float32)
            data *= 1 / 32768
            yield data


contestant.race(batches, ["numpy"])
