"""The batches of a loader whose samples pass through a Python callable: memory of the workers, rows that fail, counters.

Used by the thread that iterates.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from . import _engine
from . import numpy as numpy_framework
from .arguments import byte_count
from .batch import Batch
from .epochs import Epochs
from .errors import Error, UsageError, one_line
from .python_batches import Ahead, bad_rows, collated, lies_in_place, replace_rows
from .python_rows import Call
from .python_stage import PythonStage, Task
from .sample_errors import SampleError

__all__ = ["PythonCalls"]

_NUMBERS_BYTES = 64 * 2**20  # what the engine needs at most to order the items of a Dataset
_WORKERS_VARY = 1.1  # what workers hold after their imports, from one start to the next


class PythonCalls:
    def __init__(self, call: Call, workers: int, given: dict[str, Any], dataset: Any, framework: Any, on_error: str, copy: bool) -> None:
        """``given``: options of the engine, whose memory_limit becomes the engine's share."""
        self.kind = call.kind
        self.errors: list[SampleError] = []
        self._dataset, self._framework, self._on_error, self._copy = dataset, framework, on_error, copy
        self._work_before = 0, 0.0  # of the workers, when the counts began
        self.stage = PythonStage(call, workers, _engine.checked_option("batch_size", given["batch_size"]), dataset.name)
        try:
            if workers:
                self._divide_memory(given)
            self._ahead = Ahead(self.stage, _engine.checked_option("prefetch_factor", given["prefetch_factor"]))
        except BaseException:
            self.stage.close()
            raise

    def next(self, engine: _engine.Loader, epochs: Epochs) -> Any:
        """The next batch; None at the end of the epoch. Items of a Dataset come as default_collate gives them."""
        def take() -> tuple[Any, Any] | None:
            epochs.ask()
            slab = engine.next()
            return None if slab is None else (slab, epochs.taken())

        task = self._ahead.next(take)
        if task is None:
            return None
        epochs.handed_out(task.place, len(self._ahead))
        return self._finished(task, engine.options()["max_errors"] if task.failures else 0)

    def drop(self) -> None:
        """Gives up what is with the workers: another epoch begins."""
        self._ahead.drop()

    def add_to(self, stats: dict[str, Any]) -> None:
        """Counters of the engine become those of what was handed out, and get the time and memory of the workers."""
        stats["errors"] += len(self.errors)
        stats["samples"] -= self._ahead.samples
        stats["batches"] -= len(self._ahead)
        stats["python_workers"] = self.stage.workers
        if not self.stage.workers:
            stats["python_s"] += self._ahead.wait_s
            return
        stats["wait"]["prep_s"] += self._ahead.wait_s
        stats["wait_s"] += self._ahead.wait_s
        stats["compute_s"] = max(0.0, stats["compute_s"] - self._ahead.wait_s)
        rows, busy_s = self.stage.work()
        stats["python_rows"], stats["python_busy_s"] = rows - self._work_before[0], busy_s - self._work_before[1]
        stats["prep"]["busy_s"] += stats["python_busy_s"]
        stats["python_bytes"] = self.stage.worker_bytes()
        for word, blocks in (("memory_used", self.stage.blocks_bytes), ("memory_peak", self.stage.blocks_peak)):
            stats[word] += blocks + stats["python_bytes"]
        stats["memory_limit"] = self._memory_limit

    def reset_counts(self) -> None:
        self._ahead.wait_s, self._work_before = 0.0, self.stage.work()

    def close(self) -> None:
        self.stage.close()

    # ---- inside

    def _divide_memory(self, given: dict[str, Any]) -> None:
        """Of memory_limit: what the workers hold now; of the rest, half for what callables return and half for the engine."""
        self._memory_limit = byte_count("memory_limit", given["memory_limit"]) or _engine.default_memory_limit()
        stage = self.stage
        taken = stage.worker_bytes()
        rest = self._memory_limit - taken
        if rest <= 0:
            raise UsageError(f"memory_limit {_engine.format_bytes(self._memory_limit)} is too small: {stage.workers} python workers hold {_engine.format_bytes(taken)} "
                             "once they have imported the callable", "raise memory_limit=, or use fewer python_workers", option="memory_limit")
        engine = min(rest // 2, _NUMBERS_BYTES) if self.kind == "dataset" else rest // 2
        stage.blocks_limit = rest - engine
        most = _NUMBERS_BYTES if self.kind == "dataset" else math.inf
        stage.limit_for = lambda blocks: int(blocks + min(blocks, most) + taken * _WORKERS_VARY)
        given["memory_limit"] = engine

    def _finished(self, task: Task, most_errors: float) -> Any:
        """The batch of rows that have passed through the callable, without those that failed, as on_error says. Items of a Dataset come as default_collate gives them."""
        stage = self.stage
        in_place = lies_in_place(stage)
        batch = Batch(task.slab, self._framework if in_place else numpy_framework, self._dataset.names)
        bad = bad_rows(task)
        for row, cause, error in bad:
            self._note_bad_row(batch, row, cause, error)
        if bad:
            self._check_error_count(batch.epoch, most_errors)
        if stage.form is None and not batch.size and self.kind == "dataset":
            raise UsageError(f"this rank gets no item of step {batch.step}, and has had none before: it cannot know what a batch looks like",
                             "use fewer ranks, a smaller batch_size=, or last_batch=\"drop\"", option="last_batch")
        if stage.form is None and batch.size and self.kind != "transform":
            raise Error(f"{self.kind}= gave nothing for step {batch.step}: every sample failed", "loader.errors lists them", "corrupt")
        keep = self._without(task, batch, [row for row, _, _ in bad])
        if self.kind == "dataset":
            made = self._framework.from_numpy
            return collated(stage, task, keep, (lambda array: made(array.copy())) if self._copy else made)
        if in_place:
            if not isinstance(keep, slice):
                arrays = {name: self._framework.from_numpy(array[keep]) for name, array in task.rows.inputs.items()}
                labels = self._framework.from_numpy(task.slab.labels()[keep])
                batch._leave_slab(arrays["data"] if list(arrays) == ["data"] else arrays, labels, keep)
            return batch
        data = collated(stage, task, keep, self._framework.from_numpy)
        batch._leave_slab(data, self._framework.from_numpy(batch.labels[keep].copy()), keep)
        batch._has_tails = False
        batch._framework = self._framework
        if batch.coords is not None:
            batch.coords = self._framework.from_numpy(batch.coords)
        return batch

    def _note_bad_row(self, batch: Batch, row: int, cause: str, error: BaseException) -> None:
        stage = self.kind
        index = int(batch._row_values("indices")[row])
        name = self._dataset.name(index)
        message = one_line(f"cannot {'load' if stage == 'dataset' else stage} `{name}`: {cause}")
        self.errors.append(SampleError(
            name=name, index=index, id=int(batch._row_values("ids")[row]), epoch=batch.epoch, position=batch._slab.position(row),
            stage=stage, cause=cause, offset=None, action=self._on_error, message=message))
        if self._on_error == "raise":
            words = "\"skip\" or \"replace\"" if stage == "dataset" else "\"skip\", \"replace\" or \"zero\""
            raise Error(message, f"on_error={words} goes on without it", "corrupt") from error

    def _without(self, task: Task, batch: Batch, bad: list[int]) -> Any:
        """Does what on_error says about rows that failed. The rows that stay, as an index."""
        if not bad:
            return slice(None)
        good = numpy.ones(batch.size, bool)
        good[bad] = False
        if self._on_error == "skip":
            return good
        if self._on_error == "replace":
            slab, results = task.slab, task.rows.inputs.values() if lies_in_place(self.stage) else task.rows.outputs
            if not replace_rows(task, [*results, slab.labels(), slab.ids(), slab.indices(), slab.lengths()], bad):
                raise Error(f"no sample of step {batch.step} can replace the others: every one failed", "loader.errors lists them", "corrupt")
            return slice(None)
        for row in bad:
            self.stage.clear(task, row)
        batch._rows["valid"] = batch._row_values("valid") & good
        return slice(None)

    def _check_error_count(self, epoch: int, most: float) -> None:
        if not most:
            return
        allowed = most if most >= 1 else max(1.0, math.floor(most * len(self._dataset)))
        count = sum(error.epoch == epoch for error in self.errors)
        if count > allowed:
            raise Error(f"{count} samples of epoch {epoch} failed in the Python callable, more than max_errors={most:g} allows", "loader.errors lists them", "corrupt")
