"""Batches as numpy arrays, in place. The only framework file that ``import stoker`` loads."""

from __future__ import annotations

from typing import Any

import numpy

from .errors import UsageError

NAME = "numpy"


def check_dtype(dtype: str | None) -> None:
    """Refuses what numpy cannot hold, before anything runs."""
    if dtype == "bfloat16" and _bfloat16() is None:
        raise UsageError("dtype=\"bfloat16\" has no numpy type",
                         "pip install ml_dtypes, or output=\"torch\", or dtype=\"float16\"")


def tensor(batch: Any, index: int) -> numpy.ndarray:
    """Tensor ``index`` of an engine batch."""
    array = batch.numpy(index)
    if array.dtype == numpy.uint16 and batch.dtype(index) == "bfloat16":
        return array.view(_bfloat16())
    return array


def from_numpy(array: numpy.ndarray) -> numpy.ndarray:
    """An array of one value per row, or one that Python made."""
    return array


def copied(array: numpy.ndarray) -> numpy.ndarray:
    return array.copy()


def _bfloat16() -> Any:
    try:
        import ml_dtypes
    except ImportError:
        return None
    return ml_dtypes.bfloat16
