"""A store that takes requests and never answers: Ctrl-C ends whatever waits for it."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest


class SilentStore:
    """Accepts connections, reads what comes and says nothing."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._connections: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._connections.append(connection)
            if connection.recv(1):
                self.asked.set()

    def close(self) -> None:
        for one in [self._listening, *self._connections]:
            one.close()


@pytest.fixture
def silent() -> Iterator[SilentStore]:
    store = SilentStore()
    yield store
    store.close()


def environment(store: SilentStore, folder: pathlib.Path) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**ours, "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{store.port}", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "XDG_CACHE_HOME": str(folder / "cache")}


def interrupted(store: SilentStore, command: list[str], folder: pathlib.Path) -> tuple[int, str]:
    """How it ended after one Ctrl-C, sent once its request is there. A request alone would wait for 30 seconds."""
    process = subprocess.Popen(command, env=environment(store, folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a job in the background starts with it ignored
    try:
        assert store.asked.wait(60), "nothing was asked"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        return process.returncode, err
    finally:
        process.kill()


@pytest.mark.parametrize("words", [["inspect", "s3://bucket/set"], ["load", "s3://bucket/set"], ["load", "s3://bucket/set/index.csv"],
                                   ["stage", "s3://bucket/set", "copy"], ["pack", "local", "s3://bucket/set.pack"]], ids=" ".join)
def test_ctrl_c_ends_a_verb_that_waits_for_a_listing(silent, tmp_path, binary, words):
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "a.npy").write_bytes(b"")
    code, err = interrupted(silent, [binary, *words], tmp_path)
    assert (code, "interrupted" in err) == (130, True), err


@pytest.mark.parametrize("source", ["'s3://bucket/set'", "samples=['s3://bucket/set/a.jpg', 's3://bucket/set/b.jpg']"])
def test_ctrl_c_ends_a_loader_that_waits_for_a_listing(silent, tmp_path, source):
    pytest.importorskip("stoker._engine")
    code, err = interrupted(silent, [sys.executable, "-c", f"import stoker; stoker.Loader({source}, batch_size=2)"], tmp_path)
    assert err.rstrip().endswith("KeyboardInterrupt") and code in (1, 130, -signal.SIGINT), err
