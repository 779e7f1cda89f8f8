"""Lines of JSON in files that are mapped, one chain of files per process.

A mapped page needs no descriptor, so a job that closes them all loses nothing (and no line lands in a file that got the
number next); and the kernel keeps it when the process is killed. The space is allocated beforehand: a full disk is an
error here, never a SIGBUS later. A file starts small and grows; full, it is followed by the next one, and only the last
few are kept. The reader stops at the first zero byte.
"""

import ctypes
import mmap
import os
import threading
import time

FIRST_BYTES = 1 << 16
SEGMENT_BYTES = 1 << 20
SEGMENTS_KEPT = 16
_POPULATE = getattr(mmap, "MAP_POPULATE", 0x8000)  # pages are there beforehand, and not faulted in by a step


class _Mapping:
    """A shared mapping of a file's first bytes. Python's own would keep a copy of the descriptor, and close that number
    later, whosever it is by then."""

    _c = ctypes.CDLL(None, use_errno=True)
    _c.mmap.restype = ctypes.c_void_p
    _c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    _c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    def __init__(self, fd, size):
        self._size = size
        self._address = self._c.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _POPULATE, fd, 0)
        if self._address in (None, ctypes.c_void_p(-1).value):
            self._address = None
            raise OSError(ctypes.get_errno(), "mmap")
        self.view = memoryview((ctypes.c_char * size).from_address(self._address)).cast("B")

    def close(self):
        address, self._address = self._address, None
        self.view = None
        if address is not None:
            self._c.munmap(address, self._size)


class Recorder:
    """Any thread may write. After a fork the child starts files of its own."""

    def __init__(self, folder, also=None):
        self.folder = folder  # None: nothing is written here
        self.also = also      # a second recorder that gets the same lines
        self.hello = None     # called with nothing when a process writes its first line; returns that line
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self):
        # The parent's mapping is left as it is: closing it here would only cost time.
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._map = None
        self._path = None
        self._used = self._size = 0
        self._segment = 0
        self._born = time.monotonic_ns()
        self.off = self.folder is None

    def write(self, line):
        """`line` without its end. Never raises."""
        if self.also is not None:
            self.also.write(line)
        if self.off:
            return
        try:
            if self._pid != os.getpid():
                self._reset()
            data = line.encode("ascii", "replace") + b"\n"
            with self._lock:
                if self._map is None:
                    self._open(FIRST_BYTES)
                    if self.hello is not None:
                        self.write(self.hello())
                end = self._used + len(data)
                if end >= self._size:  # one zero byte stays
                    self._make_room(len(data))
                    end = self._used + len(data)
                self._map.view[self._used:end] = data
                self._used = end
        except BaseException:
            self.off = True

    def close(self):
        """Gives back what was allocated and not used. Later lines start a new file."""
        if self.also is not None:
            self.also.close()
        try:
            with self._lock:
                if self._map is None or self._pid != os.getpid():
                    return
                self._map.close()
                self._map = None
                os.truncate(self._path, self._used)
                self._segment += 1
        except BaseException:
            self.off = True

    def _open(self, size):
        self._path = self._name(self._segment)
        self._used = 0
        self._grow(size)

    def _name(self, segment):
        return os.path.join(self.folder, "%d-%d-%06d.jsonl" % (self._pid, self._born, segment))

    def _grow(self, size):
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, size)
            grown = _Mapping(fd, size)
        finally:
            os.close(fd)
        if self._map is not None:
            self._map.close()
        self._map = grown
        self._size = size

    def _make_room(self, least):
        if self._size < SEGMENT_BYTES:
            self._grow(SEGMENT_BYTES)
            if self._used + least < self._size:
                return
        if least >= SEGMENT_BYTES:
            raise ValueError("a line longer than a file")
        self._map.close()
        self._map = None
        os.truncate(self._path, self._used)
        self._segment += 1
        if self._segment >= SEGMENTS_KEPT:
            try:
                os.unlink(self._name(self._segment - SEGMENTS_KEPT))
            except OSError:
                pass  # read and removed already
        self._open(SEGMENT_BYTES)
