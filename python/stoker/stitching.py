"""Predictions of patches, put back into a volume."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from .arguments import choice
from .errors import Note, UsageError, shortened

__all__ = ["stitch"]

_BLENDS = ("linear", "gaussian", "mean")


def stitch(predictions: Any, coords: Any, shape: Sequence[int], *, blend: str = "linear", out: Any = None) -> Any:
    """Puts predictions of the patches of a grid back into one volume; where patches overlap they are blended.

    ::

        volumes = stoker.Volumes(["a.npy"], patch=64, sampling="grid", overlap=0.5, normalize="zscore")
        def predicted():
            for batch in stoker.Loader(volumes, batch_size=4):
                yield model(batch.image), batch.coords
        volume = stoker.stitch(predicted(), None, (200, 512, 512))

    predictions: one array [N, depth, height, width] or [N, channels, depth, height, width]; or an iterable of such arrays, one per batch.
    coords: the corners, int [N, 3]; or an iterable, one per batch. ``coords=None``: predictions is an iterable of pairs (predictions, coords).
    shape: depth, height and width of the volume. Predictions beyond it, of padded patches, are left out.
    blend: weights inside a patch: "linear" and "gaussian" count its middle more than its rim, "mean" counts all alike.
    out: None returns an array; an array is filled (a numpy.memmap keeps the volume on disk); a path becomes a .npy, which is returned mapped.

    Memory, beside the result: as many planes as are open, which are those of one patch where patches come in the order of the grid.
    Results are float32; an ``out`` of whole numbers gets them rounded. A ``stoker.Note`` counts the elements that no patch covers.
    """
    blend = choice("blend", blend, _BLENDS)
    extents = tuple(int(edge) for edge in shape)
    if len(extents) != 3 or min(extents) < 1:
        raise UsageError(f"shape is depth, height and width, not {shortened(shape)}", option="shape")
    slabs: _Slabs | None = None
    try:
        for batch, corners in _batches(predictions, coords):
            if slabs is None:
                slabs = _Slabs(batch.shape[1:], extents, blend, out)
            if batch.shape[1:] != slabs.patch_shape:
                raise UsageError(f"predictions have different shapes: {list(slabs.patch_shape)} and {list(batch.shape[1:])}", "predict patches of one size", option="predictions")
            for prediction, corner in zip(batch, corners, strict=True):
                slabs.add(prediction, corner)
        if slabs is None:
            raise UsageError("there are no predictions to put together", option="predictions")
        return slabs.finish()
    except BaseException:
        if slabs is not None:
            slabs.drop()
        raise


class _Slabs:
    """Sums and weights of the planes that may still change. A plane is closed when a patch begins behind it."""

    def __init__(self, patch_shape: tuple[int, ...], extents: tuple[int, ...], blend: str, out: Any) -> None:
        if len(patch_shape) not in (3, 4):
            raise UsageError(f"a prediction has the dimensions {list(patch_shape)}, not [depth, height, width], with channels before them where it has some",
                             "predictions are [N, depth, height, width] or [N, channels, depth, height, width]", option="predictions")
        self.patch_shape = patch_shape
        self._patch = patch_shape[-3:]
        self._channels = patch_shape[:-3]
        self._extents = extents
        self._weights = _weights(self._patch, blend)
        self._path = os.fspath(out) if isinstance(out, (str, os.PathLike)) else None
        self._out = _target(out if self._path is None else _aside(self._path), (*self._channels, *extents))
        self._first = 0  # planes before it are closed
        self._missing = 0  # elements that no patch has
        self._sums: list[numpy.ndarray] = []
        self._totals: list[numpy.ndarray] = []

    def add(self, prediction: numpy.ndarray, corner: numpy.ndarray) -> None:
        z, y, x = (int(at) for at in corner)
        inside = [min(edge, extent - at) for edge, extent, at in zip(self._patch, self._extents, (z, y, x), strict=True)]
        if min(z, y, x) < 0 or min(inside) < 1:
            raise UsageError(f"the patch at {[z, y, x]} lies outside of the volume {list(self._extents)}", "shape is that of the volume the patches were cut from", option="coords")
        if z < self._first:
            raise UsageError(f"the patch at {[z, y, x]} comes after patches that begin deeper: planes before {self._first} are closed",
                             "give patches in the order of the grid (shuffle=False), or all in one array", option="coords")
        self._close(z)
        while len(self._sums) < z + inside[0] - self._first:
            self._sums.append(numpy.zeros((*self._channels, *self._extents[1:]), numpy.float32))
            self._totals.append(numpy.zeros(self._extents[1:], numpy.float32))
        rows, columns = slice(y, y + inside[1]), slice(x, x + inside[2])
        for plane in range(inside[0]):
            weights = self._weights[plane, : inside[1], : inside[2]]
            at = z + plane - self._first
            self._sums[at][..., rows, columns] += weights * prediction[..., plane, : inside[1], : inside[2]]
            self._totals[at][rows, columns] += weights

    def finish(self) -> Any:
        self._close(self._extents[0])
        if self._missing:
            whole = self._extents[0] * self._extents[1] * self._extents[2]
            warnings.warn(f"stitch: no patch covers {self._missing:,} of {whole:,} elements of the volume; they are 0", Note, stacklevel=3)
        if isinstance(self._out, numpy.memmap):
            self._out.flush()
        if self._path is not None:
            os.replace(_aside(self._path), self._path)
            return numpy.lib.format.open_memmap(self._path, mode="r+")
        return self._out

    def drop(self) -> None:
        """Leaves nothing of an .npy that did not become whole."""
        if self._path is not None and os.path.exists(_aside(self._path)):
            os.remove(_aside(self._path))

    def _close(self, end: int) -> None:
        while self._first < end:
            if self._sums:
                total = self._totals.pop(0)
                plane = self._sums.pop(0) / numpy.where(total > 0, total, 1)
                self._missing += int(numpy.count_nonzero(total == 0))
                self._out[..., self._first, :, :] = plane if self._out.dtype.kind == "f" else numpy.rint(plane)
            else:
                self._out[..., self._first, :, :] = 0  # no patch has it
                self._missing += self._extents[1] * self._extents[2]
            self._first += 1


def _aside(path: Any) -> str:
    """An .npy appears under its name when it is whole; what was there before stays until then."""
    return f"{os.fsdecode(path)}.part"


def _batches(predictions: Any, coords: Any) -> Iterable[tuple[numpy.ndarray, numpy.ndarray]]:
    if coords is None:
        if _is_array(predictions):
            raise UsageError("coords is missing: where do the predictions lie?", "coords=batch.coords, or pairs (predictions, coords)", option="coords")
        pairs: Iterable[tuple[Any, Any]] = predictions
    elif _is_array(predictions) and _is_array(coords):
        # In one array they may lie in any order: sorted by depth, planes are closed one after another.
        corners = _corners(coords)
        array = _as_numpy(predictions)
        _check_counts(array, corners)
        for number in numpy.argsort(corners[:, 0], kind="stable"):
            yield array[number : number + 1], corners[number : number + 1]
        return
    else:
        pairs = zip(predictions, coords, strict=True)
    for one, where in pairs:
        batch, corners = _as_numpy(one), _corners(where)
        _check_counts(batch, corners)
        order = numpy.argsort(corners[:, 0], kind="stable")
        yield batch[order], corners[order]


def _check_counts(batch: numpy.ndarray, corners: numpy.ndarray) -> None:
    if batch.ndim < 1 or len(batch) != len(corners):
        raise UsageError(f"there are {len(batch) if batch.ndim else 0} predictions and {len(corners)} coords", "each prediction has its corner", option="coords")


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def _as_numpy(value: Any) -> numpy.ndarray:
    if hasattr(value, "detach"):  # torch, also on a device
        value = value.detach().cpu()
        if "bfloat16" in str(value.dtype):  # numpy has no such type
            value = value.float()
    return numpy.asarray(value)


def _corners(value: Any) -> numpy.ndarray:
    corners = _as_numpy(value)
    if corners.ndim != 2 or corners.shape[1] != 3 or corners.dtype.kind not in "iu":
        raise UsageError(f"coords is an array of whole numbers [N, 3], not {corners.dtype} {list(corners.shape)}", "batch.coords has them", option="coords")
    return corners


def _weights(patch: tuple[int, ...], blend: str) -> numpy.ndarray:
    """One weight for each element of a patch, above 0 everywhere."""
    def along(edge: int) -> numpy.ndarray:
        from_middle = numpy.abs(numpy.arange(edge) - (edge - 1) / 2) / (edge / 2)  # below 1
        if blend == "mean":
            return numpy.ones(edge)
        return 1 - from_middle if blend == "linear" else numpy.exp(-0.5 * (from_middle / 0.25) ** 2)
    depth, height, width = (along(edge) for edge in patch)
    return numpy.asarray(depth[:, None, None] * height[None, :, None] * width[None, None, :], numpy.float32).clip(1e-6, None)


def _target(out: Any, shape: tuple[int, ...]) -> Any:
    if out is None:
        return numpy.empty(shape, numpy.float32)
    if isinstance(out, (str, os.PathLike)):
        return numpy.lib.format.open_memmap(os.fspath(out), mode="w+", dtype=numpy.float32, shape=shape)
    if not isinstance(out, numpy.ndarray) or out.shape != shape:
        raise UsageError(f"out is an array of the shape {list(shape)}, or the path of an .npy, not {shortened(out)}", option="out")
    return out
