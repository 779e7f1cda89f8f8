"""Arguments that the engine's table of options does not have: words of PyTorch, callables, counts that are no options."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from . import _engine
from .errors import UnknownOptionError, UsageError, shortened

TOO_LARGE = 2**62  # no count of anything reaches it

# Words of PyTorch's DataLoader that the loader does not take.
_REFUSED = {
    "collate_fn": ("samples are written straight into their batch", "batch_transform=f(data, labels) sees each batch"),
    "generator": ("randomness is keyed by seed, epoch and sample", "seed="),
}
_NOTED = {
    "worker_init_fn": "workers are threads of the engine, no Python runs in them",
    "multiprocessing_context": "workers are threads, no process is started",
    "in_order": "batches always leave in order",
    "pin_memory_device": "device= says where batches go",
}


def foreign_options(given: dict[str, Any], known: list[str]) -> list[str]:
    """Refuses keywords that are not the loader's, or notes that they change nothing."""
    notes = []
    for word, value in given.items():
        if word in _REFUSED:
            if value is not None:
                reason, remedy = _REFUSED[word]
                raise UsageError(f"{word}= has no meaning here: {reason}", remedy)
        elif word in _NOTED:
            if value not in (None, "", True):
                notes.append(f"{word}= changes nothing here: {_NOTED[word]}")
        else:
            import difflib
            near = difflib.get_close_matches(word, [*known, *_REFUSED, *_NOTED], 1)
            raise UnknownOptionError(f"Loader has no option {word!r}", f"did you mean {near[0]}=?" if near else "help(stoker.Loader) lists them")
    return notes


def choice(word: str, value: Any, choices: Sequence[str]) -> str:
    if value in choices:
        return value
    import difflib
    near = difflib.get_close_matches(str(value), choices, 1)
    raise UsageError(f"{word} is one of {', '.join(choices)}, not {value!r}", f"did you mean {near[0]!r}?" if near else "", option=word)


def switch(word: str, value: Any) -> bool:
    """True or False, also as numpy's booleans and 0 or 1. A text would be true whatever it says."""
    if isinstance(value, str) or not hasattr(value, "__bool__") or value not in (0, 1):
        raise UsageError(f"{word} is True or False, not {value!r}", option=word)
    return bool(value)


def shuffle_value(value: Any) -> bool | str | None:
    """What the engine takes: also numpy's booleans and 0 or 1."""
    if value is None or isinstance(value, str) or not hasattr(value, "__bool__"):
        return value
    return bool(value)


def shuffle_word(value: Any) -> str:
    """The shuffle of a saved state: True, False or "blocks:N:M"."""
    return value if isinstance(value, str) else "full" if value else "off"


def callable_or_none(word: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise UsageError(f"{word} is a callable, not {value!r}", option=word)
    return value


def _is_whole(value: Any, least: int, end: int) -> bool:
    """A whole number from `least` to below `end`, also one of numpy; True and False are none."""
    return not isinstance(value, bool) and isinstance(value, numbers.Integral) and least <= int(value) < end


def whole_count(word: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
    if not _is_whole(value, least, TOO_LARGE if most is None else most + 1):
        raise UsageError(f"{word} is a whole number of at least {least}, not {value!r}" if most is None
                         else f"{word} is a whole number from {least} to {most:,}, not {value!r}", option=word)
    return int(value)


def state_number(word: str, value: Any) -> int:
    bits = 64 if word == "seed" else 62
    if not _is_whole(value, 0, 2**bits):
        raise UsageError(f"{word} is a whole number from 0 to 2**{bits} - 1, not {shortened(value)}")
    return int(value)


def byte_count(word: str, value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, str):
        return _engine.parse_bytes(value)
    if not _is_whole(value, 1, 2**63):
        raise UsageError(f"{word} is a number of bytes or a text like \"4GB\", not {value!r}", option=word)
    return int(value)
