"""One trial of ``stoker tune module:function``: builds a loader and a step from a dict of knobs, runs them, and reports JSON
lines to the descriptor in STOKER_REPORT_FD. Started as ``python -m stoker._trial``; nothing here is for import.

A target is a function of one dict that returns ``(loader, step)``. ``loader`` is iterated, epoch after epoch; ``step(batch)`` is
called with each batch, or is None. A step with a method ``transfer(batch)`` has its copy to the device timed apart.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import importlib.util
import json
import math
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from .errors import Error, UsageError
from .measuring import samples_of

LEAST_SECONDS = 0.5  # of all blocks: shorter runs are mostly chance
LEAST_BLOCK = 0.01  # of one, in seconds: steps of microseconds are not reported each
BLOCKS = 5


class Knobs(dict):
    """The knobs of a trial; remembers which were asked for, so that one that nobody reads is noticed, and with which value each was used,
    also where that is the target's own default."""

    def __init__(self, knobs: dict[str, Any]) -> None:
        super().__init__(knobs)
        self.asked: set[str] = set()
        self.used: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        self.asked.add(name)
        value = self.used[name] = super().__getitem__(name)
        return value

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        value = super().get(name, default)
        if value is not None:
            self.used[name] = value
        return value

    def pop(self, name: str, *default: Any) -> Any:
        self.asked.add(name)
        return super().pop(name, *default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return super().setdefault(name, default)

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    # Whoever takes all of them has read each.
    def __iter__(self) -> Iterator[str]:
        self.asked.update(super().keys())
        return super().__iter__()

    def keys(self) -> Any:
        self.asked.update(super().keys())
        return super().keys()

    def values(self) -> Any:
        self.asked.update(super().keys())
        return super().values()

    def items(self) -> Any:
        self.asked.update(super().keys())
        return super().items()

    def copy(self) -> Knobs:
        other = Knobs(self)
        other.asked, other.used = self.asked, self.used
        return other


class Reporter:
    """JSON lines to the tuner; to nobody where there is none."""

    def __init__(self) -> None:
        number = os.environ.get("STOKER_REPORT_FD", "")
        self._fd = int(number) if number.isdigit() else -1

    def __call__(self, **line: Any) -> None:
        data = (json.dumps(line) + "\n").encode()
        while data and self._fd >= 0:
            try:
                data = data[os.write(self._fd, data):]
            except OSError:
                os._exit(1)  # the tuner is gone


def find(target: str) -> Callable[[dict[str, Any]], Any]:
    """``module:function`` or ``path/to/file.py:function``."""
    where, _, name = target.rpartition(":")
    if where.endswith(".py"):
        path = os.path.abspath(where)
        if not os.path.isfile(path):
            raise UsageError(f"cannot open `{where}`: no such file", "give the file of the target as path/to/file.py:function")
        module_name = os.path.splitext(os.path.basename(path))[0]
        sys.path.insert(0, os.path.dirname(path))
        spec = importlib.util.spec_from_file_location(module_name, path)
        assert spec is not None and spec.loader is not None, path
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module  # so that workers which are spawned can unpickle what it defines
        spec.loader.exec_module(module)
    else:
        if "" not in sys.path and os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        module = importlib.import_module(where)
    function = getattr(module, name, None)
    if not callable(function):
        there = [word for word, thing in vars(module).items() if callable(thing) and not word.startswith("_")]
        near = difflib.get_close_matches(name, there, 1)
        hint = f"did you mean `{where}:{near[0]}`?" if near else f"it has: {', '.join(sorted(there)[:12]) or 'no function'}"
        raise UsageError(f"`{where}` has no function `{name}`", hint)
    return function


def build(target: str, function: Callable[[dict[str, Any]], Any], knobs: Knobs) -> tuple[Any, Any]:
    made = function(knobs)
    if not isinstance(made, tuple) or len(made) != 2 or not hasattr(made[0], "__iter__") or not (made[1] is None or callable(made[1])):
        raise UsageError(f"`{target}` returned {_describe(made)}", "a target returns (loader, step): something to iterate over, and a function of a batch or None")
    return made


def settings_of(knobs: Knobs) -> dict[str, Any]:
    """What the target used, as far as JSON can hold it."""
    return {name: value for name, value in knobs.used.items() if isinstance(value, (bool, int, float, str, list, dict)) and name != "source"}


def _describe(made: Any) -> str:
    if isinstance(made, tuple):
        return f"({', '.join(type(one).__name__ for one in made)})"
    return type(made).__name__


def check_all_read(target: str, knobs: Knobs) -> None:
    for name in dict.keys(knobs):
        if name in knobs.asked:
            continue
        others = sorted(knobs.asked - set(dict.keys(knobs)))
        near = difflib.get_close_matches(name, others, 1)
        hint = f"did you mean `{near[0]}`?" if near else f"it reads: {', '.join(sorted(knobs.asked)) or 'none'}"
        raise UsageError(f"`{target}` never reads the knob `{name}`", hint)


class Device:
    """What torch knows of the accelerator, once the target uses one."""

    def __init__(self) -> None:
        torch = sys.modules.get("torch")
        self._device = None
        for name in ("cuda", "xpu"):
            module = getattr(torch, name, None)
            try:
                if module is not None and module.is_available() and module.is_initialized():
                    self._device = module
            except Exception:
                continue

    def wait(self) -> None:
        if self._device is not None:
            self._device.synchronize()

    def memory(self) -> dict[str, int]:
        if self._device is None:
            return {}
        found = {"device_allocated_bytes": int(self._device.max_memory_allocated()), "device_reserved_bytes": int(self._device.max_memory_reserved())}
        try:
            found["device_free_bytes"] = int(self._device.mem_get_info()[0])
        except Exception:
            pass  # not every backend tells
        return found


class Steps:
    """Takes steps, epoch after epoch, and knows where their time went."""

    def __init__(self, loader: Any, step: Any) -> None:
        self._loader, self._step = loader, step
        self._transfer = getattr(step, "transfer", None)
        self._iterator: Any = None
        self._device: Device | None = None
        self.clear()

    def clear(self) -> None:
        self.count = self.samples = 0
        self.data_s = self.h2d_s = self.compute_s = 0.0
        self._depths: list[int] = []
        self._began = time.perf_counter()
        self._ready = self.ready()

    def take(self) -> None:
        device = self._device or Device()
        asked = time.perf_counter()
        batch = self._next()
        got = time.perf_counter()
        there = got
        if self._transfer is not None:
            batch = self._transfer(batch)
            device.wait()
            there = time.perf_counter()
        if self._step is not None:
            self._step(batch)
        if self._device is None:
            self._device = device = Device()  # the first step may have brought it to life
        device.wait()
        done = time.perf_counter()
        self.count += 1
        self.samples += samples_of(batch)
        self.data_s += got - asked
        self.h2d_s += there - got
        self.compute_s += done - there
        ready = self.ready()
        if ready is not None:
            self._depths.append(ready)

    def _next(self) -> Any:
        for fresh in (False, True):
            if self._iterator is None or fresh:
                self._iterator = iter(self._loader)
            try:
                return next(self._iterator)
            except StopIteration:
                continue
        if hasattr(self._loader, "__next__"):  # an iterator, not what gives iterators
            raise UsageError("the loader was read to its end and cannot be read again", "return one that starts over with each iter(), or enough batches")
        raise UsageError("the loader gives no batch", "lower batch_size, keep the last batch, or inflate the data set")

    def ready(self) -> int | None:
        """Batches that lie ready; None where nobody knows."""
        stats = getattr(self._loader, "stats", None)
        try:
            if callable(stats):
                return int(stats()["ready_batches"]["now"])
            iterator = self._iterator
            found = sum(len(info) == 2 for info in iterator._task_info.values())
            queues = {id(queue): queue for queue in (iterator._data_queue, iterator._worker_result_queue)}
            return found + sum(queue.qsize() for queue in queues.values())
        except Exception:
            return None

    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def block(self, warmup: bool) -> dict[str, Any]:
        line: dict[str, Any] = {"event": "block", "steps": self.count, "samples": self.samples, "seconds": self.seconds(), "warmup": warmup,
                                "data_s": self.data_s, "compute_s": self.compute_s}
        if self._transfer is not None:
            line["h2d_s"] = self.h2d_s
        ready = self.ready()
        if ready is not None and self._ready is not None:
            line["ready_change"] = ready - self._ready
        if self._depths:
            line["queue_depth"] = sum(self._depths) / len(self._depths)
        return line

    def memory(self) -> dict[str, int]:
        return self._device.memory() if self._device is not None else {}

    def close(self) -> None:
        self._iterator = None
        close = getattr(self._loader, "close", None)
        if callable(close):
            close()


def run(target: str, loader: Any, step: Any, knobs: Knobs, warmup_steps: int, bench_steps: int, bench_seconds: float, report: Reporter) -> None:
    steps = Steps(loader, step)
    for _ in range(warmup_steps):
        steps.take()
    report(**steps.block(True))
    if warmup_steps:
        check_all_read(target, knobs)
    # Whole rounds of the workers, since batches come in bursts of as many; and whole updates of the weights.
    workers = getattr(loader, "num_workers", 0)
    updates = dict.get(knobs, "accumulate_steps", 1)
    whole = 1
    for count in (workers, updates):
        if isinstance(count, int) and count > 0 and math.lcm(whole, count) <= max(bench_steps, count):
            whole = math.lcm(whole, count)
    wanted = math.ceil(bench_steps / whole) * whole
    taken, spent = 0, 0.0
    while taken < wanted or spent < bench_seconds:
        steps.clear()
        while steps.count == 0 or steps.seconds() < LEAST_BLOCK:
            for _ in range(max(1, math.ceil(wanted / BLOCKS))):
                steps.take()
        line = steps.block(False)
        report(**line)
        if memory := steps.memory():
            report(event="memory", **memory)
        taken += line["steps"]
        spent += line["seconds"]
    check_all_read(target, knobs)
    report(event="done")
    steps.close()


def place_of(error: BaseException) -> tuple[str, int] | None:
    """The last line of the user's own code in the traceback: what is neither Python's, nor installed, nor of this package."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno or 0
    own = None
    package = os.path.dirname(os.path.abspath(__file__)) + os.sep
    for frame in traceback.extract_tb(error.__traceback__):
        if not frame.filename.startswith(package) and not re.search(r"/lib/python[0-9.]+/|<frozen ", frame.filename):
            own = frame.filename, frame.lineno or 0
    return own


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m stoker._trial", description=__doc__.splitlines()[0])
    parser.add_argument("target", help="module:function or path/to/file.py:function")
    parser.add_argument("--knobs", default="{}", help="a JSON object")
    parser.add_argument("--warmup-steps", type=int, default=5)
    parser.add_argument("--bench-steps", type=int, default=20)
    parser.add_argument("--bench-time", type=float, default=LEAST_SECONDS, metavar="SECONDS")
    options = parser.parse_args(words)
    report = Reporter()
    report(event="hello")
    stage = "import"
    try:
        function = find(options.target)
        stage = "build"
        knobs = Knobs(json.loads(options.knobs))
        loader, step = build(options.target, function, knobs)
        report(event="settings", values=settings_of(knobs))
        stage = "step"
        run(options.target, loader, step, knobs, options.warmup_steps, options.bench_steps, options.bench_time, report)
        return 0
    except (Exception, SystemExit) as error:
        place = place_of(error)
        kind = type(error)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        text = f"{error.message}; {error.hint}" if isinstance(error, Error) and error.hint else str(error)
        report(event="error", stage=stage, type=name, text=text[:20000], file=place and place[0], line=place and place[1])
        if isinstance(error, Error) and place is None:
            print(f"error: {text}", file=sys.stderr)  # a ready-made target refuses what it was given: no code of the user's is wrong
        else:
            traceback.print_exc()
        return 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # whatever the job's libraries still hold, the tuner ends
