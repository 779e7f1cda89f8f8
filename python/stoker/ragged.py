"""Batches of arrays whose shapes differ: the engine packs them row after row, and they become arrays here."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy

from . import _engine
from .errors import UsageError, shortened

__all__ = ["Ragged", "array_names"]

_HEAD = 80  # bytes that describe one array: dtype, number of axes and eight extents, as int64
_ALIGN = 64


def array_names(arrays: Any) -> str | None:
    """The names that arrays= gives, as the engine takes them."""
    if arrays is None:
        return None
    names = [arrays] if isinstance(arrays, str) else list(arrays) if isinstance(arrays, Sequence) else [arrays]
    if not names or any(not isinstance(name, str) or not name or "," in name for name in names):
        raise UsageError(f"arrays is a list of names, not {shortened(arrays)}", "arrays=(\"x\", \"y\")", option="arrays")
    if len(set(names)) < len(names):
        raise UsageError(f"arrays names an array twice: {', '.join(names)}", "name each once", option="arrays")
    return ",".join(names)


class Ragged:
    """How packed rows become the data of a batch: ``shapes`` is "pad" or "list", ``names`` are those of the arrays in each file.

    ``padding_bytes`` is what ``memory_limit`` leaves for padded arrays, all that live together.
    """

    def __init__(self, shapes: str, names: list[str], padding_bytes: int) -> None:
        self._pads = shapes == "pad"
        self._names = names or ["data"]
        self._limit = padding_bytes
        self._live = 0  # bytes of padded arrays that somebody holds

    def data_of(self, slab: Any, framework: Any) -> tuple[Any, Any]:
        """The data, and int64 [rows, axes] with the extents of each row; dicts of them by name where a file has several arrays."""
        data, lengths = {}, {}
        for name, (dtype, rows) in zip(self._names, _unpacked(slab, len(self._names)), strict=True):
            rank = max((row.ndim for row in rows), default=0)
            extents = numpy.array([row.shape for row in rows], numpy.int64).reshape(len(rows), rank)
            lengths[name] = extents
            if self._pads:
                self._admit(_padded_bytes(rows, extents))
                padded = _padded(rows, extents)
                self._live += padded.nbytes
                weakref.finalize(padded, self._forget, padded.nbytes).atexit = False
                data[name] = framework.tensor(_Made(padded, dtype), 0)
            else:
                data[name] = [framework.tensor(_Made(row, dtype), 0) for row in rows]
        if len(data) > 1:
            return data, lengths
        return next(iter(data.values())), next(iter(lengths.values()))


    def _admit(self, wanted: int) -> None:
        if self._live + wanted <= self._limit:
            return
        text = _engine.format_bytes
        enough = -(-2 * (max(self._live, wanted) + wanted) // 10**6)  # a loop holds its batch until it has the next one
        held = f", and batches that are still in use take {text(self._live)}" if self._live else ""
        raise UsageError(f"a padded batch takes {text(wanted)}{held}: memory_limit leaves {text(self._limit)} for padded batches, half of it",
                         f"raise memory_limit to {enough}MB, lower batch_size, or use shapes=\"list\"",
                         option="memory_limit")

    def _forget(self, size: int) -> None:
        self._live -= size


class _Made:
    """An array as a framework takes those of the engine."""

    def __init__(self, array: numpy.ndarray, dtype: str) -> None:
        self._array, self._dtype = array, dtype

    def numpy(self, _: int) -> Any:
        return self._array

    def dlpack(self, _: int) -> Any:
        return self._array

    def dtype(self, _: int) -> str:
        return self._dtype


def _unpacked(slab: Any, count: int) -> list[tuple[str, list[numpy.ndarray]]]:
    """For each of ``count`` arrays of a file its dtype, and those of all rows, in place."""
    packed, places, lengths = slab.numpy(0), slab.places().tolist(), slab.lengths().tolist()
    rows: list[list[Any]] = [[] for _ in range(count)]
    names, ranks = ["uint8"] * count, [1] * count
    for place, length in zip(places, lengths, strict=True):
        if length == 0:  # a bad sample that became zeros
            for one in rows:
                one.append(None)
            continue
        heads = packed[place : place + count * _HEAD].view(numpy.int64).reshape(count, _HEAD // 8).tolist()
        at = place + _up(count * _HEAD)
        for number, (code, rank, *shape) in enumerate(heads):
            names[number], ranks[number] = _engine.dtype_name(code), rank
            dtype = _dtype(names[number])
            size = int(numpy.prod(shape[:rank], dtype=numpy.int64)) * dtype.itemsize
            rows[number].append(packed[at : at + size].view(dtype).reshape(shape[:rank]))
            at += _up(size)
    return [(name, [numpy.zeros((0,) * rank, _dtype(name)) if row is None else row for row in one])
            for name, rank, one in zip(names, ranks, rows, strict=True)]


def _padded_bytes(rows: list[numpy.ndarray], extents: numpy.ndarray) -> int:
    """Of what :func:`_padded` makes, as a number of Python: the product of extents may need more than 64 bits."""
    return math.prod(extents.max(axis=0, initial=0).tolist(), start=len(rows) * (rows[0].dtype.itemsize if rows else 1))


def _padded(rows: list[numpy.ndarray], extents: numpy.ndarray) -> numpy.ndarray:
    """One array of all rows, filled up with zeros behind the end of each axis."""
    largest = extents.max(axis=0, initial=0).tolist()
    padded = numpy.zeros((len(rows), *largest), rows[0].dtype if rows else numpy.uint8)
    for to, row in zip(padded, rows, strict=True):
        to[tuple(map(slice, row.shape))] = row
    return padded


def _dtype(name: str) -> numpy.dtype[Any]:
    return numpy.dtype("uint16" if name == "bfloat16" else name)


def _up(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN
