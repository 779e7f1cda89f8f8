"""Steps: a small model, an emulated step, none, or a Vision Transformer of any size with AMP, gradient accumulation and checkpointing."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from ..errors import UsageError

# dim, depth, heads, patch
SIZES = {"tiny": (192, 12, 3, 16), "small": (384, 12, 6, 16), "base": (768, 12, 12, 16), "large": (1024, 24, 16, 14), "huge": (1280, 32, 16, 14),
         "giant": (1536, 40, 24, 14)}
PRECISIONS = {"off": None, "bf16": torch.bfloat16, "fp16": torch.float16}


def vit(knobs: dict[str, Any]) -> tuple[Any, Any]:
    """A ViT's training step: forward, backward, and AdamW after every ``accumulate_steps`` batches. ``model`` is tiny, small, base, large,
    huge or giant; ``dim, depth, heads, patch_size`` change it. ``amp`` is bf16, fp16 or off; ``checkpointing`` recomputes each block.
    ``img_size`` (224), ``classes`` (1000), ``device`` (auto). Without ``source`` the images are random and already in memory, so that
    only the step is measured; with one they come as by :func:`image_folder`, or by :func:`ct_slices` from an index.csv."""
    from .images import ct_slices, image_folder

    knobs.setdefault("model", "base")
    source = knobs.get("source")
    if source:
        return (ct_slices if str(source).endswith(".csv") else image_folder)(knobs)
    size = int(knobs.get("img_size", 224))
    step = step_of(knobs, channels=3, size=size)
    return Fixed(int(knobs.get("batch_size", 32)), size, int(knobs.get("classes", 1000))), step


class Fixed:
    """The same random batch for ever."""

    def __init__(self, batch_size: int, size: int, classes: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self._batch = torch.rand(batch_size, 3, size, size, generator=generator), torch.randint(classes, (batch_size,), generator=generator)

    def __iter__(self) -> Any:
        while True:
            yield self._batch


def device_of(knobs: dict[str, Any]) -> torch.device:
    name = str(knobs.get("device", "auto"))
    if name != "auto":
        return torch.device(name)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def step_of(knobs: dict[str, Any], channels: int = 0, size: int = 0) -> Any:
    """The step that ``model`` or ``step_ms`` ask for; without either a small model's, so that batches are used as a job would."""
    device, step_ms, model = device_of(knobs), knobs.get("step_ms"), knobs.get("model")
    if model is not None and step_ms is not None:
        raise UsageError("a step is emulated by step_ms or done by model, not both")
    if model == "none" or step_ms is not None:
        return Moved(device, float(step_ms or 0) / 1000)
    if model is None:
        return Small(knobs, device, channels)
    return Training(knobs, device, channels, size)


class Moved:
    """Takes a batch to the device, and then as long as an emulated step."""

    def __init__(self, device: torch.device, seconds: float) -> None:
        self._device, self._seconds = device, seconds

    def transfer(self, batch: Any) -> Any:
        return [one.to(self._device, non_blocking=True) if isinstance(one, torch.Tensor) else one for one in batch]

    def __call__(self, batch: Any) -> None:
        if self._seconds > 0:
            time.sleep(self._seconds)


class Small(Moved):
    """Steps of a small model: patches of 16 pixels (of audio, 64 frames), two layers, a mean, a head, SGD. About 20 million
    multiplications for an image of 224 pixels: batches go to the device and through autograd, and the loader stays the limit."""

    def __init__(self, knobs: dict[str, Any], device: torch.device, channels: int) -> None:
        super().__init__(device, 0)
        torch.manual_seed(int(knobs.get("seed", 0)))
        patches: nn.Module = nn.Conv2d(channels, 64, 16, 16) if channels else nn.Conv1d(1, 64, 64, 64)
        self.model = nn.Sequential(patches, nn.Flatten(2), nn.GELU(), nn.Conv1d(64, 64, 1), nn.GELU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
                                   nn.Linear(64, 1000)).to(device)
        self._is_audio = channels == 0
        self._optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)

    def __call__(self, batch: Any) -> None:
        data, labels = batch
        if self._is_audio:
            data = data.unsqueeze(1)
        if min(data.shape[2:]) < (64 if self._is_audio else 16):  # smaller than one patch
            data = functional.interpolate(data, size=(64,) if self._is_audio else (16, 16))
        loss = functional.cross_entropy(self.model(data), labels.clamp(min=0) % 1000)
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)


