"""The library whose arrays a loader gives, and what copies them to a device."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from .arguments import choice
from .errors import UsageError

__all__ = ["copier_of", "framework_of"]

_OUTPUTS = ("auto", "torch", "numpy", "jax", "dlpack")


def framework_of(output: str, device: Any) -> Any:
    output = choice("output", output, _OUTPUTS)
    if device is not None and output == "auto":
        output = "torch"
    if output == "auto":
        output = "torch" if "torch" in sys.modules else "numpy"
    try:
        return importlib.import_module(f".{output}", __package__)
    except ImportError as error:
        raise UsageError(f"output={output!r}: {error}", f"pip install {output}, or output=\"numpy\"") from error


def copier_of(device: Any, framework: Any) -> Any:
    if device is None or str(device) == "cpu":
        return None
    if framework.NAME != "torch":
        raise UsageError(f"device= works with torch tensors, not with output={framework.NAME!r}", "output=\"torch\", or jax.device_put in the loop")
    return framework.DeviceCopier(device)
