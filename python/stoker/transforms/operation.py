"""What every operation of a transform is: a name and arguments, in the form that the engine takes."""

from __future__ import annotations

import json
from typing import Any

from ..errors import UsageError
from .checks import plain


class Transform:
    """One operation. Immutable; two of the same kind with the same arguments are equal."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def to_json(self) -> dict[str, Any]:
        """The form in which the engine takes it."""
        return {"op": type(self).__name__, **self._fields}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transform) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_json(), sort_keys=True))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self._fields.items())})"


class Augmentation(Transform):
    """One of the operations whose arguments the engine checks: ``stoker --help`` of the short text has their ranges."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**{name: plain(self, name, value) for name, value in fields.items() if value is not None})
        _check(self)


def _check(operation: Transform) -> None:
    from .. import _engine

    _engine.transform_text(json.dumps([operation.to_json()]))


def checked_operation(item: Any) -> Transform:
    if isinstance(item, Transform):
        return item
    if isinstance(item, type) and issubclass(item, Transform):
        raise UsageError(f"transform: {item.__name__} is a class, not an operation", f"write {item.__name__}(...)")
    if isinstance(item, str):
        import difflib

        from . import __all__ as known
        near = difflib.get_close_matches(item, known, 1)
        raise UsageError(f"transform: {item!r} is a text inside a list",
                         f"write stoker.{near[0]}(...)" if near else "give one text instead of a list: transform=\"rrc:224,flip\"")
    raise UsageError(f"transform: {item!r} is not an operation of Stoker",
                     "a list of stoker.RandomResizedCrop(224), ...")
