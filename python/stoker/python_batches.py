"""Batches whose rows pass through Python callables: taken from the engine a few steps ahead, handed out in order."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy

from .errors import Error
from .python_rows import BFLOAT16, PackedError, WorkerTraceback, is_in_place, rebuilt
from .python_stage import MOST_AHEAD, PythonStage, Task

__all__ = ["Ahead", "bad_rows", "collated", "replace_rows"]

_NO_ROOM = "no room for the next batch"  # how the engine's message begins


class Ahead:
    """The batches that are with the workers. Used by the thread that iterates, and works only while it is asked for a batch.

    The number of them grows by one with each batch that is handed out, up to ``depth``: the first one does not wait for others.
    """

    def __init__(self, stage: PythonStage, depth: int) -> None:
        self.stage = stage
        self.wait_s = 0.0                     # blocked by callables
        self._depth = min(max(1, depth), MOST_AHEAD)
        self._most = 1
        self._tasks: deque[Task] = deque()
        self._taken: tuple[Any, Any] | None = None  # from the engine, while the stage takes it: Ctrl-C may end that
        self._failure: Exception | None = None
        self._is_over = False

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def samples(self) -> int:
        return sum(task.slab.size for task in self._tasks)

    def next(self, take: Callable[[], tuple[Any, Any] | None]) -> Task | None:
        """The next batch, every row of it finished; None at the end of the epoch. ``take`` gives those of the engine."""
        self.stage.free_left()
        while len(self._tasks) < self._most and self._failure is None and not self._is_over:
            if self._tasks and not self.stage.has_room():
                break
            try:
                self._taken = self._taken or take()
            except Exception as error:
                if isinstance(error, Error) and error.message.startswith(_NO_ROOM):
                    if self.stage.await_left():
                        continue
                    if self._tasks:
                        self._depth = self._most = len(self._tasks)
                        break
                self._failure = error
                break
            if self._taken is None:
                self._is_over = True
                break
            started = time.perf_counter()
            try:
                self._tasks.append(self.stage.submit(*self._taken))
                self._taken = None
            finally:
                self.wait_s += time.perf_counter() - started
        if not self._tasks:
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure
            return None
        started = time.perf_counter()
        try:
            self.stage.finish(self._tasks[0])
        finally:
            self.wait_s += time.perf_counter() - started
        self._most = min(self._depth, self._most + 1)
        return self._tasks.popleft()

    def drop(self) -> None:
        """Gives up what is with the workers: another epoch begins."""
        while self._tasks:
            self.stage.give_up(self._tasks.popleft())
        self._taken, self._failure, self._is_over, self._most = None, None, False, 1


def bad_rows(task: Task) -> list[tuple[int, str, BaseException]]:
    """The rows that have no result: number, cause, and the exception to raise."""
    found: list[tuple[int, str, BaseException]] = []
    for row, failure in sorted(task.failures.items()):
        if isinstance(failure, PackedError):
            found.append((row, failure.text, failure.exception()))
        else:
            found.append((row, failure, WorkerTraceback(failure)))
    return found


def replace_rows(task: Task, arrays: list[Any], bad: list[int]) -> bool:
    """Copies the next good row over each bad one, the first after the last. False if there is none."""
    good = sorted(set(range(task.slab.size)) - set(bad))
    if not good:
        return False
    for row in bad:
        other = next((later for later in good if later > row), good[0])
        for array in arrays:
            if array is not None and len(array):
                array[row] = array[other]
        if other in task.objects:
            task.objects[row] = task.objects[other]
    return True


def collated(stage: PythonStage, task: Task, keep: Any, from_numpy: Callable[[numpy.ndarray], Any]) -> Any:
    """The results of a batch in the structure that torch's default_collate gives: objects become lists."""
    structure, leaves = stage.form
    rows = range(task.slab.size)[keep] if isinstance(keep, slice) else numpy.flatnonzero(keep).tolist()
    values: list[Any] = []
    objects = 0
    for leaf, array in zip(leaves, task.rows.outputs, strict=True):
        if array is None:
            values.append([task.objects[row][objects] if row in task.objects else None for row in rows])
            objects += 1
        else:
            value = from_numpy(array if isinstance(keep, slice) else array[keep])
            values.append(value.view(sys.modules["torch"].bfloat16) if leaf.dtype == BFLOAT16 else value)
    return rebuilt(structure, values)


def lies_in_place(stage: PythonStage) -> bool:
    return stage.form is None or is_in_place(stage.form)
