"""A batch as the training loop sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy

from .errors import UsageError
from .ragged import Ragged

__all__ = ["Batch"]

_ROW_VALUES = ("ids", "indices", "valid", "lengths")


class Batch:
    """One batch: unpacks to ``(data, labels)``, and is indexed like that pair.

    ``data`` is one array; with ``Views`` a dict of arrays by group name. ``outputs`` is the dict by name in either case, and
    ``batch["name"]`` one of them. ``labels`` has one entry per row, or a row of them where ``label=`` names several columns. Arrays lie in the loader's memory and keep it:
    the slab is used again when the last of them (and this object) is gone. ``Loader(copy=True)`` gives arrays of their own.

    ``ids`` (stable sample ids), ``indices`` (into the data set), ``valid`` (False: padding or a zeroed bad sample),
    ``lengths`` (true frames of audio, bytes with ``decode="none"``, with ``shapes="pad"`` or ``"list"`` the extents of each array, else None)
    have one entry per row; ``names`` lists the files.
    ``rows`` lists the rows one by one, without the padding that equal lengths need.
    Of volumes: ``image``, ``mask`` (None without masks), ``coords`` and ``volumes``, the numbers of the volumes in the list; with masks the batch
    unpacks to ``(image, mask)``. ``as_dict()`` gives all of them under the names that MONAI uses.
    ``coords`` says where each row lies in the sample it is cut from; None where rows are whole samples. ``epoch`` is the epoch of the batch,
    and ``step`` counts the batches of the iterator from 0: after a resume it begins at 0 again.
    """

    __slots__ = ("_data", "_labels", "_rows", "_slab", "_framework", "_names_of", "epoch", "step", "size", "coords", "_is_packed", "_has_tails", "_extents", "__weakref__")

    def __init__(self, slab: Any, framework: Any, names_of: Callable[[Any], list[str]], ragged: Ragged | None = None) -> None:
        names = slab.tensor_names
        self._slab = slab
        self._framework = framework
        self._names_of = names_of
        self._rows: dict[str, numpy.ndarray] = {}
        self._extents: Any = None  # of each array, where shapes differ
        self._is_packed: bool = slab.packs_rows and ragged is None  # encoded bytes, row after row; the padded array is made when it is asked for
        self._has_tails = True  # where rows have lengths, what lies behind them is padding
        if ragged is not None:
            self._data, self._extents = ragged.data_of(slab, framework)
        else:
            self._data = (None if self._is_packed else framework.tensor(slab, 0) if len(names) == 1 and names[0] == "data"
                          else {name: framework.tensor(slab, index) for index, name in enumerate(names)})
        self._labels = framework.from_numpy(slab.labels())
        coords = slab.coords()
        self.epoch: int = slab.epoch
        self.step: int = slab.step
        self.size: int = slab.size
        self.coords: Any = None if coords is None else framework.from_numpy(coords)

    @property
    def data(self) -> Any:
        if self._data is None:
            self._data = self._framework.from_numpy(self._padded())
        return self._data

    @property
    def rows(self) -> list[Any]:
        """Each row as an array of its own, in place: without padding, where rows have lengths."""
        if isinstance(self._data, dict):
            raise UsageError(f"cannot list the rows of {len(self._data)} tensors as one", "take one group: batch.data[name]")
        if self._data is None:
            return [self._framework.from_numpy(row) for row in self._packed_rows()]
        if self._extents is not None and self._has_tails:
            return [row[tuple(map(slice, extents))] for row, extents in zip(self._data, self._extents.tolist(), strict=True)]
        lengths = self._row_values("lengths")
        if len(lengths) == 0 or not self._has_tails:
            return list(self._data)
        return [row[..., :length] for row, length in zip(self._data, lengths.tolist(), strict=True)]

    @property
    def outputs(self) -> dict[str, Any]:
        """Every array of the batch by its name: ``{"data": ...}``, or those of ``Views``."""
        return dict(self.data) if isinstance(self.data, dict) else {"data": self.data}

    @property
    def labels(self) -> Any:
        return self._labels

    @property
    def image(self) -> Any:
        """The patches, where samples are patches of volumes."""
        return self["image"]

    @property
    def mask(self) -> Any:
        """The patches of the masks; None where the volumes have none."""
        return self.outputs.get("mask")

    @property
    def volumes(self) -> Any:
        """For each patch the number of its volume in the list."""
        self["image"]  # only patches have one
        return self._labels

    def as_dict(self) -> dict[str, Any]:
        """The arrays by name, as MONAI's transforms and networks take them: ``image``, ``label`` (the mask), ``coords``, ``volume``.

        Without patches: the outputs by name, and ``label``.
        """
        outputs = self.outputs
        if "image" not in outputs or self.coords is None:
            return {**outputs, "label": self._labels}
        named = {"image": outputs["image"], "coords": self.coords, "volume": self._labels}
        if "mask" in outputs:
            named["label"] = outputs["mask"]
        return named

    @property
    def ids(self) -> Any:
        return self._framework.from_numpy(self._row_values("ids"))

    @property
    def indices(self) -> Any:
        return self._framework.from_numpy(self._row_values("indices"))

    @property
    def valid(self) -> Any:
        return self._framework.from_numpy(self._row_values("valid"))

    @property
    def lengths(self) -> Any:
        if self._extents is not None:
            return each(self._extents, self._framework.from_numpy)
        lengths = self._row_values("lengths")
        return None if len(lengths) == 0 and self.size else self._framework.from_numpy(lengths)

    @property
    def names(self) -> list[str]:
        return self._names_of(self._row_values("indices"))

    def to(self, device: Any, non_blocking: bool = False) -> Batch:
        """Moves the torch tensors ``data`` and ``labels`` to a device and returns this batch. Trainers call it.

        ``ids`` and the other values of rows stay in host memory.
        """
        if self._framework.NAME != "torch":
            raise UsageError(f"cannot move {self._framework.NAME} arrays to {str(device)!r}: batch.to() works with torch tensors", "Loader(output=\"torch\")")
        before = self.data, self._labels
        data, labels = (each(array, lambda array: array.to(device, non_blocking=non_blocking)) for array in before)
        if data is not before[0] or labels is not before[1]:
            self._leave_slab(data, labels)
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pair())

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int | slice | str) -> Any:
        if isinstance(index, str):
            outputs = self.outputs
            if index not in outputs:
                raise KeyError(f"a batch has no output {index!r}: it has {', '.join(outputs)}")
            return outputs[index]
        return self._pair()[index]

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._only_tensor().__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._only_tensor().__dlpack_device__()

    def __reduce__(self) -> Any:
        raise UsageError("cannot pickle a Batch: its arrays lie in the loader's memory",
                         "pickle copies: numpy.array(batch.data), or use Loader(copy=True) and pickle batch.data")

    def __repr__(self) -> str:
        if isinstance(self._data, dict):
            data = ", ".join(f"{name}: {_shape(array)}" for name, array in self._data.items())
        elif self._data is None:
            data = "encoded bytes"
        else:
            data = _shape(self._data)
        return f"<stoker.Batch of {self.size}: {data}; epoch {self.epoch}, step {self.step}>"

    def _pair(self) -> tuple[Any, Any]:
        """What the batch unpacks to."""
        if self.coords is None or not isinstance(self._data, dict) or "image" not in self._data:
            return self.data, self._labels
        return self._data["image"], self._data.get("mask", self._labels)

    def _only_tensor(self) -> Any:
        if isinstance(self._data, dict) and len(self._data) == 1:
            return next(iter(self._data.values()))
        if isinstance(self._data, dict):
            raise UsageError(f"cannot export {len(self._data)} tensors as one", "take one group: batch.data[name]")
        if isinstance(self._data, list):
            raise UsageError(f"cannot export a list of {len(self._data)} arrays as one", "shapes=\"pad\", or take them one by one")
        return self.data

    def _packed_rows(self) -> list[numpy.ndarray]:
        encoded, places, lengths = self._slab.numpy(0), self._slab.places().tolist(), self._row_values("lengths").tolist()
        return [encoded[place : place + length] for place, length in zip(places, lengths, strict=True)]

    def _padded(self) -> numpy.ndarray:
        rows = self._packed_rows()
        padded = numpy.zeros((len(rows), max(map(len, rows), default=0)), numpy.uint8)
        for to, row in zip(padded, rows, strict=True):
            to[: len(row)] = row
        return padded

    def _row_values(self, word: str) -> numpy.ndarray:
        values = self._rows.get(word)
        if values is None:
            values = getattr(self._slab, word)()
            if word == "valid":
                values = values.view(numpy.bool_)
            self._rows[word] = values
        return values

    def _replace(self, data: Any, labels: Any) -> None:
        self._data, self._labels = data, labels
        self._has_tails = False

    def _copy_out(self) -> None:
        """Arrays of their own; the slab is free at once."""
        data = self.data if self._data is None else each(self._data, self._framework.copied)  # a padded array is a copy already
        self._leave_slab(data, self._framework.copied(self._labels))

    def _leave_slab(self, data: Any, labels: Any, keep: Any = slice(None)) -> None:
        """Takes new data and labels, and copies of the values of the rows in ``keep``."""
        for word in _ROW_VALUES:
            values = self._row_values(word)
            self._rows[word] = values[keep].copy() if len(values) else values.copy()
        if self.coords is not None:
            self.coords = self._framework.copied(self.coords[keep])
        if self._extents is not None:
            self._extents = each(self._extents, lambda extents: extents[keep])
        self.size = len(self._rows["ids"])
        self._data, self._labels = data, labels
        self._slab = None


def each(data: Any, function: Callable[[Any], Any]) -> Any:
    """Of one array, or of each in a dict or a list."""
    if isinstance(data, dict):
        return {name: each(array, function) for name, array in data.items()}
    return [function(array) for array in data] if isinstance(data, list) else function(data)


def _shape(array: Any) -> str:
    if isinstance(array, list):
        return f"list of {len(array)} arrays"
    return f"{getattr(array, 'dtype', type(array).__name__)} {list(getattr(array, 'shape', []))}"
