"""Callbacks for trainers that own the loop: they time what the trainer's DataLoaders do and print the verdict at the end.

``Trainer(callbacks=[stoker.callbacks.lightning()])`` and ``Trainer(..., callbacks=[stoker.callbacks.huggingface()])``.
"""

from __future__ import annotations

import sys
from typing import Any

from .measuring import measure


class _Timing:
    """A block around training: every torch DataLoader of the process is seen."""

    def start(self) -> None:
        from torch.utils.data import DataLoader

        self.measurement = measure(DataLoader([0]))
        self.measurement.__enter__()

    def stop(self, say: bool) -> None:
        self.measurement.__exit__()
        if say:
            print(f"stoker: {self.measurement.summary()}", file=sys.stderr)


def lightning() -> Any:
    """A Lightning callback; ``callback.measurement`` has the report."""
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback

    class StokerCallback(Callback, _Timing):
        def on_fit_start(self, trainer: Any, module: Any) -> None:
            self.start()

        def on_fit_end(self, trainer: Any, module: Any) -> None:
            self.stop(trainer.is_global_zero)

        def on_exception(self, trainer: Any, module: Any, error: BaseException) -> None:
            self.stop(trainer.is_global_zero)

    return StokerCallback()


def huggingface() -> Any:
    """A callback for the Trainer of transformers; ``callback.measurement`` has the report."""
    from transformers import TrainerCallback

    class StokerCallback(TrainerCallback, _Timing):
        def on_train_begin(self, arguments: Any, state: Any, control: Any, **_: Any) -> None:
            self.start()

        def on_train_end(self, arguments: Any, state: Any, control: Any, **_: Any) -> None:
            self.stop(state.is_world_process_zero)

    return StokerCallback()
