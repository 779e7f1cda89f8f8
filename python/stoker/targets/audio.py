"""Audio: a folder of WAV files."""

from __future__ import annotations

import sys
import wave
from typing import Any

import numpy
import torch

from ..errors import UsageError
from .samples import Files, loader_of
from .vit import step_of


def wav_folder(knobs: dict[str, Any]) -> tuple[Any, Any]:
    """WAV files in a folder per class, or an index.csv: float32, the channels' mean, padded with zeros or trimmed. Further knobs:
    ``frames`` (16000)."""
    if knobs.get("model") not in (None, "none"):
        raise UsageError("the model of a step is a ViT, which takes images", "leave model out; --step-ms emulates a step")
    return loader_of(Files(knobs, _Sound(int(knobs.get("frames", 16000)))), knobs), step_of(knobs)


class _Sound:
    def __init__(self, frames: int) -> None:
        self._frames = frames

    def __call__(self, path: str, _: dict[str, str]) -> torch.Tensor:
        try:
            with wave.open(path, "rb") as file:
                channels, width = file.getnchannels(), file.getsampwidth()
                raw = file.readframes(self._frames)
        except (wave.Error, EOFError) as error:
            raise UsageError(f"cannot read `{path}`: {error}", "only PCM files are read by this target") from None
        if width not in (1, 2, 4) or sys.byteorder != "little":
            raise UsageError(f"cannot read `{path}`: {8 * width} bits per sample")
        kind = {1: numpy.uint8, 2: numpy.int16, 4: numpy.int32}[width]
        samples = numpy.frombuffer(raw, kind).astype(numpy.float32).reshape(-1, channels).mean(1)
        samples = (samples - 128) / 128 if width == 1 else samples / float(1 << (8 * width - 1))
        padded = torch.zeros(self._frames)
        padded[:len(samples)] = torch.from_numpy(samples)
        return padded
