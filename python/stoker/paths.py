"""Paths that users give, as text for the engine."""

from __future__ import annotations

import os
from typing import Any

from .errors import UsageError, shortened


def as_path(path: Any, word: str) -> str:
    """As text. A surrogate that stands for no byte, such as half of a pair, is refused: no file can have that name."""
    text = os.fsdecode(path)
    if not text.isascii():
        try:
            os.fsencode(text)
        except UnicodeEncodeError as error:
            raise UsageError(f"{word} has a path that no file can have: {shortened(text)}: {error.reason}") from None
    return text
