"""Takes a training job apart, for ``stoker measure --deep module:function``: the step alone, the loader alone with its
files in the page cache and without, and both together.

``function(knobs)`` is what ``stoker tune`` takes too: it gets one dict and returns ``(loader, step)``, any iterable of batches that can
be read again, and a function of one batch. ``python -m stoker.deep module:function --out runs.json`` writes the figures; the program compares them.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import _trial
from ._trial import Knobs, check_all_read, find
from .errors import UsageError
from .measuring import measure

__all__ = ["build", "run"]

RUN_SECONDS = 3.0   # of one run, where `steps` does not say
LEAST_STEPS = 20
LOOKED_AT = 200     # files whose pages are looked at after dropping


def build(entry: str, knobs: Knobs) -> tuple[Iterable[Any], Callable[[Any], Any]]:
    """What the entry point returns, checked; a step's ``transfer`` is part of it."""
    loader, step = _trial.build(entry, find(entry), knobs)
    if hasattr(loader, "__next__"):
        raise UsageError(f"`{entry}` returned a loader that can be read once only", "return an object whose __iter__ starts over, not a generator")
    transfer = getattr(step, "transfer", None)
    if step is None:
        return loader, lambda batch: None
    return loader, step if transfer is None else lambda batch: step(transfer(batch))


def run(entry: str, knobs: dict[str, Any], steps: int | None = None, data: Iterable[str] = ()) -> dict[str, Any]:
    """The figures of all runs, in seconds per step."""
    asked = Knobs(knobs)
    loader, step = build(entry, asked)
    warmup = max(1, _workers(loader))
    notes: list[str] = []
    steps = _first_pass(loader, step, steps, warmup)
    check_all_read(entry, asked)
    if steps < warmup + 3:
        raise UsageError(f"{entry}: a pass over the loader has {steps} batches, and {warmup} of them are made before the first is asked for: "
                         f"too few to compare runs of", "more data, smaller batches, or a larger --steps")
    result: dict[str, Any] = {"steps": steps - warmup, "compute_s": _step_alone(loader, step, steps)}
    result["warm_s"] = _timed(loader, steps, warmup)
    result.update(_cold(loader, steps, warmup, list(data)))
    result.update(_real(loader, step, steps, warmup, notes))
    result["compute_again_s"] = _step_alone(loader, step, steps)
    result["notes"] = notes
    return result


def _workers(loader: Any) -> int:
    workers = getattr(loader, "num_workers", 0)
    return workers if isinstance(workers, int) else 0


