"""PackWriter: packs of what a program makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from . import _engine
from .arguments import byte_count
from .errors import UsageError


class PackWriter:
    """Writes a pack batch by batch: results of a GPU loop, features, synthetic data.

    ::

        with stoker.PackWriter("features.pack") as writer:
            for images, labels, ids in batches:
                if writer.has(ids).all():
                    continue                                # a run before this one had them
                writer.append(model(images), ids, labels)
        loader = stoker.Loader("features.pack", batch_size=256, shuffle=True)

    :meth:`append` copies and returns; a thread of the writer's own writes, with at most ``memory_limit`` bytes waiting. What was written
    is safe after a few seconds, or :meth:`flush`, even from ``kill -9``: a writer of the same ``dest`` goes on with it, and rows whose id
    is there already are passed over. The pack has its name once the writer is closed; after an exception inside ``with`` it is not made,
    and the next writer goes on. A pack that a writer finished can be opened again, to add to it. One pack per split: one writer each.

    Args:
      dest: the pack to make, such as ``"train.pack"``.
      classes: names, where labels are their indices; labels may then be names as well.
      shard_size: bytes of one file of the pack, or "1GB". memory_limit: bytes that may wait to be written.
      force: start over on a pack, or over the rows of an interrupted writer.
    """

    def __init__(self, dest: str, *, classes: Sequence[str] | None = None, shard_size: int | str = "1GB",
                 memory_limit: int | str = "256MB", force: bool = False) -> None:
        self._classes = {name: number for number, name in enumerate(classes or ())}
        self._builder = _engine.PackBuilder(
            _path(dest), classes=[str(name) for name in classes or ()], shard_size=byte_count("shard_size", shard_size),
            memory_limit=_engine.checked_option("memory_limit", memory_limit) or 0, force=bool(force))
        self.dest = dest

    def append(self, arrays: Any, ids: Any, labels: Any = None, names: Iterable[str] | None = None) -> int:
        """Adds rows; returns how many were new.

        arrays: ``[rows, ...]`` from numpy, torch (any device) or jax; all appended arrays have one dtype and row shape.
        ids: whole numbers from 0 on, one per row and each once in a pack: order and augmentation are keyed by them.
        labels: whole numbers, reals, or names of ``classes``; the same kind for all rows. names: for people; default the id.
        """
        array, dtype = _array(arrays)
        if array.ndim == 0:
            raise UsageError("cannot append a single number: arrays are [rows, ...]")
        numbers = numpy.ascontiguousarray(_integers(ids, "ids"))
        if len(numbers) != len(array):
            raise UsageError(f"cannot append {len(array)} rows with {len(numbers)} ids: each row has one")
        integers, reals, kind = self._labels(labels, len(array))
        texts = [] if names is None else [str(name) for name in names]
        return self._builder.append(array.reshape(-1).view(numpy.uint8), dtype=dtype, shape=list(array.shape[1:]), ids=numbers,
                                    integers=integers, reals=reals, label_kind=kind, names=texts)

    def has(self, ids: Any) -> numpy.ndarray:
        """Which ids are in the pack already, written by this writer or one before it: bools of the shape of ids."""
        numbers = _integers(ids, "ids")
        return numpy.array(self._builder.has(numpy.ascontiguousarray(numbers.reshape(-1))), dtype=bool).reshape(numbers.shape)

    def __len__(self) -> int:
        """Rows so far, with those that were there before."""
        return self._builder.count

    def flush(self) -> None:
        """Returns when everything appended so far is on the disk."""
        self._builder.flush()

    def close(self) -> None:
        """Makes the pack. A second call does nothing."""
        self._builder.close()

    def __enter__(self) -> PackWriter:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()
        else:
            self._builder.abandon()

    def _labels(self, labels: Any, rows: int) -> tuple[numpy.ndarray, numpy.ndarray, str]:
        no_integers, no_reals = numpy.empty(0, numpy.int64), numpy.empty(0, numpy.float32)
        if labels is None:
            return no_integers, no_reals, "none"
        array, _ = _array(labels)
        if array.ndim == 0:
            array = numpy.full(rows, array)
        if array.shape != (rows,):
            raise UsageError(f"cannot append {rows} rows with labels of shape {list(array.shape)}: each row has one")
        if array.dtype.kind in "US":
            unknown = sorted({str(name) for name in array} - self._classes.keys())
            if unknown:
                raise UsageError(f"cannot append a row with the label {unknown[0]!r}: it is none of the classes",
                                 "name all of them: PackWriter(dest, classes=[...])")
            return numpy.array([self._classes[str(name)] for name in array], numpy.int64), no_reals, "integer"
        if array.dtype.kind in "iub":
            return numpy.ascontiguousarray(array, dtype=numpy.int64), no_reals, "integer"
        if array.dtype.kind == "f":
            return no_integers, numpy.ascontiguousarray(array, dtype=numpy.float32), "real"
        raise UsageError(f"cannot use labels of dtype {array.dtype}: they are whole numbers, reals or names")


def _path(dest: Any) -> str:
    import os

    try:
        return os.fsdecode(dest)
    except TypeError:
        raise UsageError(f"dest is a path, not {type(dest).__name__}") from None


def _array(value: Any) -> tuple[numpy.ndarray, str]:
    """A contiguous array on the CPU, and the word for its dtype."""
    if hasattr(value, "detach"):  # a torch tensor, on whatever device
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            import torch

            return numpy.ascontiguousarray(value.contiguous().view(torch.int16).numpy()), "bfloat16"
    array = numpy.asarray(value)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    name = array.dtype.name
    if name == "bfloat16":
        array = array.view(numpy.int16)
    return numpy.ascontiguousarray(array).reshape(array.shape), name


def _integers(value: Any, word: str) -> numpy.ndarray:
    array, _ = _array(value)
    if array.size == 0:
        array = array.astype(numpy.int64)
    if array.dtype.kind not in "iu":
        raise UsageError(f"{word} are whole numbers, not {array.dtype}")
    if array.dtype == numpy.uint64 and (array > numpy.uint64(2**63 - 1)).any():
        raise UsageError(f"{word} are below 2^63")
    return array.astype(numpy.int64)
