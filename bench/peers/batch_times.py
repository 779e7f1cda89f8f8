"""The time to each batch of one epoch, from building the loader: Stoker, or a copy out of numpy's own map of the file."""

import time

import contestant
import numpy


def rows_of(args):
    if not args["loader"]:
        rows = numpy.load(args["data"], mmap_mode="r")
        for first in range(0, len(rows), args["batch_size"]):
            yield numpy.array(rows[first:first + args["batch_size"]])
        return
    import stoker
    with stoker.Loader(args["data"], batch_size=args["batch_size"], output="numpy", **args["loader"]) as loader:
        for data, _ in loader:
            yield data
            del data  # the next batch may use its memory


def work(args, stopwatch):
    times, items, began = [], 0, time.perf_counter()
    for data in rows_of(args):
        times.append(time.perf_counter() - began)
        items += len(data)
        del data
        began = time.perf_counter()
    stopwatch.stop()
    return {"items": items, "batch_s": times, "versions": {"numpy": numpy.__version__}}


contestant.main(work)
