"""Arguments of operations: what is wrong with one is said in a sentence that names the operation and the argument."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import UsageError

Size = int | Sequence[int]
Range = float | Sequence[float]
Fill = float | Sequence[float] | None
FILTERS = ("bilinear", "bicubic", "nearest", "box", "lanczos")


def who(owner: Any) -> str:
    return type(owner).__name__


def checked_number(owner: Any, word: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"{who(owner)}: {word} is a number, not {value!r}")
    return _finite(owner, word, float(value))


def _finite(owner: Any, word: str, value: float) -> float:
    if not math.isfinite(value):
        raise UsageError(f"{who(owner)}: {word} is a finite number, not {value!r}")
    return value


def checked_numbers(owner: Any, word: str, value: Any) -> list[float]:
    if isinstance(value, (int, float)):
        return [checked_number(owner, word, value)]
    try:
        numbers = [float(entry) for entry in value]
    except (TypeError, ValueError):
        raise UsageError(f"{who(owner)}: {word} is a list of numbers, not {value!r}") from None
    return [_finite(owner, word, number) for number in numbers]


def checked_whole(owner: Any, word: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{who(owner)}: {word} is a whole number of at least 1, not {value!r}")
    return value


def height_width(owner: Any, size: Any) -> tuple[int, int]:
    if isinstance(size, int):
        size = (size, size)
    try:
        sizes = list(size)
    except TypeError:
        sizes = []
    if len(sizes) == 1:
        sizes = sizes * 2
    if len(sizes) != 2:
        raise UsageError(f"{who(owner)}: size is a number or (height, width), not {size!r}")
    return checked_whole(owner, "size", sizes[0]), checked_whole(owner, "size", sizes[1])


def checked_pair(owner: Any, word: str, value: Any) -> tuple[float, float]:
    numbers = checked_numbers(owner, word, value)
    if len(numbers) != 2 or not 0 < numbers[0] <= numbers[1]:
        raise UsageError(f"{who(owner)}: {word} is (low, high) with 0 < low <= high, not {value!r}")
    return numbers[0], numbers[1]


def low_high(owner: Any, word: str, value: Any) -> tuple[float, float]:
    numbers = checked_numbers(owner, word, value)
    if len(numbers) == 1:
        numbers = numbers * 2
    if len(numbers) != 2 or numbers[0] > numbers[1]:
        raise UsageError(f"{who(owner)}: {word} is a number or (low, high), not {value!r}")
    return numbers[0], numbers[1]


def ranges(owner: Any, word: str, value: Any) -> list[float] | None:
    """Low and high of each entry, one after another."""
    if value is None:
        return None
    ends: list[float] = []
    for entry in value if isinstance(value, Iterable) else [value]:
        if isinstance(entry, Iterable):
            ends += low_high(owner, word, entry)
        else:
            most = abs(checked_number(owner, word, entry))
            ends += [-most, most]
    return ends


def checked_filter(owner: Any, word: str) -> str:
    if word not in FILTERS:
        raise UsageError(f"{who(owner)}: interpolation is one of {', '.join(FILTERS)}, not {word!r}")
    return word


def plain(owner: Any, word: str, value: Any) -> Any:
    """Numbers, texts and lists of them, as JSON has them."""
    if isinstance(value, float):
        return checked_number(owner, word, value)
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Iterable):
        return [entry if isinstance(entry, dict) else checked_number(owner, word, entry) for entry in value]
    return checked_number(owner, word, value)
