"""The process that python_workers= starts, and the workers that it forks. It imports the user's modules once, so that the workers share their memory.

The loader's process never forks: this one is a new interpreter, and has no threads when it forks. It ends when the loader's process does, and its workers with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import os
import pickle
import select
import signal
import socket
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import numpy

from . import _engine
from .python_rows import Call, PackedError, Rows

__all__ = ["Channel", "main", "mapped_array", "refuse_while_main_is_imported"]

_PART = 60_000        # bytes of a datagram
_HEAD = struct.Struct("<III")
_CHECK_S = 1.0        # how often the server looks whether its parent lives
_END_S = 1.0          # how long a callable may go on after close()
_MOST_MAPPINGS = 64   # of slabs, in a worker
_PR_SET_PDEATHSIG = 1

_importing_main = False


class NoGuard(BaseException):
    """The main script makes a loader while it is imported. No `except Exception` of the script stops it."""


def refuse_while_main_is_imported() -> None:
    """Ends the import of a main script that would start workers of its own, in the process that imports it for workers."""
    if _importing_main:
        raise NoGuard


class Channel:
    """Objects over a socket that keeps messages whole: one that was cut by the death of its sender is dropped."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._number = 0
        self._parts: list[bytes] = []

    def send(self, value: Any) -> None:
        data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        self._number = (self._number + 1) % 2**32
        total = max(1, -(-len(data) // _PART))
        for part in range(total):
            self.socket.send(_HEAD.pack(self._number, part, total) + data[part * _PART : (part + 1) * _PART])

    def receive(self, timeout_s: float | None) -> Any:
        """The next object; None after ``timeout_s``. EOFError where the other end is gone."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not _readable([self.socket], left):
                return None
            try:
                message = self.socket.recv(_HEAD.size + _PART)
            except ConnectionError:
                raise EOFError from None
            if not message:
                raise EOFError
            _, part, total = _HEAD.unpack_from(message)
            if part == 0:
                self._parts = []
            if part != len(self._parts):  # the rest of a message whose beginning was dropped
                continue
            self._parts.append(message[_HEAD.size :])
            if part + 1 == total:
                data, self._parts = b"".join(self._parts), []
                return pickle.loads(data)

    def waiting(self) -> Iterator[Any]:
        """The objects that have arrived; none from an end that is gone."""
        try:
            while (value := self.receive(0)) is not None:
                yield value
        except EOFError:
            return


def _readable(ends: list[socket.socket], timeout_s: float | None) -> list[socket.socket]:
    """Those that can be read, or have ended. select() would refuse descriptors from 1024 on."""
    poll = select.poll()
    for end in ends:
        poll.register(end, select.POLLIN)
    numbers = {number for number, _ in poll.poll(None if timeout_s is None else max(0, int(timeout_s * 1000)))}
    return [end for end in ends if end.fileno() in numbers]


def mapped_array(fd: int, offset: int, size: int) -> numpy.ndarray:
    """A range of shared memory as bytes."""
    return numpy.frombuffer(mmap.mmap(fd, size, offset=offset), numpy.uint8)


# ---- the server

def main(control_fd: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the loader's to handle
    control = Channel(socket.socket(fileno=control_fd))
    try:
        job = control.receive(None)
        call = _loaded(job)
    except NoGuard:
        control.send(("refused", "guard", None))
        return
    except EOFError:
        return
    except BaseException as error:
        with contextlib.suppress(OSError):
            control.send(("refused", "import", PackedError(error)))
        return
    gc.collect()
    gc.freeze()  # objects that exist now stay in pages that all workers share
    _Server(control, job, call).run()


def _loaded(job: dict[str, Any]) -> Call:
    """The callable. The main script is imported only where the pickle names it."""
    global _importing_main
    from multiprocessing import process, spawn

    process.current_process()._inheriting = True  # type: ignore[attr-defined]  # so that multiprocessing refuses to start processes meanwhile
    _importing_main = True
    try:
        preparation = job["preparation"]
        if not job["needs_main"]:
            preparation = {key: value for key, value in preparation.items() if not key.startswith("init_main")}
        spawn.prepare(preparation)
        call = pickle.loads(job["call"])
    finally:
        _importing_main = False
        del process.current_process()._inheriting  # type: ignore[attr-defined]
    return call


class _Server:
    def __init__(self, control: Channel, job: dict[str, Any], call: Call) -> None:
        self._control, self._job, self._call = control, job, call
        self._parent = os.getppid()
        self._children: dict[int, int] = {}  # pid to number

    def run(self) -> None:
        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        for number in range(self._job["workers"]):
            self._start(number)
        self._control.send(("ready", [pid for pid, _ in sorted(self._children.items(), key=lambda child: child[1])]))
        try:
            while self._serve(reader):
                pass
        except EOFError:
            self._kill_all()
        except OSError:  # the loader is gone while it is told something
            self._kill_all()
        self._end()

    def _serve(self, reader: socket.socket) -> bool:
        readable = _readable([self._control.socket, reader], _CHECK_S)
        if os.getppid() != self._parent:
            raise EOFError
        if reader in readable:
            with contextlib.suppress(BlockingIOError):
                reader.recv(4096)
        for pid, number, status in self._ended():
            self._control.send(("ended", number, pid, status))
        if self._control.socket not in readable:
            return True
        message = self._control.receive(0)
        if message is None:
            return True
        if message[0] == "stop":
            return False
        self._control.send(("started", message[1], self._start(message[1])))
        return True

    def _ended(self) -> list[tuple[int, int, int]]:
        ended = []
        while self._children:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid in self._children:
                ended.append((pid, self._children.pop(pid), status))
        return ended

    def _start(self, number: int) -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that imported libraries have started
            pid = os.fork()
        if pid != 0:
            self._children[pid] = number
            return pid
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            server = os.getppid()
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() == server:
                _work(number, self._job, self._call)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _kill_all(self) -> None:
        for pid in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _end(self) -> None:
        until = time.monotonic() + _END_S
        while self._children and time.monotonic() < until:
            if not self._ended():
                time.sleep(0.005)
        self._kill_all()
        os._exit(0)


# ---- a worker

def _work(number: int, job: dict[str, Any], call: Call) -> None:
    _one_thread_each()
    memory_fd, size = job["memory_fd"], job["board_size"]
    board = _engine.RowBoard(mapped_array(memory_fd, *job["board"]), **size)
    channel = Channel(socket.socket(fileno=os.dup(job["channel_fds"][number])))
    batches = _Batches(memory_fd)
    clock = time.perf_counter_ns
    while True:
        claim = board.claim(number, 60.0)
        if claim is None:
            if board.is_closed:
                return
            continue
        slot, row, item = claim
        started = clock()
        is_good = True
        try:
            rows = batches.at(board, slot, item)
            result = rows.run(row, call)
            if rows.form is None:
                channel.send(("result", item, row, result))
            elif result is not None:
                channel.send(("objects", item, row, result))
        except BaseException as error:
            is_good = False
            channel.send(("failed", item, row, PackedError(error)))
        board.finish(number, slot, row, item, is_good, clock() - started)


def _one_thread_each() -> None:
    """Libraries with threads of their own use one here, as in workers of torch's DataLoader: there are as many workers as wanted."""
    torch, cv2 = sys.modules.get("torch"), sys.modules.get("cv2")
    if torch is not None and hasattr(torch, "set_num_threads"):
        torch.set_num_threads(1)
    if cv2 is not None and hasattr(cv2, "setNumThreads"):
        cv2.setNumThreads(0)


class _Batches:
    """The batches of the board, as arrays over shared memory."""

    def __init__(self, memory_fd: int) -> None:
        self._memory_fd = memory_fd
        self._mapped: dict[tuple[int, int], numpy.ndarray] = {}
        self._rows: dict[int, tuple[int, Rows]] = {}

    def at(self, board: _engine.RowBoard, slot: int, item: int) -> Rows:
        known = self._rows.get(slot)
        if known is None or known[0] != item:
            known = self._rows[slot] = item, self._made(pickle.loads(board.text(slot)))
        return known[1]

    def _made(self, text: dict[str, Any]) -> Rows:
        slab = self._range(*text["slab"])

        def array(place: tuple[str, int, tuple[int, ...], tuple[int, ...] | None] | None) -> Any:
            if place is None:
                return None
            dtype, offset, shape, strides = place
            return numpy.ndarray(shape, dtype, slab, offset, strides)

        rows = Rows(text["epoch"], array(text["ids"]), array(text["indices"]), array(text["valid"]),
                    {name: array(place) for name, place in text["inputs"].items()}, array(text["places"]), array(text["lengths"]), text["form"])
        if text["block"] is not None:
            block = self._range(*text["block"])
            rows.outputs = [None if place is None else numpy.ndarray(place[2], place[0], block, place[1]) for place in text["outputs"]]
        return rows

    def _range(self, offset: int, size: int) -> numpy.ndarray:
        known = self._mapped.pop((offset, size), None)
        if known is None:
            known = mapped_array(self._memory_fd, offset, size)
            while len(self._mapped) >= _MOST_MAPPINGS:
                self._mapped.pop(next(iter(self._mapped)))
        self._mapped[offset, size] = known
        return known
