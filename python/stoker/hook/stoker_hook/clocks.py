"""The clocks of one thread: wall (the same in all processes), its CPU time, and how long it stood ready without a core."""

import os
import resource
import sys
import threading
import time

wall = time.monotonic_ns
cpu = time.thread_time_ns
process = time.process_time_ns

_SCHEDSTAT = "/proc/thread-self/schedstat"


def delay():
    """Nanoseconds for which this thread was ready to run and had no core; 0 where the kernel does not say. Opened again
    each time: a descriptor kept open may be closed, and its number reused, by the job."""
    try:
        fd = os.open(_SCHEDSTAT, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, 96).split()[1])
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError):
        return 0


_counts_switches = None  # whether the kernel counts them; asked once


def switches():
    """How often this thread has given up its core to wait: for a disk, a network, a lock, or while it slept. If the
    number stays the same, the thread never waited, and time without CPU was time without a core. None where the kernel
    does not say."""
    global _counts_switches
    if _counts_switches is None:
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        time.sleep(1e-5)
        _counts_switches = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw > before
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw if _counts_switches else None


def children():
    """CPU time of processes that this one has started and waited for, in nanoseconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((used.ru_utime + used.ru_stime) * 1e9)


def of_thread(thread):
    """CPU time of another thread of this process; 0 once it has ended."""
    try:
        return time.clock_gettime_ns(time.pthread_getcpuclockid(thread.ident)) if thread.is_alive() else 0
    except (OSError, TypeError):
        return 0


def nameless_threads():
    """CPU time of the native threads of this process that carry its own name, in nanoseconds. Thread pools of OpenMP and
    BLAS are such; those of video decoders and of Rust libraries have names of their own. 0 where the kernel does not say."""
    of_python = {thread.native_id for thread in threading.enumerate()}
    total = 0
    try:
        own = (_first_line("/proc/self/comm"), os.path.basename(sys.executable)[:15], "python", "pt_")
        for task in os.listdir("/proc/self/task"):
            folder = "/proc/self/task/" + task
            if int(task) not in of_python and _first_line(folder + "/comm").startswith(own):
                total += int(_first_line(folder + "/schedstat").split()[0])
    except (OSError, ValueError, IndexError):
        pass
    return total


def _first_line(path):
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 96).decode("ascii", "replace").split("\n")[0]
    finally:
        os.close(fd)
