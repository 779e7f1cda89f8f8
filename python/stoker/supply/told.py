"""What people are told about each DataLoader: a line on stderr, or a warning; and a record for ``stoker run``."""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from typing import Any

from ..errors import Note, one_line

__all__ = ["Teller"]

_lock = threading.Lock()


class Teller:
    """Speaks for one DataLoader. ``place``: file, line and name of where it was made; None if unknown."""

    _numbers = 0
    _said_in_run: set[str] = set()  # of all loaders: a job may make one at the same place again and again

    def __init__(self, place: dict[str, Any] | None) -> None:
        self._place = place
        self._said: set[str] = Teller._said_in_run if in_run() else set()
        with _lock:
            Teller._numbers += 1
            self._number = Teller._numbers

    @property
    def where(self) -> str:
        return f"{os.path.basename(self._place['file'])}:{self._place['line']}" if self._place else "a DataLoader"

    def say(self, text: str, *, is_news: bool = True) -> None:
        """One line, once. Under ``stoker run`` it goes to stderr, from the first rank only; elsewhere it is a warning, if ``is_news``."""
        line = one_line(f"{self.where}: {text}")
        if line in self._said:
            return
        self._said.add(line)
        if not in_run():
            if is_news:
                warnings.warn(line, Note, stacklevel=2)
        elif os.environ.get("STOKER_RUN_QUIET") != "1" and os.environ.get("RANK", "0") in ("", "0"):
            try:
                sys.stderr.write(f"stoker: {line}\n")
                sys.stderr.flush()
            except (OSError, ValueError, AttributeError):
                pass

    def record(self, **facts: Any) -> None:
        """What ``stoker run`` shows at the end. The last record of a loader counts."""
        folder = os.environ.get("STOKER_RUN_DIR")
        if not folder:
            return
        rank = os.environ.get("RANK", "")
        line = {"pid": os.getpid(), "loader": self._number, "rank": int(rank) if rank.isdigit() else None,
                "file": self._place["file"] if self._place else None, "line": self._place["line"] if self._place else None,
                "name": self._place["name"] if self._place else "", **facts}
        try:
            with open(os.path.join(folder, f"{os.getpid()}.jsonl"), "a") as file:
                file.write(json.dumps(line) + "\n")
        except OSError:
            pass


def in_run() -> bool:
    """Whether ``stoker run`` started this process."""
    return bool(os.environ.get("STOKER_RUN_DIR"))
