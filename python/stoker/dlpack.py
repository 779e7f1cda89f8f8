"""Batches as bare DLPack objects, for any framework with ``from_dlpack``; one value per row comes as numpy."""

from __future__ import annotations

from typing import Any

NAME = "dlpack"


def check_dtype(dtype: str | None) -> None:
    """DLPack knows every type that the engine has."""


def tensor(batch: Any, index: int) -> Any:
    return batch.dlpack(index)


def from_numpy(array: Any) -> Any:
    return array


def copied(array: Any) -> Any:
    if hasattr(array, "copy"):
        return array.copy()
    import numpy

    return numpy.from_dlpack(array).copy()
