"""The server of python_workers, as the loader's process sees it: started, told what to run, asked how workers ended, and closed."""

from __future__ import annotations

import contextlib
import multiprocessing.spawn
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
import weakref
from typing import Any

from . import _engine
from .errors import Error, UsageError, one_line
from .python_rows import Call
from .python_server import Channel, mapped_array

__all__ = ["ServerOfWorkers", "how_ended", "own_bytes"]

_ASK_S = 0.05           # how often a wait lets signals in and looks whether the server lives
_START_S = 300.0        # for the imports of the user's modules
_END_S = 5.0
_STDIN = "<stdin>"      # the main script of `python -`
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_SERVER = "import sys; sys.path[:] = eval(sys.argv[2]); from stoker.python_server import main; main(int(sys.argv[1]))"


class ServerOfWorkers:
    """The server of the workers, as the loader's process sees it."""

    def __init__(self, call: Call, workers: int, memory: _engine.SharedRegion, *, slots: int, rows: int, text_bytes: int) -> None:
        """``slots``, ``rows`` and ``text_bytes``: of the board; items of at most ``rows`` rows."""
        pickled = _pickled(call)
        preparation = _preparation()
        self._size = dict(slots=slots, rows=rows, workers=workers, text_bytes=text_bytes)
        size = -(-_engine.RowBoard.bytes_for(**self._size) // 4096) * 4096
        place = memory.take(size), size
        self.board = _engine.RowBoard(mapped_array(memory.fd, *place), **self._size)
        self._workers = workers
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(workers)]
        self._control = Channel(mine)
        self.channels = [Channel(pair[0]) for pair in pairs]
        ends = [its, *(pair[1] for pair in pairs)]
        environment = {**dict.fromkeys(_ONE_THREAD, "1"), **os.environ}
        command = [os.fsdecode(multiprocessing.spawn.get_executable()), *subprocess._args_from_interpreter_flags(),  # type: ignore[attr-defined]
                   "-c", _SERVER, str(its.fileno()), repr([os.fspath(path) for path in sys.path])]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[*(end.fileno() for end in ends), memory.fd], env=environment)
        self._end = weakref.finalize(self, _end_server, self._process, self._control, self.board, os.getpid())
        self.pids = [self._process.pid]
        try:
            self._tell(dict(
                call=pickled, preparation=preparation, needs_main=b"__main__" in pickled or b"__mp_main__" in pickled, workers=workers, memory_fd=memory.fd,
                board=place, board_size=self._size, channel_fds=[pair[1].fileno() for pair in pairs]))
            self._await_start(call)
        except BaseException:
            self.close(at_once=True)
            raise
        finally:
            for end in ends:
                end.close()

    def _tell(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # a server that has ended is noticed where its answer is read
            self._control.send(message)

    def _await_start(self, call: Call) -> None:
        until = time.monotonic() + _START_S
        while time.monotonic() < until:
            try:
                message = self._control.receive(_ASK_S)
            except EOFError:
                message = ("refused", "end", None)
            if message is None and self._process.poll() is not None:
                message = ("refused", "end", None)
            if message is None:
                continue
            if message[0] == "ready":
                self.pids += message[1]
                return
            raise _refusal(message, call, self._process)
        raise Error(f"python_workers={self._workers}: the workers have not started within {_START_S:g} s", "look at what the modules of the callable do when they are imported",
                    "unavailable")

    def news(self) -> list[tuple[str, int, int, int]]:
        news = []
        try:
            while (message := self._control.receive(0)) is not None:
                if message[0] == "started":
                    self.pids[1 + message[1]] = message[2]
                else:
                    news.append(message)
        except EOFError:
            status = self._process.wait(_END_S)
            how = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
            raise Error(f"the server of the python workers (pid {self._process.pid}) {how}", "make the loader again; python_workers=0 runs the callable in this process",
                        "unavailable") from None
        return news

    def restart(self, number: int) -> None:
        self._tell(("again", number))

    def rows_done(self) -> int:
        return sum(self.board.work_of(number)[0] for number in range(self._workers))

    def close(self, at_once: bool = False) -> None:
        if at_once:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        self._end()
        for channel in self.channels:
            channel.socket.close()


def _end_server(process: subprocess.Popen[bytes], control: Channel, board: _engine.RowBoard, owner: int) -> None:
    if os.getpid() != owner:  # a forked child: the workers are its parent's
        return
    board.close()
    with contextlib.suppress(OSError):
        control.send(("stop",))
    control.socket.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()  # its workers end with it
        process.wait()


def _refusal(message: Any, call: Call, process: subprocess.Popen[bytes]) -> Exception:
    _, why, packed = message
    name = _name_of(call.function)
    if why == "guard":
        return UsageError("python_workers= imports the main script in another process, and the script makes its loader when it is imported",
                          "put the code that makes the loader below `if __name__ == \"__main__\":`, or use python_workers=0", option="python_workers")
    if why == "end":
        status = process.wait()
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return UsageError(f"python_workers= imports what {name} needs in another process, and that process ended ({how})",
                          "put the code of the main script below `if __name__ == \"__main__\":`, or use python_workers=0", option="python_workers")
    if packed.name == "AttributeError" and "'__main__'" in packed.text or packed.name == "FileNotFoundError" and _STDIN in packed.text:
        return UsageError(f"{name} is defined in an interactive session, a notebook or a script from stdin, which another process cannot import",
                          "put it into a module, or use python_workers=0", option="python_workers")
    if packed.name == "AttributeError" and "'__mp_main__'" in packed.text:
        return UsageError(f"{name} is defined below `if __name__ == \"__main__\":`, and another process that imports the main script does not run that part",
                          "move its definition above that line or into a module, or use python_workers=0", option="python_workers")
    error = UsageError(f"python_workers= cannot import {name} in another process: {one_line(packed.text)}",
                       "put the code of the main script below `if __name__ == \"__main__\":`; python_workers=0 runs the callable in this process", option="python_workers")
    error.__cause__ = packed.exception()
    return error


def _pickled(call: Call) -> bytes:
    try:
        return pickle.dumps(call, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise UsageError(f"{_name_of(call.function)} cannot be sent to a worker process: {one_line(f'{type(error).__name__}: {error}')}",
                         "define it at the top level of a module (no lambda, no function inside a function), or use python_workers=0", option="python_workers") from error


def _preparation() -> dict[str, Any]:
    """What a new interpreter needs to be like this one: path, arguments, folder, main script."""
    try:
        preparation = multiprocessing.spawn.get_preparation_data("stoker python worker")
    except RuntimeError:  # this process is itself being imported into
        raise UsageError("python_workers= cannot start processes while the main script is imported by another process",
                         "put the code that makes the loader below `if __name__ == \"__main__\":`, or use python_workers=0", option="python_workers") from None
    preparation.pop("authkey", None)
    return preparation


def _name_of(function: Any) -> str:
    name = getattr(function, "__qualname__", None)
    return f"the callable {name}" if name else f"the {type(function).__name__}"


def how_ended(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in signal.Signals._value2member_map_ else str(number)
        if number == signal.SIGKILL:
            return f"was killed by signal {number} ({name}), most likely by the kernel because memory ran out: use fewer python_workers, or less memory in the callable"
        return f"was killed by signal {number} ({name}): look for a crash in a library that the callable uses"
    return f"ended with exit status {os.waitstatus_to_exitcode(status)}"


def own_bytes(pid: int) -> int:
    """Memory of a process, pages that it shares counted in parts, without the shared memory of batches."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii", errors="replace") as file:
            facts = dict(line.split(":", 1) for line in file if ":" in line)
        whole, shared = (int(facts.get(word, "0 kB").split()[0]) * 1024 for word in ("Pss", "Pss_Shmem"))
        return max(0, whole - shared)
    except (OSError, ValueError):
        return 0
