"""The input path of a torch DataLoader, replaced by Stoker where it gives the same samples.

``stoker run --supply -- python train.py`` does it to every DataLoader of a job; :class:`stoker.torch.DataLoader` to
itself. The job's sampler says the order, its data set the labels. What Stoker does not know stays as it is, and one line
says why.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

import torch

from ..errors import Error
from .feed import Native, SuppliedIterator, check_torch
from .known import NotKnown, read
from .told import Teller

__all__ = ["Supply", "supply_of"]

_supplies: weakref.WeakKeyDictionary[Any, Supply] = weakref.WeakKeyDictionary()


def supply_of(loader: Any, place: dict[str, Any] | None = None) -> Supply:
    """What feeds this DataLoader. ``place``: where it was made, for what is said about it."""
    supply = _supplies.get(loader)
    if supply is None:
        supply = _supplies[loader] = Supply(place)
    return supply


class Supply:
    """What feeds one DataLoader: the engine, or the job's own workers."""

    def __init__(self, place: dict[str, Any] | None = None) -> None:
        self.why = ""  # why the job's own workers are used; empty: the engine feeds it, or nothing was asked for yet
        self._teller = Teller(place)
        self._natives: list[Native] = []
        self._given_up = False

    @property
    def is_native(self) -> bool:
        return bool(self._natives) and not self.why

    def stats(self) -> dict[str, Any] | None:
        """Counters of the engine's loader, as :meth:`stoker.Loader.stats`; None where the job's own workers are used."""
        return self._natives[0].stats() if self.is_native else None

    def iterator(self, loader: Any, own: Callable[[], Any]) -> Any:
        """A pass over ``loader``. ``own`` makes the iterator that torch would make."""
        if self._given_up:
            return own()
        try:
            check_torch()
            reading = read(loader)
        except NotKnown as why:
            self.refuse(str(why))
            return own()
        except Exception as error:  # an object of the job that only looks like one of torchvision's
            self.refuse(f"{type(error).__name__}: {error}")
            return own()
        self.why = ""

        def take(batch_size: int) -> Native:
            for native in [native for native in self._natives if native.is_free]:
                if native.fits(loader.dataset, reading) and native.batch_size >= batch_size:
                    return native
                self._natives.remove(native)
                native.close()
            self._natives = [native for native in self._natives if native.pid == os.getpid()]  # others belong to the parent of a fork
            native = Native(loader, reading, batch_size)
            self._natives.insert(0, native)
            self._teller.say(f"replaced: Stoker reads {reading.dataset_name} ({len(loader.dataset):,} images) with {reading.operations} operations", is_news=False)
            return native

        generator = loader.generator if loader.generator is not None else torch.default_generator
        state = generator.get_state()
        return SuppliedIterator(loader, take, own, self._teller, self._give_up, state)

    def refuse(self, why: str) -> None:
        """Says that the job's own workers are used."""
        self.why = why
        self._teller.say(f"not replaced: {why}")
        self._teller.record(replaced=False, why=why)

    def _give_up(self, why: str) -> None:
        """The job's own workers, for good."""
        self._given_up = True
        self.refuse(why)
        for native in self._natives:
            if native.is_free:
                try:
                    native.close()
                except Error:
                    pass
