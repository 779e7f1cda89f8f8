"""Allocations and clock readings of the second and third epoch, counted by the preloaded count_malloc.so."""

import ctypes

import contestant
from stoker_transforms import transforms

import stoker

FIGURES = ("allocations", "main_thread", "libjpeg", "clock_reads")


def read():
    figures = (ctypes.c_uint64 * len(FIGURES))()
    library.count_malloc_read(figures)
    return dict(zip(FIGURES, figures))


def work(args, stopwatch):
    loader = stoker.Loader(args["data"], transform=transforms(args["transform"]), output="numpy", **args["loader"])
    epochs = []
    for _ in range(3):
        before, cpu, items, batches = read(), contestant.cpu_seconds(), 0, 0
        for data, _ in loader:
            items += len(data)
            batches += 1
        after = read()
        epochs.append({"items": items, "batches": batches, "cpu_seconds": contestant.cpu_seconds() - cpu,
                       **{name: after[name] - before[name] for name in FIGURES}})
        library.count_malloc_find_libjpeg()
    stopwatch.stop()
    loader.close()
    return {"items": items, "epochs": epochs, "clock_read_ns": library.count_malloc_clock_read_ns(), "versions": {"stoker": stoker.__version__}}


library = ctypes.CDLL(None)
library.count_malloc_clock_read_ns.restype = ctypes.c_double
contestant.main(work)
