"""Nodes of a cluster on this machine: each is a network namespace whose only way out is a slow link to an S3 server.

Needs root. The kernel need not delay packets: the link is a proxy of this process that holds back what it forwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import pathlib
import select
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

# A rank of a job. It goes step by step with the others, as under an all-reduce: it tells of each step, and waits.
RANK = """
import json, sys, time, warnings
import stoker
warnings.simplefilter("ignore", stoker.Note)
job = json.loads(sys.argv[1])
def together(**told):
    print(json.dumps(told), flush=True)
    return json.loads(sys.stdin.readline())
loader = stoker.Loader(job["source"], output="numpy", **job["options"])
if job["state"]:
    loader.load_state_dict(job["state"])
stores = dict.fromkeys(("requests", "cache_hits", "cache_misses"), 0)
len(loader)
together(ready=True)
for epoch in range(loader.epoch, job["epochs"]):
    began, ids, labels = time.monotonic(), [], 0
    for batch in loader:
        ids += batch.indices.tolist()
        labels += int(batch.labels.sum())
        time.sleep(job["step_s"])
        if together(step=True)["stop"]:
            break
    now = loader.stats()["store"]
    together(epoch=epoch, ids=ids, labels=labels, seconds=time.monotonic() - began, state=loader.state_dict(), notes=list(loader.notes),
             store={word: now[word] - stores[word] for word in stores})
    stores = {word: now[word] for word in stores}
"""


class Link:
    """Forwards connections to `port` of this machine: each way takes half of `latency_s`, and all answers together `bytes_per_s`."""

    def __init__(self, listener: socket.socket, port: int, latency_s: float, bytes_per_s: float) -> None:
        self.latency_s, self.bytes_per_s = latency_s, bytes_per_s
        self.received = 0  # bytes that came over the link
        self._port, self._listener, self._free_at = port, listener, 0.0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(asyncio.start_server(self._connected, sock=self._listener))
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._port)
            await asyncio.gather(self._forward(reader, to_writer, 0.0), self._forward(to_reader, writer, self.bytes_per_s))

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bytes_per_s: float) -> None:
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        sender = asyncio.ensure_future(self._send(waiting, writer))
        data = b"begun"
        while data:
            try:
                data = await reader.read(1 << 16)
            except OSError:
                data = b""
            due = self._loop.time()
            if bytes_per_s:
                self.received += len(data)
                due = self._free_at = max(due, self._free_at) + len(data) / bytes_per_s
            waiting.put_nowait((due + self.latency_s / 2, data))
        await sender

    async def _send(self, waiting: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        data = b"begun"
        with contextlib.suppress(OSError):
            while data:
                due, data = await waiting.get()
                await asyncio.sleep(max(0.0, due - self._loop.time()))
                writer.write(data)
                await writer.drain()
        writer.close()


class Node:
    """A network namespace, its link, and a folder for its disk cache."""

    def __init__(self, name: str, cache: pathlib.Path, link: Link, port: int) -> None:
        self.name, self.cache, self.link, self.port = name, cache, link, port

    def start(self, words: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        mine = {**environment, "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self.port}"}
        return subprocess.Popen(["ip", "netns", "exec", self.name, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env={**os.environ, **mine})


def can_make_nodes() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"stoker-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", name], check=True)
    return made


def _listen_in(name: str) -> socket.socket:
    """A socket that listens on the loopback interface of a namespace; it stays there when this thread has left."""
    libc, found = ctypes.CDLL(None, use_errno=True), []

    def listen() -> None:
        with open(f"/run/netns/{name}") as namespace:
            if libc.setns(namespace.fileno(), 0) == 0:
                found.append(socket.create_server(("127.0.0.1", 0), backlog=4096))

    thread = threading.Thread(target=listen)  # setns() moves one thread, and this one ends
    thread.start()
    thread.join()
    if not found:
        raise RuntimeError(f"cannot enter the network namespace {name}")
    return found[0]


@contextlib.contextmanager
def nodes(count: int, port: int, folder: pathlib.Path, latency_s: float = 0.02, bytes_per_s: float = 1e9) -> Iterator[list[Node]]:
    """`count` nodes that reach the server at `port` of this machine, each over a link of its own."""
    with contextlib.ExitStack() as stack:
        made = []
        for number in range(count):
            name = f"stoker-{os.getpid()}-{number}"
            subprocess.run(["ip", "netns", "add", name], check=True)
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=True)
            subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
            listener = _listen_in(name)
            listening = listener.getsockname()[1]
            link = Link(listener, port, latency_s, bytes_per_s)
            stack.callback(link.close)
            made.append(Node(name, folder / f"cache-{number}", link, listening))
        yield made


def train(on: list[Node], environment: dict[str, str], source: str, epochs: int, *, state: Any = None, stop_after: int | None = None,
          step_s: float = 0.0, timeout_s: float = 120, **options: Any) -> list[list[dict[str, Any]]]:
    """A job with a rank on each of these nodes. For each epoch what each rank tells; `stop_after`: steps, all of them in one epoch."""
    ranks = []
    for rank, node in enumerate(on):
        job = {"source": source, "state": state, "epochs": epochs, "step_s": step_s,
               "options": {"cache_dir": str(node.cache), "num_workers": 1, "epochs": epochs, **options}}
        ranks.append(node.start([sys.executable, "-c", RANK, json.dumps(job)],
                                {**environment, "RANK": str(rank), "WORLD_SIZE": str(len(on)), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}))
    found, steps = [], 0
    try:
        while True:
            told = []
            for process in ranks:
                if not select.select([process.stdout], [], [], timeout_s)[0]:
                    raise RuntimeError("a rank hangs")
                told.append(process.stdout.readline())
            if not any(told):
                break
            if not all(told):
                raise RuntimeError("a rank ended before the others: " + "".join(process.communicate()[1] for process in ranks if process.poll()))
            words = [json.loads(line) for line in told]
            if len({tuple(sorted(one)) for one in words}) != 1:
                raise RuntimeError("ranks have unequal steps")
            steps += "step" in words[0]
            if "epoch" in words[0]:
                found.append(words)
                if stop_after is not None:
                    return found
            for process in ranks:
                process.stdin.write(json.dumps({"stop": stop_after is not None and steps >= stop_after}) + "\n")
                process.stdin.flush()
        if any(process.wait(timeout_s) for process in ranks):
            raise RuntimeError("a rank failed: " + "".join(process.stderr.read() for process in ranks))
        return found
    finally:
        for process in ranks:
            process.kill()
            process.communicate()
