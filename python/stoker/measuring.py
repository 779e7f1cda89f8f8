"""What starves a loop, measured inside it::

    with stoker.measure(loader) as m:
        for images, labels in m:
            train_step(images, labels)
    print(m.verdict)

Around a torch DataLoader its workers are timed as by ``stoker measure``; a stoker.Loader knows its own stages; any other
iterable is judged by the CPU time that the asking thread spends in it. Without a loader the block measures the stages that the program
names itself (:func:`stoker.span`).
"""

from __future__ import annotations

import abc
import itertools
import json
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from . import _engine, spans
from .errors import UsageError

__all__ = ["Measurement", "measure"]

_HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook")
_TORCH = "torch.utils.data.dataloader"
_serial = itertools.count(1)


def measure(loader: Iterable[Any] | None = None) -> Measurement:
    """Measures the loops over ``loader`` that run inside the ``with`` block, and over what it returns; without a loader the spans."""
    return Measurement(loader)


class Measurement:
    """Iterate over it instead of the loader, as often as there are epochs. ``verdict``, ``report()`` and ``summary()`` may be asked at
    any time, also inside the loop."""

    def __init__(self, loader: Iterable[Any] | None) -> None:
        if loader is not None and not isinstance(loader, Iterable):
            raise UsageError(f"measure: {type(loader).__name__!r} is not iterable", "give it the loader of the loop")
        self.loader = loader
        self._folder: str | None = None
        self._report: dict[str, Any] | None = None

    def __enter__(self) -> Measurement:
        if self._folder is not None:
            raise UsageError("measure: this block has been entered already", "stoker.measure(loader) again, for a second block")
        import tempfile
        self._folder = tempfile.mkdtemp(prefix="stoker-measure-")
        self._source = _source(self.loader, self._folder)
        return self

    def __exit__(self, *_: object) -> None:
        self._source.stop()
        self._report = self._read()
        if self._folder is not None:
            import shutil
            shutil.rmtree(self._folder, ignore_errors=True)

    def __iter__(self) -> Iterator[Any]:
        if self._folder is None:
            raise UsageError("measure: nothing is measured outside of its block", "with stoker.measure(loader) as m: for batch in m: ...")
        if self.loader is None:
            raise UsageError("measure: this block has no loader to iterate over", "stoker.measure(loader), or name stages with stoker.span")
        return iter(self.loader) if self._report is not None else self._source.iterate()

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def report(self) -> dict[str, Any]:
        """What ``stoker measure --json`` gives, but for the host."""
        return self._report if self._report is not None else self._read()

    @property
    def verdict(self) -> str:
        """One line: ``prep_bound (io_bound) 61.2 % (+-2.0), severe: 2.58x faster if prep were free``."""
        return self.report()["headline"]

    def summary(self) -> str:
        """The verdict, why, and what to try."""
        report = self.report()
        lines = [report["headline"], *(f"why: {text}" for text in report["why"]), *(f"try: {text}" for text in report["advice"]),
                 *(f"note: {text}" for text in report["notes"])]
        return "\n".join(lines)

    def _read(self) -> dict[str, Any]:
        if self.loader is None:
            spans.tell()
        if self._folder is None:
            raise UsageError("measure: nothing was measured yet", "with stoker.measure(loader) as m: for batch in m: ...")
        return json.loads(_engine.measured(self._folder))


def in_measured_job() -> bool:
    """Whether this process runs under ``stoker measure``."""
    return bool(os.environ.get("STOKER_MEASURE_DIR"))


def place() -> dict[str, Any] | None:
    """Where the user's program is, for a loader that is made there; None outside of a measured job."""
    return caller() if in_measured_job() else None


def caller() -> dict[str, Any] | None:
    """Where the user's program is: the nearest frame of its own code."""
    from importlib import import_module

    _hook()
    found = import_module("stoker_hook.places").caller()
    return found and {word: found[word] for word in ("file", "line", "function", "name")}


def recorded(loader: Any, iterator: Iterator[Any]) -> Iterator[Any]:
    """A pass over a stoker.Loader that ``stoker measure`` sees."""
    if loader._recorded is None:
        loader._recorded = _OwnSource(loader, os.environ["STOKER_MEASURE_DIR"].split(os.pathsep)[0])
    return loader._recorded.iterate(iterator)


class _SpanSource:
    """The stages of the program, in all of its threads."""

    def __init__(self, folder: str) -> None:
        self._recorder = _hook().recorder.Recorder(folder)
        spans.start(self._recorder)

    def stop(self) -> None:
        spans.stop(self._recorder)
        self._recorder.close()


def _source(loader: Any, folder: str) -> Any:
    from .loader import Loader

    if loader is None:
        return _SpanSource(folder)

    torch_loader = getattr(sys.modules.get(_TORCH), "DataLoader", None)
    if torch_loader is not None and isinstance(loader, torch_loader):
        return _TorchSource(loader, folder)
    return _OwnSource(loader, folder) if isinstance(loader, Loader) else _AnySource(loader, folder)


def _hook() -> Any:
    """The package stoker_hook, which is there already in a job under ``stoker measure``."""
    if "stoker_hook" not in sys.modules:
        sys.path.insert(0, _HOOK)
        try:
            import stoker_hook
        finally:
            sys.path.remove(_HOOK)
    import stoker_hook.recorder

    return stoker_hook


