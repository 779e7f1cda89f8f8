"""What Stoker can read in place of a torch DataLoader: data sets of torchvision, and the operations of their transforms.

Everything here looks at objects of the job and changes none of them. What is not known raises :class:`NotKnown`, whose
text says why in one clause.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

from ..errors import UsageError
from ..transforms import CenterCrop, Normalize, Resize, ToFloat, Transform, compile_transform, from_torchvision
from ..transforms.torchvision import filter_of

__all__ = ["Leaf", "NotKnown", "Reading", "leaf_of", "read"]

# torchvision computes these on tensors with the same result as on Pillow images. Resizing it computes differently.
_SAME_ON_TENSORS = {"Normalize", "ConvertImageDtype", "ToDtype", "ToPureTensor", "Identity", "RandomHorizontalFlip", "RandomVerticalFlip", "RandomErasing"}
# These work on whole batches, and on labels.
_OF_BATCHES = {"MixUp", "CutMix"}
# torchvision computes these on tensors even where it is given Pillow images, and Stoker's pixels are those of Pillow images.
_ON_TENSORS_ALONE = {"AugMix"}
_TO_TENSOR = {"ToTensor", "PILToTensor", "ToImage"}
_RANDOM = {"RandomResizedCrop", "HorizontalFlip"}
_KNOWN_SAMPLERS = {"torch", "numpy", "accelerate", "lightning", "lightning_fabric", "pytorch_lightning", "transformers", "timm"}
_FIXED = {"Resize", "CenterCrop", "Normalize", "ToFloat", "Grayscale", "Pad"}


class NotKnown(Exception):
    """Stoker does not replace this DataLoader; the text says why."""


class Leaf(NamedTuple):
    """A torchvision data set with files, and the number of a sample in it."""

    dataset: Any
    number: int


class Reading(NamedTuple):
    """What the samples of a DataLoader are."""

    transform: str        # the engine's form
    operations: int       # of torchvision
    is_fixed: bool        # the same pixels every time
    dataset_name: str
    tail: Any = None      # operations of the job that finish a batch of uint8; None: the engine does all


def read(loader: Any) -> Reading:
    """How the samples of this DataLoader are made. Raises NotKnown."""
    torch_data = sys.modules["torch.utils.data"]
    collate = sys.modules["torch.utils.data._utils.collate"]
    if getattr(loader, "_dataset_kind", 0) != 0 or isinstance(loader.dataset, torch_data.IterableDataset):
        raise NotKnown(f"{_name(loader.dataset)} is an IterableDataset")
    if loader.batch_sampler is None:
        raise NotKnown("batch_size=None gives single samples")
    if loader.collate_fn is not collate.default_collate:
        raise NotKnown(f"its collate_fn is {_name(loader.collate_fn)}, not torch's default")
    if loader.num_workers and loader.worker_init_fn is not None and not _only_seeds(loader.worker_init_fn):
        raise NotKnown(f"its worker_init_fn {_name(loader.worker_init_fn)} may change the data set in the workers")
    if not loader.num_workers and (own := _own_sampler(loader)) is not None:
        raise NotKnown(f"num_workers=0 asks its sampler {_name(own)} for one batch at a time, and Stoker reads ahead: give num_workers=1 if it may")
    leaves = _leaves(loader.dataset, torch_data)
    transform = leaves[0].transform
    if transform is None:
        raise NotKnown("its data set has no transform: samples are Pillow images")
    operations, count = _operations(transform)
    names = [type(operation).__name__ for operation in operations]
    is_fixed = all(name in _FIXED for name in names)
    tail = _tail_of_v2(transform) if is_fixed else None
    if tail:
        operations = [operation for operation in operations if not isinstance(operation, (ToFloat, Normalize))]
    text = compile_transform(operations)
    for leaf in leaves[1:]:
        if leaf.transform is not transform and (leaf.transform is None or tail or compile_transform(_operations(leaf.transform)[0]) != text):
            raise NotKnown("its data sets have different transforms")
    if not _is_sized(operations):
        raise NotKnown("its transform gives images of different sizes")
    return Reading(transform=text, operations=count, is_fixed=is_fixed, dataset_name=_name(loader.dataset), tail=tail)


def leaf_of(dataset: Any, index: int) -> Leaf:
    """Where sample ``index`` of a data set that read() knows comes from. Raises IndexError as the data set would."""
    torch_data = sys.modules["torch.utils.data"]
    while True:
        if isinstance(dataset, torch_data.Subset):
            dataset, index = dataset.dataset, int(dataset.indices[index])
        elif isinstance(dataset, torch_data.ConcatDataset):
            size = len(dataset)
            if index < 0:
                index += size
            if not 0 <= index < size:
                raise IndexError(f"sample {index} of a data set of {size} samples")
            for part, end in zip(dataset.datasets, dataset.cumulative_sizes, strict=True):
                if index < end:
                    dataset, index = part, index - (end - len(part))
                    break
        else:
            return Leaf(dataset, index)


def _leaves(dataset: Any, torch_data: Any) -> list[Any]:
    """The torchvision data sets below ``dataset``."""
    kind = type(dataset)
    if isinstance(dataset, torch_data.Subset):
        if kind.__getitem__ is not torch_data.Subset.__getitem__ or _batch_getter(kind) is not _batch_getter(torch_data.Subset):
            raise NotKnown(f"{kind.__name__} has a __getitem__ of its own")
        return _leaves(dataset.dataset, torch_data)
    if isinstance(dataset, torch_data.ConcatDataset):
        if kind.__getitem__ is not torch_data.ConcatDataset.__getitem__ or _batch_getter(kind) is not _batch_getter(torch_data.ConcatDataset):
            raise NotKnown(f"{kind.__name__} has a __getitem__ of its own")
        return [leaf for part in dataset.datasets for leaf in _leaves(part, torch_data)]
    folder = sys.modules.get("torchvision.datasets.folder")
    known = getattr(folder, "DatasetFolder", None)
    if known is None or not isinstance(dataset, known):
        raise NotKnown(f"the data set {kind.__name__} is not known")
    if kind.__getitem__ is not known.__getitem__ or _batch_getter(kind) is not None:
        raise NotKnown(f"{kind.__name__} has a __getitem__ of its own")
    if not _is_written_in(kind.__getitem__, "torchvision"):
        raise NotKnown(f"{kind.__name__}.__getitem__ was replaced by the job")
    reads_with_pillow = dataset.loader is folder.pil_loader or (  # type: ignore[union-attr]
        dataset.loader is folder.default_loader and sys.modules["torchvision"].get_image_backend() == "PIL")  # type: ignore[union-attr]
    if not reads_with_pillow:
        raise NotKnown(f"{kind.__name__} reads files with {_name(dataset.loader)}")
    if not len(dataset.samples):
        raise NotKnown(f"{kind.__name__} has no samples")
    return [dataset]


def _is_written_in(function: Any, package: str) -> bool:
    """Whether the code of a function lies in the files of a package. A job may have put another function in its place."""
    code = getattr(function, "__code__", None)
    folder = os.path.dirname(os.path.abspath(getattr(sys.modules.get(package), "__file__", None) or ""))
    return code is not None and os.path.abspath(code.co_filename).startswith(folder + os.sep)


def _own_sampler(loader: Any) -> Any:
    """A sampler that the job itself wrote, which may follow what the loop does. None: all are torch's or a trainer's."""
    sampler = loader.batch_sampler
    for _ in range(4):  # a batch sampler of a sampler, and what trainers put around them
        if sampler is None or isinstance(sampler, (list, tuple, range)):
            return None
        if type(sampler).__module__.split(".")[0] not in _KNOWN_SAMPLERS:
            return sampler
        inner = getattr(sampler, "sampler", None)  # may be an array, which is neither true nor false
        sampler = getattr(sampler, "batch_sampler", None) if inner is None else inner
    return None


def _only_seeds(function: Any) -> bool:
    """Trainers set functions that seed the random generators of a worker, and do nothing else."""
    function = getattr(function, "func", function)  # functools.partial
    return str(getattr(function, "__module__", "")).split(".")[0] in ("pytorch_lightning", "lightning", "lightning_fabric", "transformers")


def _batch_getter(kind: Any) -> Any:
    return getattr(kind, "__getitems__", None)


def _operations(transform: Any) -> tuple[list[Transform], int]:
    """A torchvision transform in Stoker's words, and how many operations it had."""
    listed = list(_flattened(transform))
    operations: list[Transform] = []
    is_tensor = False
    for number, item in enumerate(listed, 1):
        name = type(item).__name__
        where = f"operation {number} of {len(listed)}"
        if not _is_torchvision(item):
            raise NotKnown(f"{_name(item)} is not an operation of torchvision: {where}")
        if name == "ImageClassification":
            operations += _preset(item)
            is_tensor = True
            continue
        if name in _ON_TENSORS_ALONE:
            raise NotKnown(f"{name} gives other pixels in torchvision, which computes it on a tensor: {where}")
        if is_tensor and name not in _SAME_ON_TENSORS | _TO_TENSOR:
            raise NotKnown(f"{name} stands behind the change to a tensor, and Stoker knows it before that: {where}")
        if name in _OF_BATCHES:
            raise NotKnown(f"{name} is not known: {where}")
        try:
            operations += from_torchvision(item)
        except UsageError as error:
            why = str(error).split("\n")[0].removeprefix("transform: ")
            is_unknown = why.endswith("has no counterpart in Stoker")
            raise NotKnown(f"{name} is not known: {where}" if is_unknown else f"{why}: {where}") from None
        is_tensor = is_tensor or name in _TO_TENSOR
    if not is_tensor:
        raise NotKnown("its transform ends with Pillow images, not with tensors")
    return operations, len(listed)


