"""Exceptions and warnings. Everything Stoker raises on purpose is a :class:`Error`.

Kinds that Python has a word for are also that builtin: ``except FileNotFoundError`` and ``except ValueError`` work.
"""

from __future__ import annotations

import re

__all__ = ["Error", "UsageError", "NotFoundError", "PermissionDeniedError", "Note"]


class Error(Exception):
    """A run cannot go on. ``kind`` says why in one word, ``hint`` is the remedy (or empty), ``option`` the keyword that it concerns (or empty)."""

    kind: str = "internal"

    def __init__(self, message: str = "", hint: str = "", kind: str | None = None, option: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.option = option
        if kind is not None:
            self.kind = kind

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message

    def __reduce__(self):
        return type(self), (self.message, self.hint, self.kind, self.option)


class UsageError(Error, ValueError):
    """Something impossible was asked for; nothing was tried."""

    kind = "usage"


class NotFoundError(Error, FileNotFoundError):
    """A file, folder, column or name does not exist."""

    kind = "not_found"


class PermissionDeniedError(Error, PermissionError):
    """It exists, but this process may not use it."""

    kind = "permission"


class UnknownOptionError(UsageError, TypeError):
    """A keyword that does not exist."""


class Note(UserWarning):
    """Something worth saying once: an option without meaning here, a default taken from the surroundings."""


_BY_KIND = {"usage": UsageError, "not_found": NotFoundError, "permission": PermissionDeniedError}


def from_engine(kind: str, message: str, hint: str, option: str) -> Error:
    """The exception for an error of the engine. Called by the bindings."""
    return _BY_KIND.get(kind, Error)(message, hint, kind, option)


_COMMANDS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def one_line(text: str) -> str:
    """The text without what a terminal obeys: a file name in it can neither forge a line nor change the screen. The engine does the same."""
    return _COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shortened(value: object) -> str:
    """A value as a message shows it."""
    try:
        text = repr(value)
    except RecursionError:
        text = f"a {type(value).__name__} inside too many others"
    return text if len(text) <= 200 else text[:200] + "..."
