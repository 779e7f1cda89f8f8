"""Python callables on the rows of batches: in worker processes, or in the calling thread with ``python_workers=0``.

Samples and results lie in memory that the workers map: no array is pickled, but for the first result, which tells shape and type.
Used by the thread that iterates.
"""

from __future__ import annotations

import errno
import mmap
import pickle
import resource
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy

from . import _engine
from .errors import Error, UsageError, one_line
from .python_rows import Call, Leaf, OwnRandom, PackedError, Rows, form_of, is_in_place
from .python_start import ServerOfWorkers, how_ended, own_bytes

__all__ = ["MOST_AHEAD", "PythonStage", "Task"]

MOST_AHEAD = 6          # batches with the workers at a time
_SLOTS = MOST_AHEAD + 4  # and those that a `break` left behind
_TEXT_BYTES = 16_384    # what workers are told of a batch
_ASK_S = 0.05           # how often a wait lets signals in and looks whether the workers live
_MOST_DEATHS = 3        # of workers in a row without a finished row between them
_LINE = 64
_FILES_OF_SERVER = 8    # open files of a start, beside two for each worker
_FAILED, _LOST, _FIRST_WORKER = 2, 3, 16  # of os::RowBoard::Outcome


class Block:
    """Memory for the results of one batch."""

    def __init__(self, memory: _engine.SharedRegion, size: int) -> None:
        self.size = -(-size // 4096) * 4096
        self.offset = memory.take(self.size)
        self.map = mmap.mmap(memory.fd, self.size, offset=self.offset)
        self._end = weakref.finalize(self, memory.give_back, self.offset, self.size)
        self._end.atexit = False


class Task:
    """One batch on its way through the workers."""

    def __init__(self, slab: Any, place: Any) -> None:
        self.slab = slab
        self.place = place                              # where a state that is taken after this batch resumes
        self.rows: Rows
        self.slot: int | None = None
        self.item = 0
        self.first = 0                                  # rows before it are finished
        self.failures: dict[int, PackedError | str] = {}  # by row
        self.objects: dict[int, list[Any]] = {}
        self.block: tuple[Block, Any] | None = None     # and where the results lie in it


class PythonStage:
    def __init__(self, call: Call, workers: int, batch_size: int, name_of: Callable[[int], str]) -> None:
        self.call = call
        self.name_of = name_of               # the file or item of a sample, by its index
        self.workers = workers
        self.memory = _engine.SharedRegion() if workers else None
        self.form: Any = None                # of results; None until the first one
        self.blocks_limit = 0                # bytes; set when the engine has its share
        self.limit_for: Callable[[int], int]  # the memory_limit that leaves this number of bytes for results
        self.blocks_bytes = self.blocks_peak = self._block_bytes = 0
        self._free_blocks: list[Block] = []
        self._row_limit = batch_size
        self.timeout_s = 0.0                 # without any row finished; 0 waits for ever
        self._items = 0
        self._tasks: dict[int, Task] = {}    # by slot
        self._left: dict[int, Task] = {}     # those that nobody wants, while a worker may have a row of them
        self._work = 0, 0.0
        self._deaths = 0
        self._rows_at_death = -1
        self._server: ServerOfWorkers | None = None
        if workers:
            self._start()

    # ---- the life of a batch

    def submit(self, slab: Any, place: Any) -> Task:
        """Gives a batch to the workers. The first one waits for its first row, whose result tells shape and type."""
        task = Task(slab, place)
        task.rows = _rows_of(slab, self.call)
        if slab.size == 0:
            if self.form is not None and not is_in_place(self.form):
                task.rows.outputs = [None if leaf.dtype is None else numpy.empty((0, *leaf.shape), leaf.array_dtype) for leaf in self.form[1]]
            return task
        try:
            if self.form is None:
                self._probe(task)
            else:
                self._make_room(task)
            if self.workers and self.form is not None and task.first < slab.size:
                self._publish(task, task.first, slab.size)
        except BaseException:
            self.give_up(task)
            raise
        return task

    def finish(self, task: Task) -> None:
        """Waits until every row of the batch is finished."""
        if task.slab.size == 0 or self.form is None:  # no row gave a result
            return
        if not self.workers:
            for row in range(task.first, task.slab.size):
                self._run_here(task, row)
        elif task.slot is not None:
            self._await(task)
            self._release(task)
        self._clear_rows_without_sample(task)

    def give_up(self, task: Task) -> None:
        """Nobody wants the batch. A worker may still have a row of it: its memory is kept until that is finished."""
        if task.slot is not None and self._server is not None:
            self._server.board.cancel(task.slot)
            self._left[task.slot] = self._tasks.pop(task.slot)
            task.slot = None

    def results(self, task: Task) -> list[Any]:
        """The arrays of results, whole batches; None for objects. Only where results do not lie in place."""
        return list(task.rows.outputs)

    def expect(self, form: Any) -> None:
        """Results have this form, which an earlier run decided. No batch may be with the workers that is still wanted."""
        if form is None or form == self.form:
            return
        self.form, self._block_bytes = form, 0

    # ---- inside

    def _probe(self, task: Task) -> None:
        for row in range(task.slab.size):
            task.first = row + 1
            if not task.rows.is_given(row, self.call):
                continue
            result = self._first_result(task, row)
            if result is None:
                continue
            try:
                form = form_of(task.rows, row, self.call, result[0])
            except Exception as error:
                task.failures[row] = PackedError(error)
                continue
            self.form = form
            self._make_room(task)
            objects = task.rows.write(row, self.call, result[0])
            if objects is not None:
                task.objects[row] = objects
            return

    def _first_result(self, task: Task, row: int) -> tuple[Any] | None:
        """None: it failed, and the failure is noted."""
        if not self.workers:
            try:
                with OwnRandom():
                    return (task.rows.run(row, self.call),)
            except (Exception, SystemExit) as error:  # as in workers
                task.failures[row] = PackedError(error)
                return None
        self._publish(task, row, row + 1)
        self._await(task)
        self._release(task)
        result = task.objects.pop(row, None)
        return None if result is None else (result[0],)

    def _run_here(self, task: Task, row: int) -> None:
        if not task.rows.is_given(row, self.call):
            return
        try:
            with OwnRandom():
                objects = task.rows.run(row, self.call)
            if objects is not None:
                task.objects[row] = objects
        except (Exception, SystemExit) as error:
            task.failures[row] = PackedError(error)

    def _make_room(self, task: Task) -> None:
        """The arrays that results of this batch are written to."""
        task.rows.form = self.form
        if is_in_place(self.form):
            return
        leaves: tuple[Leaf, ...] = self.form[1]
        size, count = 0, task.slab.size
        places: list[tuple[str, int, tuple[int, ...]] | None] = []
        for leaf in leaves:
            if leaf.dtype is None:
                places.append(None)
                continue
            places.append((leaf.array_dtype, size, (count, *leaf.shape)))
            size += -(-int(numpy.prod((self._row_limit, *leaf.shape))) * numpy.dtype(leaf.array_dtype).itemsize // _LINE) * _LINE
        if self.workers:
            block = self._block(max(size, 1))
            # Every array over it holds this one, since its own base is no array: the block comes back when the last of them is gone.
            whole = numpy.ndarray(block.size, numpy.uint8, block.map)
            weakref.finalize(whole, self._free_blocks.append, block).atexit = False
            task.block = block, places
        else:
            whole = numpy.empty(max(size, 1), numpy.uint8)
        task.rows.outputs = [None if place is None else numpy.ndarray(place[2], place[0], whole, place[1]) for place in places]

    def has_room(self) -> bool:
        """Whether the results of one more batch have room now."""
        if not self.workers or self.form is None or is_in_place(self.form) or any(block.size >= self._block_bytes for block in self._free_blocks):
            return True
        return self.blocks_bytes + self._block_bytes <= self.blocks_limit

    def _block(self, size: int) -> Block:
        assert self.memory is not None
        for number, block in enumerate(self._free_blocks):
            if block.size >= size:
                return self._free_blocks.pop(number)
        while self._free_blocks and self.blocks_bytes + size > self.blocks_limit:  # too small for results of another form
            self.blocks_bytes -= self._free_blocks.pop().size
        if self.blocks_bytes + size > self.blocks_limit:
            needed = max(2 * size, self.blocks_bytes + size)  # the loop holds one batch while it asks for the next
            raise UsageError(f"no room for a batch of what the callable returns ({_engine.format_bytes(size)}): "
                             f"memory_limit leaves {_engine.format_bytes(self.blocks_limit)} for such batches, and {_engine.format_bytes(self.blocks_bytes)} are in use",
                             f"memory_limit=\"{-(-self.limit_for(needed) // 2**20)}MiB\" is enough; or lower batch_size=, or drop each batch before asking for many more",
                             option="memory_limit")
        block = Block(self.memory, size)
        self._block_bytes = block.size
        self.blocks_bytes += block.size
        self.blocks_peak = max(self.blocks_peak, self.blocks_bytes)
        return block

    def _clear_rows_without_sample(self, task: Task) -> None:
        if self.call.kind == "dataset":
            return
        for row in numpy.flatnonzero(task.rows.valid[: task.slab.size] == 0):
            self.clear(task, int(row))

    def clear(self, task: Task, row: int) -> None:
        """Zeros where the result of this row would be."""
        arrays = task.rows.inputs.values() if is_in_place(self.form) else task.rows.outputs
        for array in arrays:
            if array is not None:
                array[row] = 0

    # ---- the workers

    def _publish(self, task: Task, first: int, rows: int) -> None:
        text = pickle.dumps(_text_of(task), pickle.HIGHEST_PROTOCOL)
        if len(text) > _TEXT_BYTES:
            raise UsageError(f"what the callable returns has too many parts: {len(task.rows.outputs)} arrays for each sample",
                             "return fewer, larger arrays, or python_workers=0", option="python_workers")
        task.slot = self._free_slot()
        self._items += 1
        task.item = self._items
        self._tasks[task.slot] = task
        self._usable().board.publish(task.slot, task.item, first, rows, text)

    def _release(self, task: Task) -> None:
        assert task.slot is not None
        del self._tasks[task.slot]
        task.slot = None

    def free_left(self) -> None:
        """Lets go of batches that nobody wants, where no worker has a row of them any more."""
        if self._left:
            board = self._usable().board
            for slot in [slot for slot in self._left if board.is_finished(slot)]:
                del self._left[slot]

    def await_left(self) -> bool:
        """Waits until one of them is let go. False if there is none."""
        if not self._left:
            return False
        count, since = len(self._left), time.monotonic()
        while len(self._left) == count:
            slot, task = next(iter(self._left.items()))
            self._usable().board.wait(slot, _ASK_S)
            self._drain()
            self.free_left()
            if len(self._left) == count:
                self._check_time(since, task)
        return True

    def _free_slot(self) -> int:
        while True:
            self.free_left()
            for slot in range(_SLOTS):
                if slot not in self._tasks and slot not in self._left:
                    return slot
            self.await_left()

    def _await(self, task: Task) -> None:
        """Until every row that was published is finished, and all that workers said of them has arrived."""
        server, since, seen = self._usable(), time.monotonic(), -1
        slot = task.slot
        assert slot is not None
        while True:
            server.board.wait(slot, _ASK_S)
            is_finished = server.board.is_finished(slot)  # a worker sends what it has to say before it finishes the row
            self._drain()
            if is_finished:
                self._note_silent_failures(task, slot)
                return
            rows = server.rows_done()
            if rows != seen:
                since, seen = time.monotonic(), rows
            self._check_time(since, task)

    def _note_silent_failures(self, task: Task, slot: int) -> None:
        """A message may be lost: where its worker died, or where Ctrl-C came while it was read."""
        board = self._usable().board
        for row in range(task.slab.size):
            if board.outcome(slot, row) in (_FAILED, _LOST):
                task.failures.setdefault(row, "the callable failed, and its worker could not say why")

    def _check_time(self, since: float, task: Task) -> None:
        if not self.timeout_s or time.monotonic() - since < self.timeout_s:
            return
        board, slot = self._usable().board, next(slot for slot, other in {**self._left, **self._tasks}.items() if other is task)
        running = [row for row in range(task.slab.size) if board.outcome(slot, row) >= _FIRST_WORKER]
        what = self._named_row(task, running[0]) + f", in python worker {board.outcome(slot, running[0]) - _FIRST_WORKER}" if running else "a worker"
        raise Error(f"no Python callable has returned for {self.timeout_s:g} s: batch {task.slab.step} waits for {what}",
                    "look whether the callable waits for something, or raise timeout=", "unavailable")

    def _named_row(self, task: Task, row: int) -> str:
        return f"row {row} (`{one_line(self.name_of(int(task.rows.indices[row])))}`, sample id {task.rows.ids[row]})"

    def _drain(self) -> None:
        """Takes what the workers and their server have said."""
        server = self._usable()
        by_item = {task.item: task for task in self._tasks.values()}
        for channel in server.channels:
            for kind, item, row, value in channel.waiting():
                task = by_item.get(item)
                if task is None:
                    continue
                if kind == "failed":
                    task.failures[row] = value
                else:
                    task.objects[row] = [value] if kind == "result" else value
        for kind, number, pid, status in server.news():
            if kind == "ended":
                self._lose(server, number, pid, status)

    def _lose(self, server: ServerOfWorkers, number: int, pid: int, status: int) -> None:
        """A worker has ended. Its row, if it had one, is a bad sample; another worker takes its place."""
        how = how_ended(status)
        claim = server.board.lose(number)
        if claim is not None:
            task = self._tasks.get(claim[0])
            if task is not None and task.item == claim[2]:
                task.failures[claim[1]] = f"python worker {number} (pid {pid}) {how}"
        done = server.rows_done()
        self._deaths = self._deaths + 1 if done == self._rows_at_death else 1
        self._rows_at_death = done
        if self._deaths > _MOST_DEATHS + self.workers:
            raise Error(f"python workers end again and again: the last one (pid {pid}) {how}", "look at the messages above; python_workers=0 runs the callable in this process",
                        "unavailable")
        server.restart(number)

    def _usable(self) -> ServerOfWorkers:
        if self._server is None:
            raise Error("cannot run Python callables: their workers have been closed", kind="usage")
        return self._server

    def _start(self) -> None:
        assert self.memory is not None
        try:
            self._server = ServerOfWorkers(self.call, self.workers, self.memory, slots=_SLOTS, rows=self._row_limit, text_bytes=_TEXT_BYTES)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            least, limit = 2 * self.workers + _FILES_OF_SERVER, resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            raise Error(f"python_workers={self.workers} cannot start: {error.strerror}; this process may have {limit:,} open",
                        f"raise the limit with `ulimit -n {limit + least}` before the program starts, or use fewer python_workers", "unavailable", "python_workers") from error

    def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()

    # ---- what is known

    def worker_bytes(self) -> int:
        """Memory of the workers and their server, shared pages counted in parts; memory of batches is not counted."""
        return 0 if self._server is None else sum(own_bytes(pid) for pid in self._server.pids)

    def work(self) -> tuple[int, float]:
        """Rows that workers have finished, and seconds in callables."""
        if self._server is None:
            return self._work
        rows = [self._server.board.work_of(number) for number in range(self.workers)]
        self._work = sum(row[0] for row in rows), sum(row[1] for row in rows) * 1e-9
        return self._work

    @property
    def pids(self) -> list[int]:
        """Of the server, and of the workers."""
        return [] if self._server is None else self._server.pids


# ---- batches as workers are told of them

def _rows_of(slab: Any, call: Call) -> Rows:
    packs = bool(slab.packs_rows)
    inputs = {} if call.kind == "dataset" else {name: slab.numpy(number) for number, name in enumerate(slab.tensor_names)}
    return Rows(slab.epoch, slab.ids(), slab.indices(), slab.valid(), inputs, slab.places() if packs else None, slab.lengths() if packs else None)


def _text_of(task: Task) -> dict[str, Any]:
    address, rows = task.slab.slab_address, task.rows

    def place(array: numpy.ndarray | None) -> Any:
        if array is None:
            return None
        return array.dtype.str, array.__array_interface__["data"][0] - address, array.shape, array.strides

    return dict(
        epoch=rows.epoch, slab=(task.slab.shared_offset, task.slab.slab_bytes), ids=place(rows.ids), indices=place(rows.indices), valid=place(rows.valid),
        inputs={name: place(array) for name, array in rows.inputs.items()}, places=place(rows.places), lengths=place(rows.lengths), form=rows.form,
        block=None if task.block is None else (task.block[0].offset, task.block[0].size), outputs=None if task.block is None else task.block[1])
