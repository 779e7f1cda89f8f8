"""SPDL's load_wav, one batch per task."""

import contestant
import numpy
import spdl.io
import spdl_stream


def batches(args):
    def batch(paths):
        rows = numpy.zeros((len(paths), args["frames"]), numpy.float32)
        for row, path in zip(rows, paths):
            with open(path, "rb") as file:
                audio = numpy.asarray(spdl.io.load_wav(file.read()))[:args["frames"], 0]
            row[:len(audio)] = audio
        rows *= 1 / 32768
        return rows

    yield from spdl_stream.stream_of_groups([path for path, _ in contestant.labelled_files(args["data"])], args, batch)


contestant.race(batches, ["spdl"])
