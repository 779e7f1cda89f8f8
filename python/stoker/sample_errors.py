"""The bad samples of a run, and files of them."""

from __future__ import annotations

import io
import json
import os
from dataclasses import asdict, dataclass, fields

from .errors import UsageError


@dataclass(frozen=True)
class SampleError:
    """One entry of ``loader.errors``: which file, where, in which stage, why, and what was done about it.

    It is a value, not an exception: nothing raises it. Under ``on_error="raise"`` a bad sample raises :class:`stoker.Error`
    (:class:`stoker.NotFoundError` or :class:`stoker.PermissionDeniedError` where its file cannot be opened). Catch ``stoker.Error``.

    Stage ``"list"`` is a part of the data set that could not be listed, such as a damaged piece of a tar shard: it has no index, id, epoch and position.
    """

    name: str
    index: int | None
    id: int | None
    epoch: int | None
    position: int | None
    stage: str
    cause: str
    offset: int | None
    action: str
    message: str

    def __str__(self) -> str:
        return self.message


class ErrorList(list):
    """The bad samples of a run, as a list that can be written to a file."""

    def to_csv(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """One row per error. An existing file is replaced only with ``force=True``.

        Names keep their bytes: read it with ``open(path, newline="", encoding="utf-8", errors="surrogateescape")``.
        """
        import csv
        text = io.StringIO()
        writer = csv.DictWriter(text, [field.name for field in fields(SampleError)])
        writer.writeheader()
        writer.writerows(asdict(error) for error in self)
        _write_whole(path, text.getvalue(), force)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """As csv or as JSON, by the ending of ``path``. A name read back from either opens the file."""
        if os.fspath(path).endswith(".json"):
            _write_whole(path, json.dumps([asdict(error) for error in self], indent=1) + "\n", force)
        elif os.fspath(path).endswith(".csv"):
            self.to_csv(path, force=force)
        else:
            raise UsageError(f"cannot save errors as `{os.fspath(path)}`", "give a name that ends in .csv or .json")


def _write_whole(path: str | os.PathLike[str], text: str, force: bool) -> None:
    path = os.fspath(path)
    if os.path.exists(path) and not force:
        raise UsageError(f"cannot write `{path}`: it exists", "force=True replaces it")
    aside = f"{path}.{os.getpid()}.part"
    try:
        with open(aside, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    finally:
        if os.path.exists(aside):
            os.unlink(aside)
