"""Operations on sound and on spectrograms. Those of torchaudio's names have its values."""

from __future__ import annotations

from typing import Any

from ..errors import UsageError
from .checks import checked_number, checked_whole
from .operation import Augmentation, Transform

_LENGTHS = {"win_length": "n_fft", "hop_length": "half of win_length"}


class PadOrTrim(Transform):
    """Audio of exactly ``frames`` frames: zeros are added or the end is cut."""

    def __init__(self, frames: int) -> None:
        super().__init__(frames=checked_whole(self, "frames", frames))


class Resample(Transform):
    """Audio at ``hz`` frames per second, whatever the file has."""

    def __init__(self, hz: int) -> None:
        super().__init__(hz=checked_whole(self, "hz", hz))


class Mono(Transform):
    """The mean of the channels."""


class RandomTrim(Augmentation):
    """Audio of exactly ``frames`` frames, from a random place; shorter audio gets zeros at its end."""

    def __init__(self, frames: int) -> None:
        super().__init__(frames=frames)


class Vol(Augmentation):
    """Audio times a fixed gain, clipped to [-1, 1]: torchaudio's. ``gain_type`` is ``"amplitude"``, ``"power"`` or ``"db"``."""

    def __init__(self, gain: float, gain_type: str = "amplitude") -> None:
        super().__init__(gain=gain, gain_type=gain_type)


class Gain(Augmentation):
    """Audio times a random gain between two numbers of decibels, with probability ``p``; not clipped."""

    def __init__(self, min_gain_in_db: float = -18.0, max_gain_in_db: float = 6.0, p: float = 0.5) -> None:
        super().__init__(min_gain_in_db=min_gain_in_db, max_gain_in_db=max_gain_in_db, p=p)


class PolarityInversion(Augmentation):
    """-x with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=p)


class Shift(Augmentation):
    """Moves audio in time by a random share of its length, with probability ``p``. What leaves at one end comes back at the
    other (``rollover``), or zeros take its place."""

    def __init__(self, min_shift: float = -0.5, max_shift: float = 0.5, rollover: bool = True, p: float = 0.5) -> None:
        super().__init__(min_shift=min_shift, max_shift=max_shift, rollover=rollover, p=p)


class MelSpectrogram(Augmentation):
    """Audio to ``[n_mels, steps]`` (``[channels, n_mels, steps]``): torchaudio's, with a periodic Hann window."""

    def __init__(self, sample_rate: int = 16000, n_fft: int = 400, win_length: int | None = None, hop_length: int | None = None,
                 f_min: float = 0.0, f_max: float | None = None, pad: int = 0, n_mels: int = 128, *, power: float = 2.0,
                 normalized: bool = False, center: bool = True, pad_mode: str = "reflect", norm: str | None = None,
                 mel_scale: str = "htk") -> None:
        for word, length, most in (("win_length", win_length, 65536), ("hop_length", hop_length, 2**20)):
            if length is not None and length == 0:
                raise UsageError(f"MelSpectrogram: {word} = 0 is not between 1 and {most}", f"None, or leave it out: {_LENGTHS[word]}")
        if f_max is not None and f_max == 0:
            raise UsageError("MelSpectrogram: f_max = 0 is not above 0", "None, or leave it out: half the sample rate")
        if power is None:
            raise UsageError("MelSpectrogram: power=None would give complex values, of which there are no bands", "power=2 gives power, power=1 magnitude")
        if isinstance(normalized, str):
            raise UsageError(f"MelSpectrogram: normalized is True or False, not {normalized!r}", "True is torchaudio's \"window\"; there is no \"frame_length\"")
        super().__init__(sample_rate=sample_rate, n_fft=n_fft, win_length=win_length, hop_length=hop_length, f_min=f_min, f_max=f_max,
                         pad=pad, n_mels=n_mels, power=power, normalized=normalized, center=center, pad_mode=pad_mode, norm=norm,
                         mel_scale=mel_scale)


class MFCC(Augmentation):
    """Audio to ``[n_mfcc, steps]``: torchaudio's. ``melkwargs`` has arguments of :class:`MelSpectrogram`."""

    def __init__(self, sample_rate: int = 16000, n_mfcc: int = 40, dct_type: int = 2, norm: str | None = "ortho",
                 log_mels: bool = False, melkwargs: dict[str, Any] | None = None) -> None:
        if dct_type != 2:
            raise UsageError(f"MFCC: dct_type is 2, not {dct_type!r}")
        mel = MelSpectrogram(sample_rate, **(melkwargs or {})).to_json()
        if "norm" in mel:
            mel["mel_norm"] = mel["norm"]
        fields = {name: value for name, value in mel.items() if name not in ("op", "norm", "sample_rate")}
        super().__init__(sample_rate=sample_rate, n_mfcc=n_mfcc, norm="none" if norm is None else norm, log_mels=log_mels, **fields)


class AmplitudeToDB(Augmentation):
    """A spectrogram in decibels: torchaudio's. ``top_db`` raises what is further below the largest value."""

    def __init__(self, stype: str = "power", top_db: float | None = None) -> None:
        if top_db is not None and checked_number(self, "top_db", top_db) < 0:
            raise UsageError(f"AmplitudeToDB: top_db must be at least 0, not {top_db}")
        super().__init__(stype=stype, top_db=top_db)


class FrequencyMasking(Augmentation):
    """Zeroes up to ``freq_mask_param`` neighbouring bands of a spectrogram: torchaudio's. Every sample draws its own mask,
    and with ``iid_masks`` every channel."""

    def __init__(self, freq_mask_param: int, iid_masks: bool = False) -> None:
        super().__init__(freq_mask_param=freq_mask_param, iid_masks=iid_masks)


class TimeMasking(Augmentation):
    """Zeroes up to ``time_mask_param`` neighbouring steps of a spectrogram, and at most ``p`` of them: torchaudio's."""

    def __init__(self, time_mask_param: int, iid_masks: bool = False, p: float = 1.0) -> None:
        super().__init__(time_mask_param=time_mask_param, iid_masks=iid_masks, p=p)
