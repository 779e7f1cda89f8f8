"""What a loader does to single samples in Python: which options ask for it, and which do not go with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _engine
from .errors import UsageError
from .python_rows import Steps
from .transforms import compile_steps

__all__ = ["per_sample", "refuse_beside_callables", "refuse_beside_dataset", "refuse_rows_of_zeros"]


def per_sample(transform: Any, layout: str, dtype: str | None) -> tuple[str, Callable[[Any], Any] | None, str, str | None]:
    """What the engine does before callables, the callables with what follows them, and layout and dtype of what the engine gives them."""
    before, callables, after = compile_steps(transform)
    if len(callables) < 2 and after == "[]":
        return before, callables[0] if callables else None, layout, dtype
    if after == "[]":
        return before, Steps(callables, after, "", ""), layout, dtype
    layout, dtype = _engine.checked_option("layout", layout), _engine.checked_option("dtype", dtype)
    wrong = f"layout={layout!r}" if layout == "channels_last" else f"dtype={dtype!r}" if dtype in ("bfloat16", "uint16", "int16") else ""
    if wrong:
        raise UsageError(f"transform: operations after a Python callable do not work with {wrong}",
                         "layout=\"NCHW\" or \"NHWC\", and dtype=\"uint8\", \"float16\" or \"float32\"", option="transform")
    return before, Steps(callables, after, layout, dtype or ""), "NHWC", None


def refuse_rows_of_zeros(on_error: str, last_batch: str | None) -> None:
    """Batches of dataset= are what the Dataset gives: nothing in them could tell a made-up row from an item."""
    if on_error == "zero":
        raise UsageError("on_error=\"zero\" does not go with dataset=: its batches have no `valid`, which would tell the zeros from items",
                         "on_error=\"skip\" or \"replace\"", option="on_error")
    if last_batch == "pad":
        raise UsageError("last_batch=\"pad\" does not go with dataset=: its batches have no `valid`, which would tell the fill from items",
                         "last_batch=\"keep\" or \"drop\"", option="last_batch")


def refuse_beside_dataset(**given: Any) -> None:
    for word, value in given.items():
        if value is not None:
            raise UsageError(f"{word}= does not go with dataset=: a Dataset makes its items itself", "do it in __getitem__, or in the loop", option=word)


def refuse_beside_callables(given: dict[str, Any], kind: str) -> None:
    if given["shapes"] != "equal":
        raise UsageError("callables on single samples do not work with shapes=\"pad\" or \"list\"", "pad the arrays inside the callable, or use batch_transform=",
                         option="shapes")
    if kind != "decode" and given["decode"] == "none":
        raise UsageError("decode=\"none\" with a callable in transform=, which would get bytes", "give the callable as decode=, which takes the bytes of one sample",
                         option="transform")
    if kind != "decode" and given["dtype"] == "bfloat16":
        raise UsageError("a callable in transform= takes numpy arrays, and numpy has no bfloat16", "dtype=\"float32\", and convert on the device",
                         option="dtype")
