"""What every contestant has in common: it imports, says "ready", waits for a line, works, prints one line of JSON.

run.py drops the page cache or not between "ready" and the line, so that imports are never part of a figure.
"""

import importlib.metadata
import json
import os
import resource
import sys
import time

TICKS = os.sysconf("SC_CLK_TCK")


def pss_bytes(pid):
    """Memory of one process without counting shared pages twice; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            for line in rollup:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def tree(pid):
    """A process and all that it started."""
    found = [pid]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children") as children:
                    found.extend(int(child) for child in children.read().split())
        except OSError:
            pass
    return found


def tree_pss_bytes(pid):
    return sum(pss_bytes(process) for process in tree(pid))


def cpu_seconds():
    """User and system time of this process, of the children it has waited for and of those that live."""
    ticks = 0
    for child in tree(os.getpid())[1:]:
        try:
            with open(f"/proc/{child}/stat") as stat:
                ticks += sum(map(int, stat.read().rpartition(")")[2].split()[11:15]))
        except OSError:
            pass
    return ticks / TICKS + sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


class Stopwatch:
    """Runs from the word go, or from the end of the warm-up, to stop(), called with the last batch in hand, before anything is torn down."""

    def __init__(self):
        self.seconds = self.cpu_seconds = None
        self.memory_bytes = 0
        self.restart()

    def restart(self):
        self.cpu_before, self.started = cpu_seconds(), time.perf_counter()

    def elapsed(self):
        return time.perf_counter() - self.started

    def stop(self):
        self.seconds = self.elapsed()
        self.cpu_seconds = cpu_seconds() - self.cpu_before
        self.memory_bytes = tree_pss_bytes(os.getpid())


def main(work, before=None):
    """`work(args, stopwatch)` returns a dict with at least `items`; the stopwatch's figures are added. `before(args)` runs outside the time."""
    args = json.loads(sys.argv[1])
    if before:
        before(args)
    print("ready", flush=True)
    sys.stdin.readline()
    stopwatch = Stopwatch()
    result = work(args, stopwatch)
    print(json.dumps({**result, "seconds": stopwatch.seconds, "memory_bytes": stopwatch.memory_bytes, "cpu_seconds": stopwatch.cpu_seconds}), flush=True)


def labelled_files(folder):
    """Sorted paths, each with the index of its sub-folder."""
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    return [(os.path.join(folder, name, file), label)
            for label, name in enumerate(classes) for file in sorted(os.listdir(os.path.join(folder, name)))]


def describe(data):
    """What a batch is, so that contestants can be held to the same work."""
    import numpy

    array = data if isinstance(data, numpy.ndarray) else data.numpy()
    return {"shape": list(array.shape), "dtype": str(array.dtype), "contiguous": array.flags.c_contiguous, "min": float(array.min()),
            "max": float(array.max()), "mean": float(array.mean(dtype="float64")), "magnitude": float(numpy.abs(array, dtype="float64").sum())}


def race(batches, packages, before=None):
    """A contestant whose generator `batches(args)` gives batches without end (or enough of them): the first args["warmup"] samples are not
    timed, the next args["items"] are. With args["check"], the first batch of a second stream is described, outside the time."""
    def work(args, stopwatch):
        stream, warmup, items, first_batch_s = batches(args), args.get("warmup", 0), 0, None
        for data in stream:
            if first_batch_s is None:
                first_batch_s = stopwatch.elapsed()
            items += len(data)
            if warmup and items >= warmup:
                warmup = items = 0
                stopwatch.restart()
            elif not warmup and items >= args["items"]:
                break
        stopwatch.stop()
        del data
        stream.close()
        batch = None
        if args.get("check"):
            stream = batches(args)
            batch = describe(next(stream))
            stream.close()
        return {"items": items, "first_batch_s": first_batch_s, "batch": batch, "versions": {name: importlib.metadata.version(name) for name in packages}}
    main(work, before)


def race_epochs(epochs, packages, before=None):
    """A contestant whose generator `epochs(args)` gives one epoch after another, each a stream of (samples, bytes): args["epochs"] of them are
    timed, one by one. What `epochs` does before it gives the first belongs to the first."""
    time.sleep(0.5)  # threads that an import started spin for a while (OpenBLAS)

    def work(args, stopwatch):
        timed, stream, first_batch_s = [], epochs(args), None
        for _ in range(args["epochs"]):
            items = size = 0
            for samples, length in next(stream):
                if first_batch_s is None:
                    first_batch_s = stopwatch.elapsed()
                items += samples
                size += length
            stopwatch.stop()
            timed.append({"items": items, "bytes": size, "seconds": stopwatch.seconds, "cpu_seconds": stopwatch.cpu_seconds})
            stopwatch.restart()
        stopwatch.stop()
        stream.close()
        return {"epochs": timed, "items": timed[0]["items"], "first_batch_s": first_batch_s,
                "versions": {name: importlib.metadata.version(name) for name in packages}}
    main(work, before)
