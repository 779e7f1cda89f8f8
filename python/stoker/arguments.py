"""What the arguments of a loader may be: each check returns the value for the engine, or says what is right."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Sequence
from typing import Any

from . import _engine
from .errors import UnknownOptionError, UsageError, shortened

AUTO = -1
TOO_LARGE = 2**62  # no count of anything reaches it

# Words of PyTorch's DataLoader that the loader does not take.
_REFUSED = {
    "sampler": ("the order is a pure function of seed, epoch and position", "shuffle=, seed=, subset=, rank= and world_size= say what a sampler would"),
    "batch_sampler": ("the order is a pure function of seed, epoch and position", "batch_size=, shuffle=, drop_last="),
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
            near = difflib.get_close_matches(word, [*known, *_REFUSED, *_NOTED], 1)
            raise UnknownOptionError(f"Loader has no option {word!r}", f"did you mean {near[0]}=?" if near else "help(stoker.Loader) lists them")
    return notes


def choice(word: str, value: Any, choices: Sequence[str]) -> str:
    if value in choices:
        return value
    near = difflib.get_close_matches(str(value), choices, 1)
    raise UsageError(f"{word} is one of {', '.join(choices)}, not {value!r}", f"did you mean {near[0]!r}?" if near else "")


def shuffle_word(value: Any) -> str:
    if isinstance(value, str) and value.startswith("blocks"):
        return value
    if value is not None and (isinstance(value, str) or not hasattr(value, "__bool__")):
        raise UsageError(f"shuffle is True, False, \"blocks\" or \"blocks:NEIGHBOURS:MIXED\", not {value!r}")
    return "full" if value else "off"


def last_batch_word(drop_last: bool, last_batch: str | None) -> str:
    if last_batch is None:
        return "drop" if drop_last else "keep"
    last_batch = choice("last_batch", last_batch, ("keep", "drop", "pad"))
    if drop_last and last_batch != "drop":
        raise UsageError(f"drop_last=True and last_batch={last_batch!r} contradict each other", "give one of them")
    return last_batch


def callable_or_none(word: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise UsageError(f"{word} is a callable, not {value!r}")
    return value


def _is_whole(value: Any, least: int, end: int) -> bool:
    """A whole number from `least` to below `end`, also one of numpy; True and False are none."""
    return not isinstance(value, bool) and isinstance(value, numbers.Integral) and least <= int(value) < end


def _is_real(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, numbers.Real)


def whole_count(word: str, value: Any, *, least: int = 1, none: int | None = None) -> int:
    if value is None and none is not None:
        return none
    if not _is_whole(value, least, TOO_LARGE):
        raise UsageError(f"{word} is a whole number of at least {least}, not {value!r}")
    return int(value)


def seed_number(word: str, value: Any) -> int:
    if not _is_whole(value, 0, 2**64):
        raise UsageError(f"{word} is a whole number from 0 to 2**64 - 1, not {value!r}")
    return int(value)


def state_number(word: str, value: Any) -> int:
    bits = 64 if word == "seed" else 62
    if not _is_whole(value, 0, 2**bits):
        raise UsageError(f"{word} is a whole number from 0 to 2**{bits} - 1, not {shortened(value)}")
    return int(value)


def auto_count(word: str, value: Any) -> int:
    return 0 if value == "auto" else count_or_auto(word, value, 1)


def worker_count(word: str, value: Any) -> int:
    return AUTO if value == "auto" else count_or_auto(word, value, 0)


def count_or_auto(word: str, value: Any, least: int) -> int:
    if not _is_whole(value, least, 2**31):
        raise UsageError(f"{word} is \"auto\" or a whole number of at least {least}, not {value!r}")
    return int(value)


def byte_count(word: str, value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, str):
        return _engine.parse_bytes(value)
    if not _is_whole(value, 1, 2**63):
        raise UsageError(f"{word} is a number of bytes or a text like \"4GB\", not {value!r}")
    return int(value)


def error_limit(value: Any) -> float:
    if value is None:
        return 0.0
    if not _is_real(value) or not 0 < value < TOO_LARGE or (value > 1 and not float(value).is_integer()):
        raise UsageError(f"max_errors is a count from 1 or a share below 1, not {value!r}", "on_error=\"raise\" allows none")
    return float(value)


def timeout_seconds(value: Any) -> float:
    if value is None:
        return 300.0
    if not _is_real(value) or not 0 <= value < 1e9:
        raise UsageError(f"timeout is a number of seconds, 0 for none, not {value!r}")
    return float(value)
