"""Batches as jax arrays: the data in place through DLPack, where jax accepts the alignment; labels as jax casts them.

A jax array is immutable for jax, yet shares the slab: the slab is refilled only once the array is gone.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy

NAME = "jax"


def check_dtype(dtype: str | None) -> None:
    """jax has every type that the engine makes."""


def tensor(batch: Any, index: int) -> jax.Array:
    return jax.numpy.from_dlpack(batch.dlpack(index))


def from_numpy(array: Any) -> jax.Array:
    return jax.numpy.array(array)


def copied(array: jax.Array) -> jax.Array:
    return jax.numpy.array(array, copy=True)
