"""What every contestant has in common: it imports, says "ready", waits for a line, works, prints one line of JSON.

run.py drops the page cache or not between "ready" and the line, so that imports are never part of a figure.
"""

import json
import os
import resource
import sys
import time


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


class Stopwatch:
    """Runs from the word go to stop(), which the contestant calls with its last batch in hand, before anything is torn down."""

    def __init__(self):
        self.started = time.perf_counter()
        self.seconds = None
        self.memory_bytes = 0

    def elapsed(self):
        return time.perf_counter() - self.started

    def stop(self):
        self.seconds = self.elapsed()
        self.memory_bytes = tree_pss_bytes(os.getpid())


def cpu_seconds():
    """User and system time of this process and of the children it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def main(work):
    """`work(args, stopwatch)` returns a dict with at least `items`; the stopwatch's and the process's figures are added."""
    args = json.loads(sys.argv[1])
    print("ready", flush=True)
    sys.stdin.readline()
    before = cpu_seconds()
    stopwatch = Stopwatch()
    result = work(args, stopwatch)
    result["seconds"] = stopwatch.seconds
    result["memory_bytes"] = stopwatch.memory_bytes
    result["cpu_seconds"] = cpu_seconds() - before
    print(json.dumps(result), flush=True)
