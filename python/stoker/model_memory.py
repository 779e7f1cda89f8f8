"""What a training step of a model takes on the device, by parts, without running it: ``python -m stoker.model_memory torchvision:resnet50,img=224 --amp bf16``.

The model is traced with fake tensors, which have a shape and a type and no memory. Every storage that an operator makes is counted from its
birth to its death, through forward, backward and the optimizer's step. Two batch sizes give a straight line. What an operator takes inside
itself (workspaces of cuDNN), the context of the device and the gaps of an allocator are not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from .errors import Error, UsageError

PRECISIONS = {"none": None, "bf16": torch.bfloat16, "fp16": torch.float16}
OPTIMIZERS = {"sgd": 1, "adam": 2}  # moments of each parameter
BATCHES = 64, 128  # far from where the optimizer's step, and not the activations, is the peak
EXAMPLE = "write it like torchvision:resnet50,img=224, or file.py:function for a function that returns an nn.Module"


class Live(TorchDispatchMode):
    """Bytes of the storages that are alive, and the most that there were."""

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[int, int] = {}
        self.now = self.peak = 0

    def hold(self, tensor: Any) -> None:
        if not isinstance(tensor, torch.Tensor):
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._sizes:
            return
        self._sizes[key] = storage.nbytes()
        self.now += storage.nbytes()
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._drop, key)

    def _drop(self, key: int) -> None:
        self.now -= self._sizes.pop(key, 0)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            self.hold(tensor)
        return made


def torchvision_models() -> Any:
    """torchvision's wheel from PyPI is built for CUDA: beside another build of torch its import asks for operators that it did not load.
    Their names are enough, models need none of them."""
    try:
        return importlib.import_module("torchvision.models")
    except ModuleNotFoundError:
        raise UsageError("torchvision is not installed for this Python", f"pip install torchvision; {sys.executable} is asked") from None
    except RuntimeError:
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        global _operators
        _operators = torch.library.Library("torchvision", "FRAGMENT")
        for operator in ("nms", "qnms"):
            _operators.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return importlib.import_module("torchvision.models")


_operators: Any = None  # lives as long as the process


def find(text: str) -> tuple[Callable[[], nn.Module], int, int]:
    """``torchvision:resnet50,img=224,classes=100`` or ``file.py:function,img=224``: what makes it, image size, number of classes."""
    name, *settings = text.split(",")
    where, _, what = name.rpartition(":")
    numbers = {"img": 224, "classes": 1000}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in numbers or not value.isdigit() or int(value) == 0:
            raise UsageError(f"cannot read the model `{text}`: `{setting}` is none of img=N, classes=N", EXAMPLE)
        numbers[key] = int(value)
    if where == "torchvision":
        models = torchvision_models()
        if what not in models.list_models():
            import difflib

            near = difflib.get_close_matches(what, models.list_models(), 1)
            raise UsageError(f"torchvision has no model `{what}`", f"did you mean `{near[0]}`?" if near else EXAMPLE)
        return lambda: models.get_model(what, weights=None, num_classes=numbers["classes"]), numbers["img"], numbers["classes"]
    if not where or not what:
        raise UsageError(f"cannot read the model `{text}`", EXAMPLE)
    from ._trial import find as find_function

    return find_function(name), numbers["img"], numbers["classes"]  # type: ignore[return-value]


@contextlib.contextmanager
def without_init() -> Iterator[None]:
    """Models draw their weights when they are made, and some look at what they drew: fake tensors have no values to look at."""
    kept = {name: value for name, value in vars(nn.init).items() if name.endswith("_") and not name.startswith("_") and callable(value)}
    try:
        for name in kept:
            setattr(nn.init, name, lambda tensor, *_, **__: tensor)
        yield
    finally:
        for name, value in kept.items():
            setattr(nn.init, name, value)


def recompute_blocks(model: nn.Module) -> int:
    """Checkpoints every block: the children of sequences that are no layers of torch itself. How many there are."""
    count = 0
    for module in model.modules():
        if not isinstance(module, (nn.Sequential, nn.ModuleList)):
            continue
        for child in module:
            if type(child).__module__.startswith("torch.nn") or not any(True for _ in child.parameters()):
                continue
            child.forward = _recomputed(child.forward)
            count += 1
    return count


def _recomputed(forward: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: checkpoint(forward, *args, use_reentrant=False, preserve_rng_state=False)


def traced_step(make: Callable[[], nn.Module], batch: int, size: int, amp: str, checkpointing: bool, optimizer: str) -> dict[str, int]:
    """Bytes by parts of the second step, when gradients and moments are there, and the FLOPs of a forward pass."""
    live, flops = Live(), FlopCounterMode(display=False)
    with FakeTensorMode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with without_init():
            model = make()
        if not isinstance(model, nn.Module):
            raise UsageError(f"the function returned {type(model).__name__}, not an nn.Module", EXAMPLE)
        model.train()
        blocks = recompute_blocks(model) if checkpointing else 0
        images = torch.empty(batch, 3, size, size)
        for tensor in (*model.parameters(), *model.buffers(), images):
            live.hold(tensor)
        learn: torch.optim.Optimizer = (torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) if optimizer == "sgd"
                                        else torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False))
        precision = PRECISIONS[amp]

        def forward() -> Any:
            with torch.autocast("cpu", precision) if precision else contextlib.nullcontext():
                made = model(images)
            tensors = [one for one in tree_leaves(made) if isinstance(one, torch.Tensor) and one.dtype.is_floating_point]
            return torch.stack([one.float().mean() for one in tensors]).sum()

        with flops, torch.no_grad():
            forward()
        with live:
            for _ in range(2):
                live.peak, before = live.now, live.now
                loss = forward()
                after_forward = live.now
                loss.backward()
                del loss
                learn.step()
                learn.zero_grad(set_to_none=True)
        parameters = sum(one.numel() * one.element_size() for one in model.parameters())
        gradients = sum(one.numel() * one.element_size() for one in model.parameters() if one.requires_grad)
        buffers = sum(one.numel() * one.element_size() for one in model.buffers())
    return {"batch": batch, "parameters": parameters, "buffers": buffers, "gradients": gradients, "optimizer": gradients * OPTIMIZERS[optimizer],
            "input": images.numel() * 4, "activations": after_forward - before, "peak": live.peak, "forward_flops": flops.get_total_flops() // batch,
            "parameter_count": sum(one.numel() for one in model.parameters()), "blocks": blocks}


def memory_of(text: str, amp: str = "bf16", checkpointing: bool = False, optimizer: str = "sgd") -> dict[str, Any]:
    """The parts that do not depend on the batch, the bytes per image, and the line of the peak: ``fixed_bytes + bytes_per_image * batch``."""
    for name, value, known in (("amp", amp, PRECISIONS), ("optimizer", optimizer, OPTIMIZERS)):
        if value not in known:
            raise UsageError(f"{name} is {', '.join(known)}, not `{value}`")
    make, size, classes = find(text)
    small, large = (traced_step(make, batch, size, amp, checkpointing, optimizer) for batch in BATCHES)
    if checkpointing and not large["blocks"]:
        raise UsageError(f"`{text}` has no blocks to checkpoint", "leave checkpointing out")
    more = BATCHES[1] - BATCHES[0]
    per_image = {part: (large[part] - small[part]) / more for part in ("input", "activations", "peak")}
    return {"model": text, "img_size": size, "classes": classes, "amp": amp, "checkpointing": checkpointing, "optimizer_name": optimizer,
            "parameter_count": large["parameter_count"], "forward_flops": large["forward_flops"],
            "parameters_bytes": large["parameters"], "buffers_bytes": large["buffers"], "gradients_bytes": large["gradients"],
            "optimizer_bytes": large["optimizer"], "fixed_bytes": large["peak"] - per_image["peak"] * BATCHES[1],
            "bytes_per_image": per_image["peak"], "activation_bytes_per_image": per_image["activations"],
            "input_bytes_per_image": per_image["input"],
            "temporary_bytes_per_image": per_image["peak"] - per_image["activations"] - per_image["input"]}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m stoker.model_memory", description=__doc__.splitlines()[0])
    parser.add_argument("model", help=EXAMPLE)
    parser.add_argument("--amp", default="bf16")
    parser.add_argument("--optimizer", default="sgd")
    parser.add_argument("--checkpointing", action="store_true")
    options = parser.parse_args(words)
    try:
        print(json.dumps(memory_of(options.model, options.amp, options.checkpointing, options.optimizer)))
    except Error as error:
        print(json.dumps({"error": error.message, "hint": error.hint}))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
