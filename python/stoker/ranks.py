"""Which part of each step's samples this process gets: ``rank`` of ``world_size``.

A loader is often made before its trainer starts the process group. So the loader asks when it first needs the answer.
"""

from __future__ import annotations

import collections
import json
import os
import sys
from typing import Any, NamedTuple

from . import _engine
from .errors import Error, UsageError

__all__ = ["Rank", "check_against_other_ranks", "check_against_process_group", "cpus_of_ray", "find_rank", "given_rank", "made_at"]

# Slurm sets SLURM_PROCID in a batch script too, where one process stands for all tasks. SLURM_STEP_NUM_TASKS exists only
# in a step (srun), which has as many processes as it says.
_VARIABLES = (("RANK", "WORLD_SIZE", "torchrun"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "a Slurm step"),
              ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI"), ("PMI_RANK", "PMI_SIZE", "MPICH or Intel MPI"))


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
    """From torch.distributed if it is initialised, else from Ray Train, else from the variables of torchrun, a Slurm step, Open MPI or MPICH."""
    group = _process_group()
    if group is not None:
        return _taken(*group, "torch.distributed")
    trains = _ray_train()
    if trains is not None:
        return _taken(*trains, "Ray Train")
    for rank_name, size_name, launcher in _VARIABLES:
        if os.environ.get(rank_name) and os.environ.get(size_name):
            rank, world_size = _variable(rank_name), _variable(size_name)
            if rank >= world_size:
                raise UsageError(f"{rank_name}={rank} does not fit {size_name}={world_size}: it is from 0 to {size_name} - 1",
                                 f"set both as {launcher} does, or give rank= and world_size=")
            return _taken(rank, world_size, f"{rank_name} and {size_name} ({launcher})")
    for set_name, missing in (("WORLD_SIZE", "RANK"), ("RANK", "WORLD_SIZE")):
        text = os.environ.get(set_name, "")
        if text not in ("", "1" if set_name == "WORLD_SIZE" else "0"):
            return Rank(0, 1, f"{set_name}={text} is set, but {missing} is not, and torch.distributed is not initialised: "
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


_made: collections.Counter[str] = collections.Counter()  # loaders, by the line that made them


def made_at() -> str:
    """A name for the loader that is being made: the line of the program, and how many it has made before. It is the same on every rank."""
    frame = sys._getframe(1)
    package = __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame = frame.f_back
    line = f"{frame.f_globals.get('__name__', '')}:{frame.f_lineno}"
    _made[line] += 1
    return f"{line}:{_made[line]}"


def check_against_other_ranks(name: str, rank: int, facts: dict[str, Any]) -> None:
    """Throws if another rank began to iterate the loader of this name with other facts. Waits for nobody: the first rank writes its facts into the store of
    torch.distributed, and the others compare theirs. Without a process group nobody can tell."""
    if _process_group() is None:
        return
    if os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0") != "0":  # torchrun keeps the store over restarts, and an earlier world may have been another
        facts = {word: value for word, value in facts.items() if word not in ("world_size", "the epoch", "the position")}
    text = json.dumps({"rank": rank, **facts})
    try:
        from torch.distributed.distributed_c10d import _get_default_store

        first = json.loads(_get_default_store().compare_set(f"stoker/loader/{name}", "", text))
    except Exception:  # a store of another kind, or one that is gone: the training itself will say so
        return
    different = [f"{word} is {value} here and {first.get(word)} there" for word, value in facts.items() if first.get(word) != value]
    if different:
        raise Error(f"rank {rank} and rank {first.get('rank')} do not agree about a loader: {'; '.join(different)}: ranks would train on the same samples and miss others",
                    "give every rank the same data, seed, batch_size and state; rank=0, world_size=1 is for a rank with data of its own", "usage")


def _taken(rank: int, world_size: int, origin: str) -> Rank:
    return Rank(rank, world_size, f"rank={rank}, world_size={world_size} were taken from {origin}")


def _process_group() -> tuple[int, int] | None:
    """(rank, world_size) of torch.distributed; None if torch is not imported or has no process group."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def _ray_train() -> tuple[int, int] | None:
    """(rank, world_size) inside a worker of Ray Train; it starts a process group for torch only."""
    train = sys.modules.get("ray.train")
    try:
        context = train.get_context()  # type: ignore[union-attr]
        rank, world_size = context.get_world_rank(), context.get_world_size()
    except Exception:  # not inside of a training function, or another version of Ray
        return None
    return (rank, world_size) if isinstance(rank, int) and isinstance(world_size, int) else None


def cpus_of_ray() -> int | None:
    """CPUs that Ray gives this task or actor, at least 1; None outside of one. Ray counts CPUs and binds nobody to them."""
    ray = sys.modules.get("ray")
    if ray is None or not getattr(ray, "is_initialized", bool)():
        return None
    try:
        cpus = ray.get_runtime_context().get_assigned_resources().get("CPU", 0)
    except Exception:  # this is the driver
        return None
    return max(1, int(cpus)) if cpus else None


def _variable(name: str) -> int:
    text = os.environ[name]
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"the environment has {name}={text}, which is not a whole number", f"unset {name}, or give rank= and world_size=")
    return int(text)
