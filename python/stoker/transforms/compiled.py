"""What was given as ``transform=``, in the engine's form: the operations, and the Python callables among them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import UsageError
from .audio import Mono, PadOrTrim, Resample
from .combined import CutMix, MixUp, Views
from .images import FiveCrop, Normalize, TenCrop, ToFloat, Window
from .operation import Transform, checked_operation
from .torchvision import from_torchvision, is_of_torchvision, library

# What needs the whole batch, several views, a column of the index, or sound.
_NEVER_AFTER = (Views, MixUp, CutMix, FiveCrop, TenCrop, Window, Resample, Mono, PadOrTrim)


def compile_steps(transform: Any) -> tuple[str, list[Callable[[Any], Any]], str]:
    """For callables on single samples: the engine's form of the operations before them, the callables, and the form of the operations after them."""
    if transform is None or isinstance(transform, (str, Transform)) or not isinstance(transform, (list, tuple)):
        text, last = compile_transform(transform)
        return text, [] if last is None else [last], "[]"
    before: list[Any] = []
    callables: list[Callable[[Any], Any]] = []
    after: list[Any] = []
    for item in flattened(transform):
        is_ours = isinstance(item, Transform) or is_of_torchvision(item)
        if not is_ours and callable(item) and not isinstance(item, type):
            if after:
                raise UsageError(f"transform: {_name(item)} stands behind operations that stand behind a Python callable",
                                 "put the callables next to each other: operations, callables, operations", option="transform")
            callables.append(item)
        elif callables:
            after.append(item)
        else:
            before.append(item)
    for item in after:
        if isinstance(item, _NEVER_AFTER):
            raise UsageError(f"transform: {type(item).__name__} cannot stand behind a Python callable", "put it before the callable, or do it in the callable", option="transform")
    return compile_transform(before)[0], callables, compile_transform(after)[0]


def compile_transform(transform: Any) -> tuple[str, Callable[[Any], Any] | None]:
    """The engine's form (JSON or short text) of what was given as ``transform=``, and the Python callable at its end."""
    if transform is None:
        return "[]", None
    if isinstance(transform, str):
        return (transform, None) if transform.strip() else ("[]", None)
    if isinstance(transform, Transform) or not isinstance(transform, (list, tuple)):
        transform = [transform]
    operations: list[Transform] = []
    last: Callable[[Any], Any] | None = None
    for item in flattened(transform):
        if last is not None:
            raise UsageError(f"transform: {_name(last)} is a Python callable and must be the last item: it takes the whole batch",
                             "put it at the end, or write it with Stoker's operations")
        if isinstance(item, Transform):
            operations.append(item)
        elif is_of_torchvision(item):
            operations.extend(from_torchvision(item))
        elif callable(item) and not isinstance(item, type):
            last = item
        else:
            checked_operation(item)
    return json.dumps([operation.to_json() for operation in _without_double_scaling(operations)]), last


def flattened(items: Iterable[Any]) -> Iterable[Any]:
    """Opens lists and torchvision's Compose, so that a callable inside is found at its place."""
    for item in items:
        if isinstance(item, (list, tuple)):
            yield from flattened(item)
        elif library(item) == "torchvision" and type(item).__name__ == "Compose":
            yield from flattened(item.transforms)
        else:
            yield item


def _without_double_scaling(operations: list[Transform]) -> list[Transform]:
    """Normalize divides by 255 itself, so a ToFloat right before it (torchvision's ToTensor) says nothing new."""
    return [operation for operation, following in zip(operations, [*operations[1:], None])
            if not (type(operation) is ToFloat and type(following) is Normalize)]


def _name(item: Any) -> str:
    return getattr(item, "__name__", type(item).__name__)