class Training(Moved):
    """Steps of a ViT. One call is one batch; weights change after every ``accumulate_steps`` of them."""

    def __init__(self, knobs: dict[str, Any], device: torch.device, channels: int, size: int) -> None:
        super().__init__(device, 0)
        amp = knobs.get("amp", "off")
        amp = {True: "bf16", False: "off"}.get(amp, amp)
        if amp not in PRECISIONS:
            raise UsageError(f"amp is off, bf16 or fp16, not `{amp}`")
        self._precision = PRECISIONS[amp]
        self._every = int(knobs.get("accumulate_steps", 1))
        if self._every < 1:
            raise UsageError(f"accumulate_steps is {self._every}, but must be at least 1")
        self._done = 0
        self._classes = int(knobs.get("classes", 1000))
        torch.manual_seed(int(knobs.get("seed", 0)))
        self.model = ViT(knobs, channels, size, self._classes).to(device)
        self._optimizer = torch.optim.AdamW(self.model.parameters(), lr=float(knobs.get("lr", 1e-4)))
        self._scaler = torch.amp.GradScaler(device.type, enabled=self._precision is torch.float16)

    def __call__(self, batch: Any) -> None:
        images, labels = batch
        cast = torch.autocast(self._device.type, self._precision) if self._precision else contextlib.nullcontext()
        with cast:
            loss = functional.cross_entropy(self.model(images), labels.clamp(min=0) % self._classes)
        self._scaler.scale(loss / self._every).backward()
        self._done += 1
        if self._done % self._every == 0:
            self._scaler.step(self._optimizer)
            self._scaler.update()
            self._optimizer.zero_grad(set_to_none=True)


class ViT(nn.Module):
    def __init__(self, knobs: dict[str, Any], channels: int, size: int, classes: int) -> None:
        super().__init__()
        name = str(knobs.get("model"))
        if name not in SIZES:
            raise UsageError(f"model is {', '.join(SIZES)}, not `{name}`")
        dim, depth, heads, patch = (int(knobs.get(word, default)) for word, default in zip(("dim", "depth", "heads", "patch_size"), SIZES[name]))
        if size % patch or dim % heads:
            raise UsageError(f"img_size {size} must be a multiple of patch_size {patch}, and dim {dim} one of heads {heads}",
                             f"try img_size {max(1, size // patch) * patch}")
        self._checkpointing = bool(knobs.get("checkpointing", False))
        self.dim, self._grid = dim, size // patch
        self.patches = nn.Conv2d(channels, dim, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, dim))
        self.places = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2 + 1, dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes) if classes else nn.Identity()

    def _places_for(self, rows: int, columns: int) -> torch.Tensor:
        """Of images of another size: interpolated."""
        if rows == columns == self._grid:
            return self.places
        grid = self.places[:, 1:].view(1, self._grid, self._grid, self.dim).permute(0, 3, 1, 2)
        grid = functional.interpolate(grid, (rows, columns), mode="bicubic", align_corners=False)
        return torch.cat([self.places[:, :1], grid.flatten(2).transpose(1, 2)], 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images)
        places = self._places_for(x.shape[2], x.shape[3])
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + places
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self._checkpointing else block(x)
        return self.head(self.norm(x)[:, 0])


class Block(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self._heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, tokens, dim = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, tokens, 3, self._heads, dim // self._heads).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, tokens, dim)
        x = x + self.out(attended)
        return x + self.mlp(self.norm2(x))
