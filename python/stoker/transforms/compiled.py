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
from .torchvision import from_torchvision, is_of_library, library

# What needs the whole batch, several views, a column of the index, or sound.
_NEVER_AFTER = (Views, MixUp, CutMix, FiveCrop, TenCrop, Window, Resample, Mono, PadOrTrim)


def compile_steps(transform: Any) -> tuple[str, list[Callable[[Any], Any]], str]:
    """For callables on single samples: the engine's form of the operations before them, the callables, and the form of the operations after them."""
    if transform is None or isinstance(transform, (str, Transform)):
        return compile_transform(transform), [], "[]"
    before: list[Any] = []
    callables: list[Callable[[Any], Any]] = []
    after: list[Any] = []
    for item in flattened([transform]):
        is_ours = isinstance(item, Transform) or is_of_library(item)
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
    return compile_transform(before), callables, compile_transform(after)


def compile_transform(transform: Any) -> str:
    """The engine's form (JSON or short text) of what was given as ``transform=``, without callables."""
    if isinstance(transform, str):
        return transform if transform.strip() else "[]"
    return json.dumps([operation.to_json() for operation in operations_of([] if transform is None else transform)])


def operations_of(transform: Any) -> list[Transform]:
    """Operations of Stoker, torchvision or timm, alone or in lists, as operations of Stoker."""
    operations: list[Transform] = []
    for item in flattened([transform]):
        operations.extend(from_torchvision(item) if is_of_library(item) else [checked_operation(item)])
    return _without_double_scaling(operations)


def flattened(items: Iterable[Any]) -> Iterable[Any]:
    """Opens lists, torchvision's Compose and torch's Sequential of its operations, so that a callable inside is found at its place."""
    for item in items:
        if isinstance(item, (list, tuple)):
            yield from flattened(item)
        elif library(item) == "torchvision" and type(item).__name__ == "Compose":
            yield from flattened(item.transforms)
        elif library(item) == "torch" and type(item).__name__ == "Sequential" and any(map(is_of_library, item)):
            yield from flattened(item)
        else:
            yield item


def _without_double_scaling(operations: list[Transform]) -> list[Transform]:
    """Normalize divides by 255 itself, so a ToFloat right before it (torchvision's ToTensor) says nothing new."""
    return [operation for operation, following in zip(operations, [*operations[1:], None])
            if not (type(operation) is ToFloat and type(following) is Normalize)]


def _name(item: Any) -> str:
    return getattr(item, "__name__", type(item).__name__)
