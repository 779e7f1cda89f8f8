"""What a loader loads: an address, or a list of samples, as a data set of the engine."""

from __future__ import annotations

import numbers
import os
import sys
from collections.abc import Sequence
from typing import Any

from . import _engine
from .errors import UsageError, shortened
from .paths import as_path as _path
from .volumes import Volumes


class Numbered(list[str]):
    """Paths of samples= that are known by their places: the random draws do not depend on where the files lie."""


def open_source(source: Any, samples: Any, *, label: str | Sequence[str] | None, cache_dir: Any,
                options: dict[str, Any]) -> tuple[_engine.Dataset, list[str]]:
    if (source is None) == (samples is None):
        raise UsageError("give a source or samples=, and not both" if source is not None else "no source was given",
                         "stoker.Loader(\"data/train\"), stoker.Loader(samples=[(path, label), ...]) or stoker.Loader(dataset=...)")
    if samples is not None:
        if label is not None:
            raise UsageError("label= names a column of an index.csv; samples= brings its own labels")
        return _from_samples(samples, options)
    if isinstance(source, Volumes):
        if label is not None:
            raise UsageError("label= names a column of an index.csv; the labels of volumes are their numbers")
        return source._open(options, use_cache=cache_dir is not False), []
    if not isinstance(source, (str, bytes, os.PathLike)):
        raise UsageError(f"source is a path, not a {type(source).__name__}",
                         "a list goes to samples=[(path, label), ...]; of a torchvision ImageFolder take .root or samples=folder.samples")
    dataset = _engine.open_dataset(
        _path(source, "source"), label=_label_columns(label), use_cache=cache_dir is not False, options=options)
    return dataset, []


def open_items(dataset: Any, options: dict[str, Any]) -> _engine.Dataset:
    """The items of a map-style Dataset, by number."""
    torch = sys.modules.get("torch.utils.data")
    if torch is not None and isinstance(dataset, torch.IterableDataset) or not hasattr(dataset, "__getitem__"):
        raise UsageError(f"dataset= takes a map-style Dataset, with __getitem__ and __len__, not {type(dataset).__name__}",
                         "a Dataset that is iterated has no order of its own: use torch's DataLoader for it", option="dataset")
    try:
        count = len(dataset)
    except (TypeError, NotImplementedError):
        raise UsageError(f"dataset= takes a Dataset that has a length, and {type(dataset).__name__} has none", "give it __len__", option="dataset") from None
    return _engine.dataset_of_numbers(count, name=type(dataset).__name__, options=options)


def cache_folder(cache_dir: Any, cache_limit: Any) -> str | None:
    """The folder that cache_dir= names; None: the engine's own."""
    if cache_dir is False and cache_limit is not None:
        raise UsageError("cache_limit= keeps objects in cache_dir, and cache_dir=False keeps nothing", "give a folder, or leave cache_dir out",
                         option="cache_limit")
    return None if cache_dir is None or isinstance(cache_dir, bool) else _path(cache_dir, "cache_dir")


def class_names(class_list: Any) -> Any:
    """A list of names, or the path of a file that names them; the engine refuses the rest."""
    if isinstance(class_list, (bytes, os.PathLike)):
        return _path(class_list, "class_list")
    return list(class_list) if isinstance(class_list, Sequence) and not isinstance(class_list, str) else class_list


def _label_columns(label: Any) -> list[str]:
    """The columns that label= names; none: the engine looks for one named `label`."""
    columns = [] if label is None else [label] if isinstance(label, str) else list(label) if isinstance(label, Sequence) else [label]
    wrong = [column for column in columns if not isinstance(column, str)]
    if wrong or (label is not None and label != "" and not columns):
        raise UsageError(f"label= is a column of the index.csv, or a list of columns, not {shortened(label)}", "label=\"label\", or label=[\"left\", \"right\"]")
    return [column for column in columns if column or len(columns) > 1]


def _from_samples(samples: Any, options: dict[str, Any]) -> tuple[_engine.Dataset, list[str]]:
    paths: list[str] = []
    labels: list[Any] = []
    for entry in samples:
        path, label = entry if isinstance(entry, (tuple, list)) and len(entry) == 2 else (entry, None)
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise UsageError(f"samples= takes (path, label) or path, not {shortened(entry)}")
        paths.append(_path(path, "samples="))
        labels.append(label)
    kinds = {"none" if label is None else "text" if isinstance(label, str) else "integer" if isinstance(label, numbers.Integral)
             else "real" if isinstance(label, numbers.Real) else type(label).__name__ for label in labels}
    if kinds == {"integer", "real"}:
        kinds = {"real"}
    kind = kinds.pop() if len(kinds) == 1 else "none" if not kinds else "mixed"
    if kind not in ("none", "text", "integer", "real"):
        raise UsageError(f"samples= has labels of different kinds: {', '.join(sorted(kinds)) or kind}" if kind == "mixed" else f"samples= has labels of type {kind}",
                         "all whole numbers, all reals, all texts, or none")
    classes: list[str] = []
    if kind == "text":
        classes = sorted(set(labels))
        places = {name: place for place, name in enumerate(classes)}
        labels, kind = [places[label] for label in labels], "integer"
    if kind == "integer":
        for place, label in enumerate(labels):
            if not -2**63 <= int(label) < 2**63:
                raise UsageError(f"the label of sample {place} of samples=, {shortened(label)}, is beyond the integers that fit 64 bits",
                                 "whole numbers from -2**63 to 2**63-1 are labels; as float they are float32")
    narrows = options.get("class_list") is not None or options.get("class_subset") is not None
    dataset = _engine.dataset_from_list(
        paths, classes=classes if narrows else [], integers=[int(label) for label in labels] if kind == "integer" else [],
        reals=[float(label) for label in labels] if kind == "real" else [], label_kind=kind,
        ids_are_places=isinstance(samples, Numbered), options=options)
    return dataset, [] if narrows else classes  # the engine has renumbered those that are left
