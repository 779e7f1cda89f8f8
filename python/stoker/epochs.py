"""Where a loader stands, and which epoch begins next. A place is (epoch, global position in it).

An epoch begins with its first batch, not with ``iter()``: trainers call ``iter()`` only to see whether they can iterate.
"""

from __future__ import annotations

from . import _engine
from .order import GivenOrder

__all__ = ["Epochs", "Place"]

Place = tuple[int, int]

_UNKNOWN = -1


class Epochs:
    """The places of one loader. Used by the thread that iterates."""

    def __init__(self, engine: _engine.Loader, order: GivenOrder | None = None) -> None:
        self.engine = engine                 # another one once the rank is known
        self._order = order                  # None: the engine computes it
        self.start: Place = (0, 0)           # where the next epoch to begin begins
        self.steps_left = 0                  # of the epoch that the engine entered last; _UNKNOWN while a sampler has not ended
        self._stands: Place | None = (0, 0)  # None: after the last batch that the engine handed out
        self._entered: Place | None = None   # where the engine was sent last
        self._asked = False                  # for a batch, since then
        self._begun = False                  # the live iterator has handed out a batch, or has ended
        self._place: Place | None = None     # after the last batch handed out, where batches are taken ahead of that

    @property
    def now(self) -> Place:
        """Where a state that is taken now resumes."""
        if self._stands is not None:
            return self._stands
        if self.steps_left == 0:
            return self.start
        return self._place or self._engine_place()

    def _engine_place(self) -> Place:
        state = self.engine.state()
        return state["epoch"], state["position"]

    def new_iterator(self) -> None:
        """The engine prefetches from ``start`` on. Nothing has begun."""
        self._stands = self.now
        self._begun = False
        if self._asked:  # it is past its start, or its first batch failed
            self._entered = None
        self._enter()

    def ask(self) -> None:
        """The live iterator asks the engine for a batch."""
        if not self._begun:
            self._enter()  # set() may have chosen another epoch since iter()
        if self._order is not None:
            self._order.before_next(self.engine)
        self._asked = True

    def taken(self) -> Place:
        """The engine gave a batch. Where a state that is taken after it resumes."""
        if self._order is not None:
            self._order.after_next(self.engine)
        return self._engine_place()

    def handed_out(self, place: Place | None = None, ahead: int = 0) -> None:
        """The loop gets the batch of ``place``; ``ahead`` later ones have been taken. Without a place it is the engine's last."""
        self._place = place
        if self._order is None:
            self.steps_left -= 1
        else:
            self.steps_left = 0 if self._order.is_over and not ahead else _UNKNOWN
        self._begin()

    @property
    def has_begun(self) -> bool:
        return self._begun

    def ended(self) -> None:
        """No batch is left. An epoch without any has begun and ended too."""
        self.steps_left = 0
        self._begin()

    def set(self, epoch: int) -> None:
        """``epoch`` begins next. If the loader stands inside it at a place that was loaded, it stays there.

        A state counts the batches that were handed out. So it moves only where no epoch has been left half-way.
        """
        if self._stands == self.start and self.start[0] == epoch:
            return
        between_epochs = self.steps_left == 0 if self._stands is None else self._stands == self.start
        self.start = (epoch, 0)
        if between_epochs:
            self._stands = self.start

    def skip(self, samples: int) -> None:
        """The epoch that begins next begins that much later."""
        self.start = (self.start[0], self.start[1] + samples)

    def load(self, place: Place, reordered: bool = False) -> None:
        self.start = self._stands = place
        if reordered:
            self._entered = None

    def _enter(self) -> None:
        if self._entered == self.start:
            return
        self._entered = None
        self.engine.start_epoch(*self.start)
        self._entered, self._asked = self.start, False
        self.steps_left = self.engine.steps if self._order is None else _UNKNOWN
        if self._order is not None:
            self._order.begin(self.engine, *self.start)

    def _begin(self) -> None:
        self._stands = None
        if not self._begun:
            self._begun = True
            self.start = (self.start[0] + 1, 0)
