"""How much a process grows while it loads, seen from outside.

A child imports Stoker and says that it is ready; then its peak is reset, it builds the loader and runs it, and the parent watches it.
Counted is anonymous and shared memory (RssAnon + RssShmem): what the loader holds. Pages of files, which the system takes back when it
needs them, are not; those of ``storage="mmap"`` are such pages.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading

CHILD = r"""
import json, sys
import stoker
stoker.Loader, stoker.Volumes  # loads numpy and what else the package brings in
settings = json.loads(sys.argv[1])
limit_batches, epochs = settings.pop("limit_batches", 1_000_000), settings.pop("epochs")
print("ready", flush=True)
sys.stdin.readline()
found = {"samples": 0, "errors": 0, "memory_peak": 0, "refused": ""}
loader = None
try:
    source, volumes = settings.pop("address"), settings.pop("volumes", None)
    if volumes is not None:
        source = stoker.Volumes(source, **volumes)
    loader = stoker.Loader(source, output="numpy", on_error="skip", **settings)
    for epoch in range(epochs):
        for number, batch in enumerate(loader):
            found["samples"] += batch.size
            batch = None
            if number + 1 >= limit_batches:
                break
except stoker.Error as error:
    found["refused"] = str(error)
except ValueError as error:
    found["refused"] = str(error)
if loader is not None:
    stats = loader.stats()
    found.update(errors=stats["errors"], memory_peak=stats["memory_peak"])
print("done", flush=True)
sys.stdin.readline()      # the parent looks at the peak; the list of errors would be Python's memory
found["causes"] = sorted({error.cause for error in loader.errors}) if loader is not None else []
print(json.dumps(found), flush=True)
"""


@dataclasses.dataclass
class Growth:
    bytes: int            # highest anonymous and shared memory above the start
    peak_bytes: int       # highest resident memory above the start, with pages of files; exact, by the kernel
    limit: int
    samples: int
    errors: int
    memory_peak: int      # as the loader counts
    refused: str          # the error that ended the run, if any
    causes: list


def status(pid: int) -> dict[str, int]:
    with open(f"/proc/{pid}/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return {key: int(lines[key].split()[0]) * 1024 for key in ("RssAnon", "RssShmem", "RssFile", "VmHWM", "VmRSS")}


def held(pid: int) -> int:
    now = status(pid)
    return now["RssAnon"] + now["RssShmem"]


def bytes_of(limit: str) -> int:
    return int(limit[:-2]) * {"MB": 10**6, "GB": 10**9}[limit[-2:]]


def grow(address, limit: str, *, epochs: int = 2, timeout: float = 300, **options) -> Growth:
    """Runs a loader in a process of its own."""
    settings = {"address": str(address), "memory_limit": limit, "epochs": epochs, "prefetch_factor": 50, **options}
    child = subprocess.Popen([sys.executable, "-c", CHILD, json.dumps(settings)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    killer = threading.Timer(timeout, child.kill)
    killer.start()
    try:
        if child.stdout.readline() != "ready\n":
            raise AssertionError(child.communicate()[1])
        with open(f"/proc/{child.pid}/clear_refs", "w") as file:
            file.write("5")      # the peak begins here
        before, before_all, most = held(child.pid), status(child.pid)["VmRSS"], 0
        answer: list[str] = []
        reader = threading.Thread(target=lambda: answer.append(child.stdout.readline()))
        child.stdin.write("go\n")
        child.stdin.flush()
        reader.start()
        while reader.is_alive():
            most = max(most, held(child.pid))
            reader.join(0.002)
        if not answer[0]:
            raise AssertionError(f"the loader's process ended: {child.communicate()[1]}")
        most = max(most, held(child.pid))
        peak = status(child.pid)["VmHWM"]
        child.stdin.write("tell\n")
        child.stdin.flush()
        found = json.loads(child.stdout.readline())
        return Growth(most - before, peak - before_all, bytes_of(limit), found["samples"], found["errors"], found["memory_peak"],
                      found["refused"], found["causes"])
    finally:
        killer.cancel()
        child.kill()
        child.communicate()


if __name__ == "__main__":
    import pathlib
    import tempfile

    import hostile

    kinds = sys.argv[1].split(",") if len(sys.argv) > 1 and sys.argv[1] != "all" else list(hostile.KINDS)
    limits = sys.argv[2].split(",") if len(sys.argv) > 2 else ["64MB"]
    extra = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
    for name in kinds:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_CACHE_HOME"] = folder + "/cache"
            data = pathlib.Path(folder) / "data"
            data.mkdir()
            address, options = hostile.KINDS[name](data)
            for limit in limits:
                found = grow(address, limit, **{**options, **extra})
                print(f"{name:32} {limit:6} growth {found.bytes / 1e6:7.1f} MB {found.bytes / found.limit:5.2f}  peak {found.peak_bytes / 1e6:7.1f}  "
                      f"counted {found.memory_peak / 1e6:7.1f}  samples {found.samples:6} errors {found.errors:5} {found.refused[:150]}", flush=True)
                for cause in found.causes[:5]:
                    print("      ", cause)
