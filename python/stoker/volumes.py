"""Volumes, and which patches of them are samples."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable, Sequence
from typing import Any

from . import _engine
from .arguments import TOO_LARGE, choice, switch, whole_count
from .errors import UsageError, shortened
from .paths import as_path

__all__ = ["Volumes"]

_AXES = "zyx"


class Volumes:
    """Patches of 3-D volumes, for a :class:`stoker.Loader`.

    ::

        volumes = stoker.Volumes([("a.npy", "a_mask.npy"), ("b.npy", "b_mask.npy")], patch=(72, 136, 136), samples=2000, normalize="zscore")
        for image, mask in stoker.Loader(volumes, batch_size=4, shuffle=True):
            train_step(image, mask)                # float32 [4, 72, 136, 136], and the masks as they are stored

    volumes: a list of paths, or of pairs (image, mask); or a volumes.csv with the columns image, mask and weight; or a folder that
      ``stoker prepare dicom`` wrote.
    patch: depth, height and width; one number stands for all three.
    samples: patches of an epoch, of all volumes together. weights: the shares of the volumes, relative to each other; without them all have the same.
    sampling: "uniform" draws corners at random, every one with the same probability; "grid" takes every patch of a grid that covers the volumes, each once.
    overlap: of neighbours in the grid: elements (one number, or one per axis), or a share of the patch below 1.
    foreground: the share of the patches of each volume that contain label, by a mask that is not 0.
    normalize: None leaves elements as they are stored; "zscore" uses mean and deviation of each patch; ("window", low, high) maps to 0..1 and clips;
      ("scale", factor, summand) multiplies and adds. All but None give float32.
    flip: True mirrors each axis at random, "yx" only these; turn: True turns by a random number of right angles in the plane of height and width.
    ``transform=`` of the loader takes :class:`stoker.RandFlip`, :class:`stoker.RandRotate90`, :class:`stoker.RandAffine` and operations on values.
    pad: True fills up volumes that are smaller than the patch with zeros behind their end; False refuses them.
    where: only rows of the volumes.csv whose columns match, such as 'split=="train" and weight>0'. It may have columns of its own for that.
    level: of an OME-Zarr pyramid, 0 is the finest. member, mask_member: the array of an .npz, or the path of an array in a zarr group.

    Batches have ``image``, ``mask``, ``coords`` (int64 [B, 3]: the corner of each patch) and ``volumes`` (the number of each patch's volume).
    """

    def __init__(
        self,
        volumes: str | os.PathLike[str] | Sequence[Any],
        *,
        patch: int | Sequence[int],
        samples: int | None = None,
        weights: Sequence[float] | None = None,
        sampling: str = "uniform",
        overlap: int | float | Sequence[int] = 0,
        foreground: float = 0.0,
        normalize: str | Sequence[Any] | None = None,
        flip: bool | str = False,
        turn: bool = False,
        pad: bool = False,
        where: str | None = None,
        level: int = 0,
        member: str | None = None,
        mask_member: str | None = None,
    ) -> None:
        self.images, self.masks, self.weights = _listed(volumes, weights, _text("where", where))
        self.patch = _extents("patch", patch, least=1)
        self.sampling = choice("sampling", sampling, ("uniform", "grid"))
        if samples is None and self.sampling == "uniform":
            raise UsageError("samples is missing: how many patches has an epoch?", "samples=2000, or sampling=\"grid\" for all of a grid", option="samples")
        self.samples = 0 if samples is None else whole_count("samples", samples)
        if samples is not None and self.sampling == "grid":
            raise UsageError("samples does not go with sampling=\"grid\": the grid says how many patches there are", "leave it out", option="samples")
        self.overlap = _overlap(overlap, self.patch)
        self.foreground = _number("foreground", foreground)
        self.normalize = _normalize(normalize)
        self.flip = _flip(flip)
        self.turn = switch("turn", turn)
        self.pad = switch("pad", pad)
        self.level = whole_count("level", level, least=0)
        self.member = _text("member", member)
        self.mask_member = _text("mask_member", mask_member)

    def __len__(self) -> int:
        """How many volumes there are."""
        return len(self.images)

    def info(self) -> list[dict[str, Any]]:
        """What each volume is: ``image`` (its path), ``shape`` (z, y, x), ``dtype``, ``channels``, ``spacing`` (mm; None: not known), ``chunk`` (None: it has none),
        ``slope`` and ``intercept`` (a value is slope * element + intercept), ``stored_bytes`` (None: not known), ``format``, and ``mask``. Opens every volume."""
        return [{"image": image, **_engine.volume_info(image, level=self.level, member=self.member), "mask": self.masks[number] if self.masks else None}
                for number, image in enumerate(self.images)]

    def __repr__(self) -> str:
        patches = f"{self.samples:,} patches" if self.samples else "a grid of patches"
        return f"<stoker.Volumes {len(self)} volumes{' with masks' if self.masks else ''}: {patches} of {'x'.join(map(str, self.patch))}>"

    def _open(self, options: dict[str, Any], *, use_cache: bool = True) -> _engine.Dataset:
        how, first, second = self.normalize
        return _engine.open_volumes(
            self.images, masks=self.masks, weights=self.weights, patch=self.patch, samples=self.samples, is_grid=self.sampling == "grid",
            overlap=self.overlap, foreground=self.foreground, pad=self.pad, flip=self.flip, turn=self.turn, normalize=how, first=first, second=second,
            level=self.level, member=self.member, mask_member=self.mask_member, use_cache=use_cache, options=options)


def _listed(volumes: Any, weights: Any, where: str) -> tuple[list[str], list[str], list[float]]:
    """The images, the masks (none, or as many), and a weight for each."""
    if isinstance(volumes, (str, bytes, os.PathLike)):
        address = as_path(volumes, "volumes")
        if csv := _engine.volumes_csv_of(address):
            images, masks, shares = _engine.read_volumes_csv(csv, where=where)
            if weights is not None:
                raise UsageError("weights= does not go with a volumes.csv: its column weight has them", "leave weights out", option="weights")
            return images, masks if any(masks) else [], shares
        volumes = [address]
    if where:
        raise UsageError("where does not go with volumes that are named one by one: it selects rows of a volumes.csv", "name the volumes that you want", option="where")
    if not isinstance(volumes, Sequence):
        raise UsageError(f"volumes is a list of paths or of pairs (image, mask), not {shortened(volumes)}", "stoker.Volumes([\"a.npy\"], patch=64, samples=100)")
    images, masks = [], []
    for entry in volumes:
        pair = entry if isinstance(entry, (tuple, list)) else (entry, None)
        if len(pair) != 2 or not isinstance(pair[0], (str, bytes, os.PathLike)) or not (pair[1] is None or isinstance(pair[1], (str, bytes, os.PathLike))):
            raise UsageError(f"volumes has paths or pairs (image, mask), not {shortened(entry)}")
        images.append(as_path(pair[0], "volumes"))
        masks.append("" if pair[1] is None else as_path(pair[1], "volumes"))
    if not images:
        raise UsageError("volumes is empty: there is nothing to take patches from", "name at least one")
    shares = [1.0] * len(images)
    if weights is not None:
        if isinstance(weights, (str, bytes)) or not isinstance(weights, Iterable):
            raise UsageError(f"weights is a list with one number for each volume, not {shortened(weights)}", "weights=[1, 3]", option="weights")
        shares = [_number("weights", weight) for weight in weights]
        if len(shares) != len(images):
            raise UsageError(f"weights has {len(shares)} numbers for {len(images)} volumes", "give one for each", option="weights")
    return images, masks if any(masks) else [], shares


def _number(word: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(float(value)):
        raise UsageError(f"{word} is a number, not {shortened(value)}", option=word)
    return float(value)


def _extents(word: str, value: Any, *, least: int) -> tuple[int, int, int]:
    if hasattr(value, "tolist"):  # a number or an array of numpy or torch
        value = value.tolist()
    values = [value] * 3 if isinstance(value, numbers.Integral) else list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
    if len(values) != 3 or not all(isinstance(one, numbers.Integral) and not isinstance(one, bool) and least <= int(one) < TOO_LARGE for one in values):
        raise UsageError(f"{word} is depth, height and width as whole numbers of at least {least}, not {shortened(value)}", f"{word}=(72, 136, 136)", option=word)
    return int(values[0]), int(values[1]), int(values[2])


def _overlap(value: Any, patch: tuple[int, int, int]) -> tuple[int, int, int]:
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        if not 0 <= float(value) < 1:
            raise UsageError(f"overlap is a share of the patch from 0 to below 1, or a number of elements, not {value!r}", "overlap=0.5", option="overlap")
        depth, height, width = (int(edge * float(value)) for edge in patch)
        return depth, height, width
    return _extents("overlap", value, least=0)


def _normalize(value: Any) -> tuple[str, float, float]:
    wrong = UsageError(f"normalize is None, \"zscore\", (\"window\", low, high) or (\"scale\", factor, summand), not {shortened(value)}", option="normalize")
    if value is None:
        return "none", 0.0, 0.0
    if isinstance(value, str):
        if value != "zscore":
            raise wrong
        return "zscore", 0.0, 0.0
    if not isinstance(value, Sequence) or len(value) != 3 or value[0] not in ("window", "scale"):
        raise wrong
    return value[0], _number("normalize", value[1]), _number("normalize", value[2])


def _flip(value: Any) -> tuple[bool, bool, bool]:
    if isinstance(value, str):
        if not value or any(axis not in _AXES for axis in value):
            raise UsageError(f"flip is True, False or axes of \"zyx\", not {value!r}", "flip=\"yx\"", option="flip")
        return "z" in value, "y" in value, "x" in value
    on = switch("flip", value)
    return on, on, on


def _text(word: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UsageError(f"{word} is a text, not {shortened(value)}", option=word)
    return value
