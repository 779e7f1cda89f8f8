"""Which part of each step's samples this process gets: ``rank`` of ``world_size``.

A loader is often made before its trainer starts the process group. So the loader asks when it first needs the answer.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from . import _engine
from .errors import Error, UsageError

__all__ = ["Rank", "check_against_process_group", "find_rank", "given_rank"]

# Slurm sets SLURM_PROCID in a batch script too, where one process stands for all tasks. SLURM_STEP_NUM_TASKS exists only
# in a step (srun), which has as many processes as it says.
_VARIABLES = (("RANK", "WORLD_SIZE", "torchrun"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "a Slurm step"))


class Rank(NamedTuple):
    rank: int
    world_size: int
    note: str = ""  # where the two come from, as a sentence


def given_rank(rank: int | None, world_size: int | None) -> Rank | None:
    """The arguments, checked; None if there are none."""
    if (rank is None) != (world_size is None):
        raise UsageError("rank and world_size go together", "give both, or neither")
    if rank is None or world_size is None:
        return None
    rank, world_size = _engine.checked_option("rank", rank), _engine.checked_option("world_size", world_size)
    if rank >= world_size:
        raise UsageError(f"rank is from 0 to world_size - 1 ({world_size - 1}), not {rank}")
    return Rank(rank, world_size)


def find_rank() -> Rank:
    """From torch.distributed if it is initialised, else from torchrun's variables, else from those of a Slurm step."""
    group = _process_group()
    if group is not None:
        return _taken(*group, "torch.distributed")
    for rank_name, size_name, launcher in _VARIABLES:
        if os.environ.get(rank_name) and os.environ.get(size_name):
            rank, world_size = _variable(rank_name), _variable(size_name)
            if rank >= world_size:
                raise UsageError(f"{rank_name}={rank} does not fit {size_name}={world_size}: it is from 0 to {size_name} - 1",
                                 f"set both as {launcher} does, or give rank= and world_size=")
            return _taken(rank, world_size, f"{rank_name} and {size_name} ({launcher})")
    if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
        return Rank(0, 1, f"WORLD_SIZE={os.environ['WORLD_SIZE']} is set, but RANK is not, and torch.distributed is not initialised: "
                          "this loader gives every sample to this process; give rank= and world_size=, or initialise first")
    return Rank(0, 1)


def check_against_process_group(taken: Rank) -> None:
    """Throws if a process group that exists by now has another rank or size."""
    group = _process_group()
    if group is None or group == taken[:2]:
        return
    raise Error(f"this loader took rank {taken.rank} of {taken.world_size}, but torch.distributed now says rank {group[0]} of {group[1]}: "
                "ranks would train on the same samples",
                "call len(loader) or iter(loader) after init_process_group only, or give rank= and world_size=", "usage")


def _taken(rank: int, world_size: int, origin: str) -> Rank:
    return Rank(rank, world_size, f"rank={rank}, world_size={world_size} were taken from {origin}")


def _process_group() -> tuple[int, int] | None:
    """(rank, world_size) of torch.distributed; None if torch is not imported or has no process group."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def _variable(name: str) -> int:
    text = os.environ[name]
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"the environment has {name}={text}, which is not a whole number", f"unset {name}, or give rank= and world_size=")
    return int(text)
