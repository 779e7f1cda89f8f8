"""Operations on other operations, on several views of a sample, and on the rows of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import UsageError
from .checks import checked_whole, who
from .operation import Augmentation, Transform, checked_operation


class RandomApply(Augmentation):
    """All of ``transforms`` with probability ``p``, or none."""

    def __init__(self, transforms: Sequence[Transform], p: float = 0.5) -> None:
        super().__init__(transforms=_held_operations(self, transforms), p=p)


class RandomChoice(Augmentation):
    """One of ``transforms``, by the weights ``p`` where they are given."""

    def __init__(self, transforms: Sequence[Transform], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms=_held_operations(self, transforms), p=p)


class RandomOrder(Augmentation):
    """All of ``transforms``, in a random order."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        super().__init__(transforms=_held_operations(self, transforms))


class Views(Transform):
    """One decode, many independently drawn views: ``Views(big=(2, [...]), small=(8, [...]))``.

    Each group becomes one tensor ``[batch, count, ...]`` (``[batch, ...]`` for a count of 1), and ``data`` of the batch
    is a dict of them by group name: ``for views, labels in loader: views["big"]``. A torchvision ``Compose`` may be a group's list.
    """

    def __init__(self, **groups: tuple[int, Any]) -> None:
        from .compiled import operations_of  # which knows this class

        if not groups:
            raise UsageError("Views: no group was given", "Views(big=(2, [...]), small=(8, [...]))")
        listed = []
        for name, group in groups.items():
            if not (isinstance(group, (tuple, list)) and len(group) == 2 and isinstance(group[0], int)):
                raise UsageError(f"Views: {name} is not (count, [transforms]): {group!r}",
                                 "Views(big=(2, [stoker.RandomResizedCrop(224)]))")
            count, transform = group
            listed.append({"name": name, "count": checked_whole(self, name, count), "ops": [operation.to_json() for operation in operations_of(transform)]})
        super().__init__(groups=listed)


class MixUp(Augmentation):
    """The last of a list: mixes every row of a batch with the one before it. Labels become float32 ``[batch, classes]``.

    ``num_classes`` is as many as the data set has, where it is not given. ``p`` is the chance that a batch is mixed.
    """

    def __init__(self, alpha: float = 1.0, num_classes: int | None = None, p: float = 1.0, label_smoothing: float = 0.0) -> None:
        super().__init__(alpha=alpha, num_classes=num_classes, p=p, label_smoothing=label_smoothing)


class CutMix(Augmentation):
    """The last of a list: a rectangle of every row of a batch comes from the row before it. Arguments as for MixUp.

    ``RandomChoice([CutMix(), MixUp()])`` does one of them, by chance.
    """

    def __init__(self, alpha: float = 1.0, num_classes: int | None = None, p: float = 1.0, label_smoothing: float = 0.0) -> None:
        super().__init__(alpha=alpha, num_classes=num_classes, p=p, label_smoothing=label_smoothing)


def _held_operations(owner: Any, transforms: Any) -> list[dict[str, Any]]:
    if isinstance(transforms, Transform) or not isinstance(transforms, Iterable):
        raise UsageError(f"{who(owner)}: transforms is a list of operations, not {transforms!r}")
    held = []
    for item in transforms:
        if isinstance(item, (list, tuple)):
            item = RandomApply(item, p=1.0)
        held.append(checked_operation(item).to_json())
    return held