def _finish_device() -> None:
    """These runs may wait for the device; the job itself never has to."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _first_pass(loader: Iterable[Any], step: Callable[[Any], Any], wanted: int | None, warmup: int) -> int:
    """Everything once (compiling, caches, files); how many steps the runs shall have."""
    steps, began = 0, time.monotonic()
    for batch in loader:
        step(batch)
        steps += 1
        if steps == wanted or (wanted is None and steps >= LEAST_STEPS + warmup and time.monotonic() - began > RUN_SECONDS):
            break
    _finish_device()
    return steps


def _step_alone(loader: Iterable[Any], step: Callable[[Any], Any], steps: int) -> float:
    batches = iter(loader)
    batch = next(batches)
    del batches  # with it, its workers
    time.sleep(0.2)  # threads that fill a queue have done so
    step(batch)
    _finish_device()
    began = time.monotonic()
    for done in range(1, steps + 1):  # noqa: B007
        step(batch)
        if time.monotonic() - began > RUN_SECONDS:
            break
    _finish_device()
    return (time.monotonic() - began) / done


def _timed(batches: Iterable[Any], steps: int, warmup: int, step: Callable[[Any], Any] | None = None) -> float:
    """Seconds per batch without the first ones, which the workers make together while they start."""
    began, done = 0.0, 0
    for batch in batches:
        if step is not None:
            step(batch)
        done += 1
        if done == warmup:
            _finish_device()
            began = time.monotonic()
        if done == steps:
            break
    _finish_device()
    return (time.monotonic() - began) / max(1, done - warmup)


def _real(loader: Iterable[Any], step: Callable[[Any], Any], steps: int, warmup: int, notes: list[str]) -> dict[str, Any]:
    with measure(loader) as measured:
        seconds = _timed(measured, steps, warmup, step)
    report = measured.report()
    total = report["total"]
    wait = total["wait"]
    if report["verdict"] is None:
        notes.append("the ledger has too few steps for a verdict")
    h2d = (total["h2d"] or {"ms_per_step": 0})["ms_per_step"]
    return {"real_s": seconds, "ledger": {"compute_s": (total["compute"]["ms_per_step"] + h2d) / 1e3, "fetch_s": wait["fetch"]["ms_per_step"] / 1e3,
                                          "prep_s": wait["prep"]["ms_per_step"] / 1e3, "handoff_s": wait["handoff"]["ms_per_step"] / 1e3}}


# ---- the page cache


def _cold(loader: Iterable[Any], steps: int, warmup: int, data: list[str]) -> dict[str, Any]:
    files = sorted(set(_below(data) if data else _files_of(loader)))
    if not files:
        return {"cold_s": None, "cold_left": None, "cold_why": "the files of the loader are not known: --data names them, or their folder"}
    for path in files:
        _drop(path)
    left = cached_share(files)
    return {"cold_s": _timed(loader, steps, warmup), "cold_left": left, "cold_why": ""}


def _below(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if os.path.isfile(path):
            yield path
        elif os.path.isdir(path):
            for folder, _, names in os.walk(path):
                yield from (os.path.join(folder, name) for name in names)
        else:
            raise UsageError(f"cannot drop `{path}` from the page cache: there is no such file or folder", "--data names the files the loader reads")


def _files_of(loader: Any) -> Iterator[str]:
    """The paths that data sets of files carry: a list of them, or of tuples that begin with one."""
    dataset = getattr(loader, "dataset", None)
    for _ in range(8):
        for name in ("samples", "imgs", "paths", "files", "image_paths", "filenames"):
            listed = getattr(dataset, name, None)
            if isinstance(listed, (list, tuple)) and listed:
                for one in listed:
                    path = one[0] if isinstance(one, (list, tuple)) and one else one
                    if isinstance(path, (str, os.PathLike)) and os.path.isfile(path):
                        yield os.fspath(path)
                return
        dataset = getattr(dataset, "dataset", None)


def _drop(path: str) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return  # the loader will name it
    try:
        os.fdatasync(fd)  # pages that are not written yet are not dropped
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def cached_share(files: list[str]) -> float | None:
    """The share of the pages of up to 200 files that is in the page cache; None where it cannot be known."""
    c = ctypes.CDLL(None, use_errno=True)
    c.mmap.restype = ctypes.c_void_p
    c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    c.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    pages = there = 0
    for path in files[:: max(1, len(files) // LOOKED_AT)]:
        status = os.stat(path)
        if status.st_size == 0:
            continue
        if os.geteuid() not in (0, status.st_uid):  # since Linux 5.2 only the owner is told
            return None
        size = min(status.st_size, 64 << 20)
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            address = c.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
        finally:
            os.close(fd)
        if address in (None, ctypes.c_void_p(-1).value):
            continue
        count = (size + mmap.PAGESIZE - 1) // mmap.PAGESIZE
        told = ctypes.create_string_buffer(count)
        if c.mincore(address, size, told) == 0:
            pages += count
            there += sum(byte & 1 for byte in told.raw)
        c.munmap(address, size)
    return there / pages if pages else None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stoker.deep", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("entry", metavar="module:function")
    parser.add_argument("--knobs", type=json.loads, default={}, help="a JSON object, given to the function")
    parser.add_argument("--steps", type=int, help="of each run; without: three seconds' worth")
    parser.add_argument("--data", action="append", default=[], help="files or folders to drop from the page cache for the cold run")
    parser.add_argument("--out", required=True, help="where the figures go, as JSON")
    arguments = parser.parse_args()
    try:
        result = run(arguments.entry, arguments.knobs, arguments.steps, arguments.data)
    except (UsageError, ModuleNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    aside = arguments.out + ".part"
    with open(aside, "w") as file:
        json.dump(result, file)
    os.replace(aside, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
