"""What the ready-made targets share: which files, in which DataLoader."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

from .. import _engine
from ..errors import UsageError


class Files(Dataset):
    """Files of a folder or an index.csv, each read by ``read(path, row)``; the same ones that ``stoker load`` takes with the same
    ``class_list``, ``class_subset``, ``class_subset_seed``, ``subset`` and ``subset_seed``. ``inflate`` repeats them without copying."""

    def __init__(self, knobs: dict[str, Any], read: Callable[[str, dict[str, str]], Any]) -> None:
        source = knobs.get("source")
        if not source:
            raise UsageError("the target has no data", "name a folder or an index.csv behind it, or give it: --with source=data/train")
        source = os.fspath(source)
        found = _engine.open_dataset(source, label=[], use_cache=True,
                                     options=dict(class_list=_class_names(knobs), class_subset=_count(knobs, "class_subset", 1),
                                                  class_subset_seed=_count(knobs, "class_subset_seed", 0, 42),
                                                  subset=_count(knobs, "subset", 1), subset_seed=_count(knobs, "subset_seed", 0, 42)))
        if not found.kind.startswith(("folder", "index.csv")):
            raise UsageError(f"`{source}` is a {found.kind}, not files of their own", "give a folder or an index.csv")
        self._names = found.names(numpy.arange(len(found), dtype=numpy.int64))
        if not self._names:
            raise UsageError(f"`{source}` has no samples")
        self._root: str = source
        self._rows: dict[str, dict[str, str]] = {}
        if source.endswith(".csv"):
            self._root, self._rows = _index(source, self._names)
        self._classes = {name: number for number, name in enumerate(found.classes)}
        self._inflate = max(1, int(knobs.get("inflate") or 1))
        self._read = read

    def __len__(self) -> int:
        return len(self._names) * self._inflate

    def __getitem__(self, index: int) -> tuple[Any, int]:
        name = self._names[index % len(self._names)]
        row = self._rows.get(name, {})
        label = row.get("label") or name.split(os.sep, 1)[0]
        number = self._classes.get(label)
        return self._read(os.path.join(self._root, name), row), number if number is not None else _whole(label)


def _class_names(knobs: dict[str, Any]) -> Any:
    """Classes by name: ``class_list`` is a file or a list; ``classes=cat,dog`` names them too. ``classes=10`` is a number of classes."""
    named = knobs.get("class_list")
    if named is not None:
        return _names("class_list", named) if isinstance(named, (list, tuple)) else str(named)
    classes = knobs.get("classes")
    if classes is None or isinstance(classes, int) or str(classes).isdigit():
        return None
    return _names("classes", classes.split(",") if isinstance(classes, str) else classes)


def _names(word: str, given: Any) -> list[str]:
    """Names of classes, or UsageError."""
    names = [str(name).strip() for name in given] if isinstance(given, (list, tuple)) else []
    if not names or not all(names):
        raise UsageError(f"{word} is a list of names of classes, not {given!r}", f"for example {word}=cat,dog" if word == "classes" else "or a file with a name per line")
    return names


def _count(knobs: dict[str, Any], word: str, least: int, default: int | None = None) -> int | None:
    """A whole number, or UsageError; none where it is not given."""
    given = knobs.get(word)
    if given is None or given == "" or (given == 0 and least > 0):
        return default
    try:
        number = int(given)
    except (TypeError, ValueError):
        number = least - 1
    if number < least or isinstance(given, bool):
        raise UsageError(f"{word} is a whole number from {least}, not {given!r}", f"for example --with {word}={max(least, 10)}")
    return number


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return -1


def _index(path: str, names: list[str]) -> tuple[str, dict[str, dict[str, str]]]:
    """The folder that paths of an index.csv are below, and its rows by path."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.basename(folder) == "_index":
        folder = os.path.dirname(folder)
    with open(path, newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        rows = list(csv.DictReader(file))
    for column in rows[0] if rows else ():
        by_name = {row[column]: row for row in rows}
        if names[0] in by_name:
            return folder, by_name
    return folder, {}


def loader_of(dataset: Dataset, knobs: dict[str, Any]) -> DataLoader:
    """A shuffled DataLoader with the knobs that it has."""
    workers = int(knobs.get("num_workers", 0))
    prefetch, persistent = knobs.get("prefetch_factor"), bool(knobs.get("persistent_workers", False))
    generator = torch.Generator()
    generator.manual_seed(int(knobs.get("seed", 0)))
    many = {"prefetch_factor": int(prefetch) if prefetch is not None else 2, "persistent_workers": persistent} if workers else {}
    # Random numbers with replacement where the data set is inflated: a permutation of a billion would take 8 GB.
    sampler = torch.utils.data.RandomSampler(dataset, replacement=len(dataset) > 10_000_000, generator=generator)
    return DataLoader(dataset, batch_size=int(knobs.get("batch_size", 32)), sampler=sampler, num_workers=workers,
                      pin_memory=bool(knobs.get("pin_memory", False)), drop_last=True, worker_init_fn=_one_thread, **many)


def _one_thread(_: int) -> None:
    torch.set_num_threads(1)
