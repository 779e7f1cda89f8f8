"""What happens to a sample between its file and the batch. Declared here, run by the engine.

A transform is a list of these objects, or the short text of the command line (``"rrc:224,flip,normalize:imagenet"``),
or a torchvision ``Compose`` of operations that are listed in :func:`from_torchvision`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .errors import UsageError

__all__ = [
    "Transform", "RandomResizedCrop", "Resize", "CenterCrop", "HorizontalFlip", "Normalize", "ToFloat", "Window",
    "PadOrTrim", "Resample", "Mono", "Views",
]

Size = int | Sequence[int]
Range = float | Sequence[float]

_FILTERS = ("bilinear", "bicubic", "nearest", "box")
_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)


class Transform:
    """One operation. Immutable; two of the same kind with the same arguments are equal."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def to_json(self) -> dict[str, Any]:
        """The form in which the engine takes it."""
        return {"op": type(self).__name__, **self._fields}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transform) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_json(), sort_keys=True))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self._fields.items())})"


class RandomResizedCrop(Transform):
    """A random rectangle of the image, resized to ``size`` (a number, or height and width): torchvision's, same pixels."""

    def __init__(self, size: Size, scale: Sequence[float] = (0.08, 1.0), ratio: Sequence[float] = (3 / 4, 4 / 3),
                 interpolation: str = "bilinear") -> None:
        height, width = _height_width(self, size)
        scale_min, scale_max = _pair(self, "scale", scale)
        ratio_min, ratio_max = _pair(self, "ratio", ratio)
        super().__init__(height=height, width=width, scale_min=scale_min, scale_max=scale_max, ratio_min=ratio_min,
                         ratio_max=ratio_max, filter=_filter(self, interpolation))


class Resize(Transform):
    """One number: the shorter side becomes that long and the aspect is kept. Two: height and width."""

    def __init__(self, size: Size, interpolation: str = "bilinear") -> None:
        if isinstance(size, int) or len(size) == 1:
            height, width = _whole(self, "size", size if isinstance(size, int) else size[0]), 0
        else:
            height, width = _height_width(self, size)
        super().__init__(height=height, width=width, filter=_filter(self, interpolation))


class CenterCrop(Transform):
    """The middle ``size`` (a number, or height and width) of the image."""

    def __init__(self, size: Size) -> None:
        height, width = _height_width(self, size)
        super().__init__(height=height, width=width)


