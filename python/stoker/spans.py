"""Named stages of any pipeline, for programs that have no loader::

    with stoker.span("read", items=len(files)):
        data = [load(file) for file in files]

    @stoker.span("device")
    def process(batch): ...

Under ``stoker measure -- python builder.py``, or inside ``with stoker.measure() as m:``, they give a ledger: how busy each stage is, how
many items lie between two stages, which one is the limit and how far to widen it. Elsewhere a span does nothing.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from .errors import UsageError

__all__ = ["Span", "span"]

FLUSH_NS = 100_000_000  # a thread tells what its spans did this often
LONGEST_NAME = 60
_recorders: list[Any] = []  # that get the lines; none: nothing is measured
_threads: list[_Thread] = []
_lock = threading.Lock()
_local = threading.local()
_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Sum:
    """What a thread did in a stage since it told last."""

    __slots__ = ("begun", "busy", "calls", "cpu", "items", "since")

    def __init__(self, now: int) -> None:
        self.since = now
        self.calls = self.items = self.begun = self.busy = self.cpu = 0


class _Thread:
    """The spans of one thread; only it writes here, but for the last flush."""

    def __init__(self) -> None:
        self.number = threading.get_native_id()
        self.pid = os.getpid()
        self.open: list[list[int]] = []  # start, CPU time, time of the spans inside, their CPU time
        self.sums: dict[str, _Sum] = {}
        self.told = time.monotonic_ns()
        self._delay = self._run_delay()

    def _run_delay(self) -> int:
        """Nanoseconds in which this thread was ready without a core; 0 where the kernel does not count."""
        try:
            with open(f"/proc/self/task/{self.number}/schedstat") as file:
                return int(file.read().split()[1])
        except (OSError, ValueError, IndexError):
            return 0  # also of a thread that has ended

    def flush(self, now: int) -> None:
        self.told = now
        delay = self._run_delay()
        since, self._delay = max(0, delay - self._delay), max(delay, self._delay)
        computed = sum(done.cpu for done in self.sums.values())
        for name, done in list(self.sums.items()):
            if not done.calls and not done.begun:
                continue
            if computed:  # a stage that computes is kept from it in proportion
                done.cpu = min(done.busy, done.cpu + since * done.cpu // computed)
            line = json.dumps({"k": "span", "n": name, "th": self.number, "t0": done.since, "t1": now, "c": done.calls, "i": done.items,
                               "s": done.begun, "b": done.busy, "u": done.cpu})
            self.sums[name] = _Sum(now)
            for recorder in _recorders:
                recorder.write(line)


class Span:
    """A stage of a pipeline: a context manager, and a decorator of functions. Any number of threads may be in one at a time. Spans inside
    a span count for themselves only."""

    __slots__ = ("items", "name")

    def __init__(self, name: str, items: int) -> None:
        self.name, self.items = name, items

    def __enter__(self) -> Span:
        if _recorders:
            self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        if _recorders:
            self._end()

    def __call__(self, function: _Function) -> _Function:
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            what = "a generator" if inspect.isgeneratorfunction(function) else "asynchronous"
            raise UsageError(f"span {self.name!r} cannot decorate {function.__name__}: it is {what}, and calling it does no work yet",
                             f"write `with stoker.span({self.name!r}):` around the work inside it")

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            if not _recorders:
                return function(*args, **kwargs)
            with self:
                return function(*args, **kwargs)

        return timed  # type: ignore[return-value]

    def _begin(self) -> None:
        thread = getattr(_local, "thread", None)
        if thread is None or thread.pid != os.getpid():
            thread = _local.thread = _Thread()
            with _lock:
                _threads.append(thread)
        now = time.monotonic_ns()
        done = thread.sums.get(self.name)
        if done is None:
            done = thread.sums[self.name] = _Sum(now)
        done.begun += self.items
        thread.open.append([now, time.thread_time_ns(), 0, 0])

    def _end(self) -> None:
        thread = getattr(_local, "thread", None)
        if thread is None or not thread.open:
            return  # measuring began inside the span
        now, cpu = time.monotonic_ns(), time.thread_time_ns()
        began, cpu_began, inside, cpu_inside = thread.open.pop()
        if thread.open:
            thread.open[-1][2] += now - began
            thread.open[-1][3] += cpu - cpu_began
        done = thread.sums.get(self.name)
        if done is None:
            done = thread.sums[self.name] = _Sum(began)
        done.calls += 1
        done.items += self.items
        done.busy += now - began - inside
        done.cpu += cpu - cpu_began - cpu_inside
        if now - thread.told >= FLUSH_NS:
            thread.flush(now)


_known: dict[tuple[str, int], Span] = {}


def span(name: str, items: int = 1) -> Span:
    """A stage called ``name``; ``items``: how many things one pass through it handles, so that stages of different batches compare."""
    found = _known.get((name, items))
    return found if found is not None else _new_span(name, items)


def _new_span(name: str, items: int) -> Span:
    if not isinstance(name, str) or not name:
        raise UsageError(f"span: a name is a text, not {name!r}", 'with stoker.span("read"): ...')
    if isinstance(items, bool) or not isinstance(items, int) or items < 1:
        raise UsageError(f"span: items is a whole number from 1, not {items!r}", 'with stoker.span("read", items=len(files)): ...')
    made = Span(_one_line(name), items)
    if len(_known) < 1024:
        _known[name, items] = made
    return made


def _one_line(name: str) -> str:
    """Names stand in tables: control characters and lone surrogates become escapes, and a long name keeps its start and its end."""
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
    return plain if len(plain) <= LONGEST_NAME else plain[:LONGEST_NAME - 20] + "..." + plain[-17:]


def start(recorder: Any) -> None:
    """Spans write to it from now on."""
    _recorders.append(recorder)


def stop(recorder: Any) -> None:
    """Spans of all threads tell what they did until now; nothing goes to the recorder afterwards."""
    if recorder not in _recorders:
        return
    tell()
    _recorders.remove(recorder)
    if not _recorders:
        with _lock:
            for thread in _threads:
                thread.sums.clear()


def tell() -> None:
    now = time.monotonic_ns()
    with _lock:
        threads = [thread for thread in _threads if thread.pid == os.getpid()]
    for thread in threads:
        thread.flush(now)


def start_until_exit(recorder: Any) -> None:
    """As a process under ``stoker measure`` does from its start."""
    start(recorder)
    atexit.register(tell)


if os.environ.get("STOKER_MEASURE_DIR"):  # under `stoker measure`: it starts the recorder of this process
    from . import measuring  # noqa: F401