def _tail_of_v2(transform: Any) -> tuple[Any, ...] | None:
    """Where v2 scales to float, it multiplies by 1/255 instead of dividing by 255, and the last bit differs from v1's. So the job's own
    operations finish each batch. They compute each value alone, and give the same for a batch as for a sample."""
    listed = list(_flattened(transform))
    first = next((number for number, item in enumerate(listed) if type(item).__name__ == "ToDtype" and str(item.dtype) == "torch.float32"), None)
    return tuple(listed[first:]) if first is not None else None


def _preset(item: Any) -> list[Transform]:
    """``weights.transforms()`` of torchvision's models for images."""
    word = filter_of(item)
    return [Resize(item.resize_size, word), CenterCrop(item.crop_size), ToFloat(), Normalize(item.mean, item.std)]


def _is_sized(operations: list[Transform]) -> bool:
    """Whether some operation fixes height and width for every image. What follows may change them, for all alike."""
    fields = [operation.to_json() for operation in operations]
    return any((field.get("height") and field.get("width")) or field["op"] == "RandomCrop" for field in fields)


def _flattened(transform: Any) -> Any:
    if _is_torchvision(transform) and type(transform).__name__ == "Compose":
        for item in transform.transforms:
            yield from _flattened(item)
    else:
        yield transform


def _is_torchvision(item: Any) -> bool:
    return type(item).__module__.split(".")[0] == "torchvision"


def _name(thing: Any) -> str:
    return getattr(thing, "__name__", type(thing).__name__)
