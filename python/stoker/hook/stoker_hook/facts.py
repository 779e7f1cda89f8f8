"""Facts about processes, loaders and batches, as the lines that go before the timings."""

import json
import os
import sys
import time

VERSION = 1


def process_line():
    def number(name):
        text = os.environ.get(name, "")
        return int(text) if text.isdigit() else -1

    return json.dumps({"k": "process", "v": VERSION, "pid": os.getpid(), "ppid": os.getppid(), "t": time.monotonic_ns(),
                       "rank": number("RANK"), "local_rank": number("LOCAL_RANK"), "world": number("WORLD_SIZE"),
                       "python": "%d.%d.%d" % sys.version_info[:3], "program": (getattr(sys, "argv", None) or [""])[0][:200]})


def loader_facts(loader, place):
    return {
        "place": place and {key: place[key] for key in ("file", "line", "function", "name")}, "type": type(loader).__name__,
        "batch_size": _batch_size(loader), "num_workers": loader.num_workers, "prefetch_factor": loader.prefetch_factor,
        "persistent_workers": bool(getattr(loader, "persistent_workers", False)), "pin_memory": bool(loader.pin_memory),
        "in_order": bool(getattr(loader, "in_order", True)), "start_method": _start_method(loader),
        "drop_last": bool(loader.drop_last), "dataset": type(loader.dataset).__name__,
        "iterable": getattr(loader, "_dataset_kind", 0) != 0, "samples": _length(loader.dataset), "replaceable": _replaceable(loader),
        "collate": getattr(loader.collate_fn, "__qualname__", type(loader.collate_fn).__name__)[:80]}


# Operations of torchvision that `stoker run --supply` does not know, or not on Pillow images. It has the last word.
_NOT_SUPPLIED = {"Lambda", "RandomTransforms", "ElasticTransform", "LinearTransformation", "AugMix", "MixUp", "CutMix", "FiveCrop", "TenCrop"}


def _replaceable(loader):
    """Whether `stoker run --supply` would probably feed this loader. The package stoker itself is not imported into a job that is measured."""
    try:
        folder = sys.modules.get("torchvision.datasets.folder")
        collate = sys.modules["torch.utils.data._utils.collate"]
        if folder is None or loader.batch_sampler is None or loader.collate_fn is not collate.default_collate:
            return False
        if loader.num_workers and loader.worker_init_fn is not None:
            return False
        return all(_is_supplied(leaf, folder) for leaf in _leaves(loader.dataset))
    except Exception:
        return False


def _leaves(dataset):
    data = sys.modules["torch.utils.data"]
    if type(dataset) is data.Subset:
        return _leaves(dataset.dataset)
    if type(dataset) is data.ConcatDataset:
        return [leaf for part in dataset.datasets for leaf in _leaves(part)]
    return [dataset]


def _is_supplied(leaf, folder):
    is_plain = isinstance(leaf, folder.DatasetFolder) and type(leaf).__getitem__ is folder.DatasetFolder.__getitem__
    if not is_plain or leaf.loader not in (folder.default_loader, folder.pil_loader) or leaf.transform is None:
        return False
    return all(type(item).__module__.split(".")[0] == "torchvision" and type(item).__name__ not in _NOT_SUPPLIED for item in _flat(leaf.transform))


def _flat(transform):
    if type(transform).__name__ != "Compose":
        return [transform]
    return [item for inner in transform.transforms for item in _flat(inner)]


def _batch_size(loader):
    size = loader.batch_size
    if size is None:
        size = getattr(loader.batch_sampler, "batch_size", None)
    return size if isinstance(size, int) else None


def _start_method(loader):
    if loader.num_workers == 0:
        return None
    context = loader.multiprocessing_context
    if context is None:
        import multiprocessing

        return multiprocessing.get_start_method(allow_none=True) or "fork"
    try:
        return context.get_start_method()
    except Exception:
        return type(context).__name__


def _length(dataset):
    try:
        return len(dataset)
    except Exception:
        return None


def batch_line(number, data, torch):
    """What one batch is made of, and the settings of torch by the time it came."""
    seen = {"bytes": 0, "tensors": 0, "objects": 0, "channels_last": False, "shared": False, "pinned": False}
    _walk(data, torch, seen, [2000])
    line = {"k": "described", "n": number, "torch": str(torch.__version__), "threads": torch.get_num_threads(),
            "float32_matmul_precision": _told(torch.get_float32_matmul_precision), "cuda": None}
    line.update(seen)
    if torch.cuda.is_initialized():
        line["cuda"] = {"name": torch.cuda.get_device_name(), "count": torch.cuda.device_count(), "hip": bool(torch.version.hip),
                        "tf32_matmul": _tf32(torch.backends.cuda.matmul), "cudnn_benchmark": bool(torch.backends.cudnn.benchmark)}
    return json.dumps(line)


def _told(ask):
    """torch 2.9 and later refuse to answer by the old names where the job used the new ones."""
    try:
        return ask()
    except Exception:
        return None


def _tf32(matmul):
    new = _told(lambda: matmul.fp32_precision)
    if new is not None and new != "none":
        return new == "tf32"
    old = _told(lambda: matmul.allow_tf32)
    return None if old is None else bool(old)


def _walk(data, torch, seen, left):
    left[0] -= 1
    if left[0] < 0:
        return
    if isinstance(data, torch.Tensor):
        seen["tensors"] += 1
        seen["bytes"] += data.element_size() * data.nelement()
        if data.dim() == 4 and data.is_contiguous(memory_format=torch.channels_last) and not data.is_contiguous():
            seen["channels_last"] = True
    elif isinstance(data, dict):
        for value in data.values():
            _walk(value, torch, seen, left)
    elif isinstance(data, (list, tuple)):
        for value in data:
            _walk(value, torch, seen, left)
    else:
        seen["objects"] += 1