class HorizontalFlip(Transform):
    """Mirrors left and right with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        p = _number(self, "p", p)
        if not 0 <= p <= 1:
            raise UsageError(f"HorizontalFlip: p is a probability from 0 to 1, not {p}")
        super().__init__(p=p)


class Normalize(Transform):
    """``(x / 255 - mean) / std`` per channel, as float. ``Normalize("imagenet")`` knows its figures."""

    def __init__(self, mean: str | float | Sequence[float], std: float | Sequence[float] | None = None) -> None:
        if isinstance(mean, str):
            if mean != "imagenet" or std is not None:
                raise UsageError(f"Normalize: the only named figures are \"imagenet\", not {mean!r}",
                                 "give mean and std per channel: Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))")
            mean, std = _IMAGENET_MEAN, _IMAGENET_STD
        if std is None:
            raise UsageError("Normalize: std is missing", "Normalize(mean, std), or Normalize(\"imagenet\")")
        means, stds = _numbers(self, "mean", mean), _numbers(self, "std", std)
        if len(means) != len(stds):
            raise UsageError(f"Normalize: mean has {len(means)} channels and std has {len(stds)}")
        if any(value <= 0 for value in stds):
            raise UsageError(f"Normalize: std must be above 0, not {stds}")
        super().__init__(mean=means, std=stds)


class ToFloat(Transform):
    """uint8 to float in [0, 1] (16-bit images by 65535)."""


class Window(Transform):
    """16-bit slices to [0, 1]: the values around ``level``, ``width`` wide, in Hounsfield units.

    A number is fixed, ``(low, high)`` is drawn for each sample (and each view). The value of a pixel is
    ``stored - offset``; without ``offset`` it comes from the column ``hu_offset`` of the index.csv.
    """

    def __init__(self, level: Range = (-700, 100), width: Range = (300, 2000), offset: float | None = None) -> None:
        level_min, level_max = _range(self, "level", level)
        width_min, width_max = _range(self, "width", width)
        if width_min <= 0:
            raise UsageError(f"Window: width must be above 0, not {width}")
        fields = dict(level_min=level_min, level_max=level_max, width_min=width_min, width_max=width_max)
        if offset is not None:
            fields["offset"] = _number(self, "offset", offset)
        super().__init__(**fields)


class PadOrTrim(Transform):
    """Audio of exactly ``frames`` frames: zeros are added or the end is cut."""

    def __init__(self, frames: int) -> None:
        super().__init__(frames=_whole(self, "frames", frames))


class Resample(Transform):
    """Audio at ``hz`` frames per second, whatever the file has."""

    def __init__(self, hz: int) -> None:
        super().__init__(hz=_whole(self, "hz", hz))


class Mono(Transform):
    """The mean of the channels."""


class Views(Transform):
    """One decode, many independently drawn views: ``Views(big=(2, [...]), small=(8, [...]))``.

    Each group becomes one tensor ``[batch, count, ...]`` (``[batch, ...]`` for a count of 1), and ``data`` of the batch
    is a dict of them by group name: ``for views, labels in loader: views["big"]``.
    """

    def __init__(self, **groups: tuple[int, Sequence[Transform]]) -> None:
        if not groups:
            raise UsageError("Views: no group was given", "Views(big=(2, [...]), small=(8, [...]))")
        listed = []
        for name, group in groups.items():
            if not (isinstance(group, (tuple, list)) and len(group) == 2 and isinstance(group[0], int)):
                raise UsageError(f"Views: {name} is not (count, [transforms]): {group!r}",
                                 "Views(big=(2, [stoker.RandomResizedCrop(224)]))")
            count, operations = group
            if isinstance(operations, Transform):
                operations = [operations]
            listed.append({"name": name, "count": _whole(self, name, count),
                           "ops": [_checked(operation).to_json() for operation in operations]})
        super().__init__(groups=listed)


def compile_transform(transform: Any) -> tuple[str, Callable[[Any], Any] | None]:
    """The engine's form (JSON or short text) of what was given as ``transform=``, and the Python callable at its end."""
    if transform is None:
        return "[]", None
    if isinstance(transform, str):
        return (transform, None) if transform.strip() else ("[]", None)
    if isinstance(transform, Transform) or not isinstance(transform, (list, tuple)):
        transform = [transform]
    operations: list[Transform] = []
    last: Callable[[Any], Any] | None = None
    for item in _flattened(transform):
        if last is not None:
            raise UsageError(f"transform: {_name(last)} is a Python callable and must be the last item: it takes the whole batch",
                             "put it at the end, or write it with Stoker's operations")
        if isinstance(item, Transform):
            operations.append(item)
        elif _is_torchvision(item):
            operations.extend(from_torchvision(item))
        elif callable(item) and not isinstance(item, type):
            last = item
        else:
            _checked(item)
    return json.dumps([operation.to_json() for operation in _without_double_scaling(operations)]), last


def from_torchvision(operation: Any) -> list[Transform]:
    """The same thing in Stoker's words, or UsageError naming the operation that has none.

    Known: Compose, RandomResizedCrop, Resize, CenterCrop, RandomHorizontalFlip, Normalize, ToTensor, PILToTensor,
    ConvertImageDtype, and of v2 also ToImage, ToDtype, ToPureTensor.
    """
    name = type(operation).__name__
    if name == "Compose":
        return [mine for inner in operation.transforms for mine in from_torchvision(inner)]
    if name == "RandomResizedCrop":
        return [RandomResizedCrop(operation.size, operation.scale, operation.ratio, _torchvision_filter(operation))]
    if name == "Resize":
        if getattr(operation, "max_size", None) is not None:
            raise UsageError("transform: torchvision's Resize(max_size=...) has no counterpart here", "leave max_size out")
        return [Resize(operation.size, _torchvision_filter(operation))]
    if name == "CenterCrop":
        return [CenterCrop(operation.size)]
    if name == "RandomHorizontalFlip":
        return [HorizontalFlip(operation.p)]
    if name == "Normalize":
        return [Normalize(operation.mean, operation.std)]
    if name == "ToTensor":
        return [ToFloat()]
    if name in ("PILToTensor", "ToImage", "ToPureTensor", "Identity"):
        return []
    if name in ("ConvertImageDtype", "ToDtype"):
        dtype = str(operation.dtype)
        if dtype == "torch.float32" and getattr(operation, "scale", name == "ConvertImageDtype"):
            return [ToFloat()]
        if dtype == "torch.uint8":
            return []
        raise UsageError(f"transform: torchvision's {name}({dtype}) has no counterpart here",
                         "use ToDtype(torch.float32, scale=True), or the dtype= of the loader")
    known = "RandomResizedCrop, Resize, CenterCrop, RandomHorizontalFlip, Normalize, ToTensor, ToDtype"
    raise UsageError(f"transform: torchvision's {name} has no counterpart in Stoker",
                     f"known: {known}; for anything else, end the list with a function of your own that takes the whole batch: "
                     "transform=[..., lambda images: ...]")


