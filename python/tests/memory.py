"""How much a program grows while it loads: anonymous and shared pages, not file pages. Used by the tests and by bench/."""

from __future__ import annotations

import threading

from stoker import _engine


def private_bytes() -> int:
    """RssAnon + RssShmem of this process."""
    memory = _engine.process_memory()
    return memory["anonymous_bytes"] + memory["shared_bytes"]


class Growth:
    """``with Growth() as growth: ...``; then ``growth.peak_bytes`` above the start, sampled every few milliseconds."""

    def __init__(self, every_s: float = 0.002) -> None:
        self._every_s = every_s
        self._stop = threading.Event()
        self.peak_bytes = 0

    def __enter__(self) -> Growth:
        self._start_bytes = private_bytes()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._look()

    def _look(self) -> None:
        self.peak_bytes = max(self.peak_bytes, private_bytes() - self._start_bytes)

    def _watch(self) -> None:
        while not self._stop.wait(self._every_s):
            self._look()
