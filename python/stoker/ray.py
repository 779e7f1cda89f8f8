"""Packs made by a Ray cluster: each task makes one part, and a last one joins them.

::

    import stoker.ray

    stoker.ray.pack("/shared/train", "/shared/train.pack", parts=16)

or ``stoker pack /shared/train /shared/train.pack --ray auto --shard-size 1GB``. Needs ``pip install stoker[ray]``, a
cluster that runs, Stoker on its nodes, and a disk that all of them share.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from .errors import Error, UsageError, from_engine

__all__ = ["pack"]

_CANCEL_S = 30  # that cancelled tasks have to stop their programs


def pack(source: str, dest: str, *, parts: int | None = None, arguments: Sequence[str] = (), num_cpus: float = 1, retries: int = 3,
         address: str = "auto", progress: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Makes the pack ``dest`` of ``source`` on a Ray cluster that runs; returns what ``stoker pack --join --json`` says.

    Args:
      source, dest: paths that every node sees.
      parts: how many tasks; default: one for each ``num_cpus`` CPUs of the cluster.
      arguments: further arguments of ``stoker pack``, such as ``["--kind", "raw", "--size", "256"]``.
      num_cpus: CPUs of a task, and its threads. Ray runs as many tasks at once as its nodes have CPUs for.
      retries: how often Ray starts a task again whose node or process died. It resumes where it stopped.
      address: of the cluster, where Ray is not initialised yet.
      progress: gets a line for each part that is made.

    Ctrl-C and an error of a part cancel all tasks. The same call resumes where they stopped.
    """
    try:
        import ray
    except ImportError:
        raise UsageError("stoker.ray needs Ray, which is not installed", "pip install 'stoker[ray]'") from None
    if parts is not None and parts < 1:
        raise UsageError(f"parts is at least 1, not {parts}")
    if num_cpus <= 0:
        raise UsageError(f"num_cpus is above 0, not {num_cpus}")
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False)
        except ConnectionError as error:
            raise Error(f"cannot reach a Ray cluster at address={address!r}: {error}", "start one: `ray start --head`", "unavailable") from error
        except RuntimeError as error:  # versions that differ
            raise Error(f"cannot use the Ray cluster at address={address!r}: {' '.join(str(error).split())}",
                        "run this with the versions of Python and Ray of the cluster", "unsupported") from error
    count = parts or max(1, int(ray.cluster_resources().get("CPU", 1) // num_cpus))
    tell = progress or (lambda text: None)
    task = ray.remote(_run).options(num_cpus=num_cpus, max_retries=retries, retry_exceptions=[OSError])
    threads = [] if any(str(word).partition("=")[0] == "--num-workers" for word in arguments) else ["--num-workers", str(max(1, int(num_cpus)))]
    command = [os.fspath(source), os.fspath(dest), *map(str, arguments), *threads]
    waiting: dict[Any, str] = {}
    mark: str | None = None
    aside = ray.remote(_aside).options(num_cpus=0)
    try:
        mark = _answer(aside.remote(_leave_mark, os.fspath(dest)), "a file beside the destination")
        waiting = {task.remote([*command, "--part", f"{number}/{count}"], mark): f"part {number}/{count}" for number in range(1, count + 1)}
        done = 0
        while waiting:
            (ready, *_), _ = ray.wait(list(waiting), num_returns=1)
            made = _answer(ready, waiting[ready])
            done += 1
            tell(f"{waiting.pop(ready)}: {made['count']} samples in {made['shards']} shards; {done} of {count} parts are made")
        joined = task.remote([*command, "--join"], mark)
        waiting = {joined: "the joined pack"}
        return _answer(joined, waiting[joined])
    except BaseException:
        for reference in waiting:
            ray.cancel(reference)
        # A program that still runs would hold the lock of its part against the next call.
        if waiting:
            ray.wait(list(waiting), num_returns=len(waiting), timeout=_CANCEL_S)
        raise
    finally:
        if mark is not None:
            ray.wait([aside.remote(_remove_mark, mark)], timeout=_CANCEL_S)


def _aside(work: Callable[[str], tuple[int, str, str]], path: str) -> tuple[int, str, str]:
    return work(path)


def _leave_mark(dest: str) -> tuple[int, str, str]:
    """Makes an empty file beside ``dest``, by which other nodes see that they share its disk. Its path is the answer."""
    if "://" in dest:
        return 0, "null", ""
    folder, name = os.path.split(os.path.abspath(dest))
    mark = os.path.join(folder, f".{name}.seen-{uuid.uuid4().hex[:12]}")
    try:
        open(mark, "w").close()
    except OSError as error:
        return 2, "", f"cannot write beside `{dest}` on node {platform.node()}: {error.strerror}"
    return 0, json.dumps(mark), ""


def _remove_mark(mark: str) -> tuple[int, str, str]:
    os.remove(mark)
    return 0, "null", ""


def _run(words: list[str], mark: str | None) -> tuple[int, str, str]:
    """Runs ``stoker pack`` on a node. Exit code, answer and messages."""
    if mark is not None and not os.path.exists(mark):
        return 2, "", (f"node {platform.node()} does not see `{mark}`, which another node has just made: the destination is not on a disk that all nodes share")
    process = subprocess.Popen([sys.executable, "-m", "stoker", "pack", *words, "--json", "--quiet"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, preexec_fn=_end_with_parent)
    try:
        answer, said = process.communicate()
    except BaseException:  # the task is cancelled; what was packed stays for the next one
        process.terminate()
        process.wait()
        raise
    if process.returncode < 0:
        raise OSError(f"`stoker pack` was killed by signal {-process.returncode}")
    return process.returncode, answer, said


def _end_with_parent() -> None:
    """The kernel kills this process when the worker of Ray dies: Ray starts the task again, and that needs the lock of the part."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def _answer(reference: Any, what: str) -> Any:
    import ray

    try:
        code, answer, said = ray.get(reference)
    except ray.exceptions.RayError as error:
        cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error
        raise Error(f"cannot make {what}: {str(cause).strip()}", "call it again: it resumes where it stopped", "unavailable") from error
    if code == 0:
        return json.loads(answer)
    try:
        told = json.loads(answer)["error"]
    except (ValueError, KeyError):
        raise Error(said.strip() or f"stoker pack failed with exit code {code}") from None
    raise from_engine(told["kind"], told["message"], told["hint"] or "", "")


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stoker.ray", description="Makes a pack on a Ray cluster.", allow_abbrev=False,
                                     epilog="All other arguments are those of `stoker pack`.")
    parser.add_argument("source")
    parser.add_argument("dest")
    parser.add_argument("--parts", type=int, help="how many tasks; without: one for each --num-cpus of the cluster")
    parser.add_argument("--num-cpus", type=float, default=1, help="CPUs of a task")
    parser.add_argument("--address", default="auto", help="of the cluster")
    parser.add_argument("--json", action="store_true", help="one JSON object to stdout")
    parser.add_argument("--quiet", action="store_true", help="no line for each part")
    given, arguments = parser.parse_known_args()
    try:
        made = pack(given.source, given.dest, parts=given.parts, num_cpus=given.num_cpus, address=given.address, arguments=arguments,
                    progress=None if given.quiet else lambda text: print(text, file=sys.stderr, flush=True))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Error as error:
        print(f"error: {error.message}" + (f"\n\nhint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return 2
    print(json.dumps(made, indent=2) if given.json else f"{given.dest}: {made['count']} samples in {made['shards']} shards")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
