"""The form of what a callable returns, as a loader's state keeps it: a few JSON values.

The first result decides the form. A resumed run takes it from the state, so that it judges each sample as an uninterrupted run does.
"""

from __future__ import annotations

from typing import Any

import numpy

from .errors import UsageError, shortened
from .python_rows import BFLOAT16, IN_PLACE, Leaf, Named

__all__ = ["form_from_state", "form_to_state"]

_MOST_DEPTH = 64
_MOST_LEAVES = 10_000
_OBJECT = "object"  # a leaf that no array holds
_KEYS = (str, int, float, bool, type(None))


def form_to_state(form: Any) -> Any:
    """JSON values; None where the form is unknown, or has keys that JSON cannot hold."""
    if form is None or form == IN_PLACE:
        return form
    try:
        return _written(form[0], iter(form[1]))
    except TypeError:
        return None


def form_from_state(value: Any) -> Any:
    """The form that form_to_state() wrote. Raises UsageError for anything else."""
    if value is None or value == IN_PLACE:
        return value
    leaves: list[Leaf] = []
    try:
        return _read(value, leaves, 0), tuple(leaves)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        raise UsageError(f"results is what an earlier state_dict() gave, not {shortened(value)}") from None


def _written(structure: Any, leaves: Any) -> Any:
    if structure == "leaf":
        leaf = next(leaves)
        return [leaf.dtype or _OBJECT, *leaf.shape]
    if structure[0] == "dict":
        if any(type(key) not in _KEYS for key, _ in structure[1]):
            raise TypeError
        return {"dict": [[key, _written(inner, leaves)] for key, inner in structure[1]]}
    inner = [_written(one, leaves) for one in structure[-1]]
    if structure[0] == "named":
        named: Named = structure[1]
        return {"named": [named.module, named.name, *named.fields], "items": inner}
    return {"items": inner}


def _read(value: Any, leaves: list[Leaf], depth: int) -> Any:
    if depth > _MOST_DEPTH or len(leaves) > _MOST_LEAVES:
        raise ValueError
    if isinstance(value, list):
        leaves.append(_leaf(*value))
        return "leaf"
    if set(value) == {"dict"}:
        if any(type(key) not in _KEYS for key, _ in value["dict"]):
            raise TypeError
        return "dict", tuple((key, _read(inner, leaves, depth + 1)) for key, inner in value["dict"])
    if set(value) - {"items", "named"}:
        raise KeyError
    inner = tuple(_read(one, leaves, depth + 1) for one in value["items"])
    if "named" not in value:
        return "list", inner
    module, name, *fields = value["named"]
    if not all(isinstance(text, str) for text in (module, name, *fields)) or len(fields) != len(inner):
        raise TypeError
    return "named", Named(module, name, tuple(fields)), inner


def _leaf(dtype: Any, *shape: Any) -> Leaf:
    if not isinstance(dtype, str) or any(type(extent) is not int or extent < 0 for extent in shape):
        raise TypeError
    if dtype == _OBJECT and not shape:
        return Leaf(None)
    if dtype == BFLOAT16:
        return Leaf(dtype, shape)
    if numpy.dtype(dtype).str != dtype or numpy.dtype(dtype).kind not in "biufcmM":
        raise TypeError
    return Leaf(dtype, shape)