def _is_torchvision(item: Any) -> bool:
    return type(item).__module__.split(".")[0] == "torchvision"


def _flattened(items: Iterable[Any]) -> Iterable[Any]:
    """Opens lists and torchvision's Compose, so that a callable inside is found at its place."""
    for item in items:
        if isinstance(item, (list, tuple)):
            yield from _flattened(item)
        elif _is_torchvision(item) and type(item).__name__ == "Compose":
            yield from _flattened(item.transforms)
        else:
            yield item


def _without_double_scaling(operations: list[Transform]) -> list[Transform]:
    """Normalize divides by 255 itself, so a ToFloat right before it (torchvision's ToTensor) says nothing new."""
    return [operation for operation, following in zip(operations, [*operations[1:], None])
            if not (type(operation) is ToFloat and type(following) is Normalize)]


def _torchvision_filter(operation: Any) -> str:
    interpolation = getattr(operation, "interpolation", "bilinear")
    word = str(getattr(interpolation, "value", interpolation))
    if word == "nearest-exact":
        word = "nearest"
    if word not in _FILTERS:
        raise UsageError(f"transform: interpolation {word!r} of {type(operation).__name__} has no counterpart here",
                         f"one of {', '.join(_FILTERS)}")
    return word


def _checked(item: Any) -> Transform:
    if isinstance(item, Transform):
        return item
    if isinstance(item, type) and issubclass(item, Transform):
        raise UsageError(f"transform: {item.__name__} is a class, not an operation", f"write {item.__name__}(...)")
    if isinstance(item, str):
        near = difflib.get_close_matches(item, __all__, 1)
        raise UsageError(f"transform: {item!r} is a text inside a list",
                         f"write stoker.{near[0]}(...)" if near else "give one text instead of a list: transform=\"rrc:224,flip\"")
    raise UsageError(f"transform: {item!r} is not an operation of Stoker",
                     "a list of stoker.RandomResizedCrop(224), ...; a callable on the batch may be its last item")


def _name(item: Any) -> str:
    return getattr(item, "__name__", type(item).__name__)


def _who(owner: Any) -> str:
    return type(owner).__name__


def _number(owner: Any, word: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"{_who(owner)}: {word} is a number, not {value!r}")
    return float(value)


def _numbers(owner: Any, word: str, value: Any) -> list[float]:
    if isinstance(value, (int, float)):
        return [_number(owner, word, value)]
    try:
        return [float(entry) for entry in value]
    except (TypeError, ValueError):
        raise UsageError(f"{_who(owner)}: {word} is a list of numbers, not {value!r}") from None


def _whole(owner: Any, word: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{_who(owner)}: {word} is a whole number of at least 1, not {value!r}")
    return value


def _height_width(owner: Any, size: Any) -> tuple[int, int]:
    if isinstance(size, int):
        size = (size, size)
    try:
        sizes = list(size)
    except TypeError:
        sizes = []
    if len(sizes) == 1:
        sizes = sizes * 2
    if len(sizes) != 2:
        raise UsageError(f"{_who(owner)}: size is a number or (height, width), not {size!r}")
    return _whole(owner, "size", sizes[0]), _whole(owner, "size", sizes[1])


def _pair(owner: Any, word: str, value: Any) -> tuple[float, float]:
    numbers = _numbers(owner, word, value)
    if len(numbers) != 2 or not 0 < numbers[0] <= numbers[1]:
        raise UsageError(f"{_who(owner)}: {word} is (low, high) with 0 < low <= high, not {value!r}")
    return numbers[0], numbers[1]


def _range(owner: Any, word: str, value: Any) -> tuple[float, float]:
    numbers = _numbers(owner, word, value)
    if len(numbers) == 1:
        numbers = numbers * 2
    if len(numbers) != 2 or numbers[0] > numbers[1]:
        raise UsageError(f"{_who(owner)}: {word} is a number or (low, high), not {value!r}")
    return numbers[0], numbers[1]


def _filter(owner: Any, word: str) -> str:
    if word not in _FILTERS:
        raise UsageError(f"{_who(owner)}: interpolation is one of {', '.join(_FILTERS)}, not {word!r}")
    return word