class _TorchSource:
    """The hook does it, here and in workers; those that are spawned find it through the environment."""

    def __init__(self, loader: Any, folder: str) -> None:
        hook = _hook()
        module = sys.modules[_TORCH]
        self._loader = loader
        self._main = hook.install([], module)
        if self._main.also is not None and not self._main.also.off:
            raise UsageError("measure: another block measures a DataLoader already", "one block at a time; it sees every DataLoader of the process")
        self._before = {name: os.environ.get(name) for name in ("PYTHONPATH", "STOKER_MEASURE_DIR")}
        os.environ["PYTHONPATH"] = os.pathsep.join([_HOOK, *filter(None, [self._before["PYTHONPATH"]])])
        os.environ["STOKER_MEASURE_DIR"] = os.pathsep.join([*filter(None, [self._before["STOKER_MEASURE_DIR"]]), folder])
        self._main.also = hook.recorder.Recorder(folder)
        self._main.also.hello = sys.modules[hook.__name__ + ".facts"].process_line
        module._stoker_hook.forget()

    def iterate(self) -> Iterator[Any]:
        return iter(self._loader)

    def stop(self) -> None:
        self._main.also.off = True
        self._main.also = None
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class _TimedSource(abc.ABC):
    """Times each ``next()`` in the asking thread and writes the lines that the hook would."""

    def __init__(self, loader: Any, folder: str) -> None:
        self._loader = loader
        self._recorder = _hook().recorder.Recorder(folder)
        self._base = 100_000 * next(_serial)  # the hook numbers its own loaders from 0
        self._numbers = itertools.count(self._base)
        self._write(k="loader", i=self._base, type=type(loader).__name__, dataset=type(loader).__name__, **self._settings())

    def _settings(self) -> dict[str, Any]:
        return {"kind": "other", "num_workers": 0}

    @abc.abstractmethod
    def _before(self) -> Any:
        """What `_split` wants to know from before the wait."""

    @abc.abstractmethod
    def _split(self, before: Any, wait: int) -> tuple[int, int]:
        """How much of the wait was fetching, and how much preparing."""

    def _more(self) -> dict[str, Any]:
        """Further fields of a step, after `_split`."""
        return {}

    def _write(self, **line: Any) -> None:
        self._recorder.write(json.dumps(line))

    def iterate(self, iterator: Iterator[Any] | None = None) -> Iterator[Any]:
        """A pass over the loader, or over an iterator of it that exists already."""
        clocks = _hook_clocks()
        number = next(self._numbers)
        begun = clocks.wall()
        if iterator is None:
            iterator = iter(self._loader)
        self._write(k="iter", i=self._base, n=number, t0=begun, t1=clocks.wall(), workers=[], seed=number, rank=0, world=1, thread=threading.get_native_id())
        for index in itertools.count():
            before = self._before()
            asked = clocks.wall()
            try:
                batch = next(iterator)
            except StopIteration:
                self._write(k="end", n=number, t0=asked, t1=clocks.wall())
                return
            got = clocks.wall()
            fetch, prep = self._split(before, got - asked)
            self._write(k="next", n=number, b=index, t0=asked, t1=got, g=_is_training(), fetch=fetch, prep=prep, samples=samples_of(batch),
                        **self._more())
            yield batch

    def stop(self) -> None:
        self._recorder.close()
        self._recorder.off = True


class _AnySource(_TimedSource):
    def _before(self) -> tuple[int, int, int | None]:
        clocks = _hook_clocks()
        return clocks.cpu(), clocks.delay(), clocks.switches()

    def _split(self, before: tuple[int, int, int | None], wait: int) -> tuple[int, int]:
        clocks = _hook_clocks()
        if before[2] is not None and clocks.switches() == before[2]:
            return 0, wait  # this thread never waited: it computed, or had no core
        prep = min(wait, clocks.cpu() - before[0] + clocks.delay() - before[1])
        return wait - prep, prep


class _OwnSource(_TimedSource):
    def __init__(self, loader: Any, folder: str) -> None:
        self._store: dict[str, int] = {}
        self._store_before: dict[str, int] = {}
        super().__init__(loader, folder)

    def _settings(self) -> dict[str, Any]:
        options = self._loader.options
        return {"kind": "stoker", "place": self._loader._made_at, "samples": self._loader.num_samples,
                "workers_are_auto": self._loader._given["num_workers"] == "auto",
                **{word: options[word] for word in ("batch_size", "num_workers", "prefetch_factor")}}

    def _before(self) -> dict[str, float]:
        return self._loader.stats()["wait"]

    def _split(self, before: dict[str, float], wait: int) -> tuple[int, int]:
        stats = self._loader.stats()
        after, self._store = stats["wait"], stats["store"]
        return tuple(int(1e9 * (after[word] - before[word])) for word in ("fetch_s", "prep_s"))  # type: ignore[return-value]

    def _more(self) -> dict[str, Any]:
        since = {word: max(0, value - self._store_before.get(word, 0)) for word, value in self._store.items()}
        self._store_before = self._store
        return {"store": since} if any(since.values()) else {}


def _hook_clocks() -> Any:
    from importlib import import_module

    return sys.modules.get("stoker_hook.clocks") or import_module("stoker_hook.clocks")


def _is_training() -> int:
    torch = sys.modules.get("torch")
    return int(torch.is_grad_enabled()) if torch is not None else 1


def samples_of(batch: Any) -> int:
    """How many samples a batch has, as far as it shows: rows of the first array in it, or items of the first list of other things."""
    first, count = batch, 1
    for _ in range(3):
        if hasattr(first, "shape"):
            return int(first.shape[0]) if len(first.shape) else count
        if isinstance(first, dict) and first:
            first = next(iter(first.values()))
        elif isinstance(first, (list, tuple)) and first:
            first, count = first[0], len(first)
        elif hasattr(first, "data") and hasattr(first, "labels"):
            first = first.data
        else:
            break
    return count


if in_measured_job():
    spans.start_until_exit(_hook().recorder.Recorder(os.environ["STOKER_MEASURE_DIR"].split(os.pathsep)[0]))
