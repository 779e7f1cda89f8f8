"""What a loader says of its run: the verdict on its counters, and two lines for people."""

from __future__ import annotations

import math
from typing import Any

from . import _engine

__all__ = ["judged", "summary_of"]


def judged(stats: dict[str, Any]) -> dict[str, Any]:
    """The engine's verdict; Python callables are a stage of their own when they cost most."""
    wait, python_s = stats["wait"], stats["python_s"]
    if python_s > 0 and python_s > max(wait.values()) and python_s > 0.05 * (stats["compute_s"] + python_s + stats["wait_s"]):
        total = stats["compute_s"] + python_s + stats["wait_s"]
        share = python_s / total
        return {"bound": "python_bound", "general": "python_bound", "share": share,
                "gain": total / (total - python_s) if total > python_s else math.inf,
                "severity": "severe" if share > 0.2 else "moderate"}
    return _engine.judge(compute_s=stats["compute_s"] + python_s, **wait)


def summary_of(stats: dict[str, Any], has_batch_transform: bool) -> str:
    if not stats["batches"]:
        return "no batch was taken yet"
    verdict, wait = stats["verdict"], stats["wait"]
    total = max(1e-9, stats["compute_s"] + stats["python_s"] + stats["wait_s"])
    shares = [("fetch", wait["fetch_s"]), ("prep", wait["prep_s"]), ("hand-off", wait["handoff_s"])]
    if has_batch_transform or stats["python_s"]:
        shares.append(("python", stats["python_s"]))
    shares.append(("compute", stats["compute_s"]))
    words = ", ".join(f"{word} {_percent(part / total)}" for word, part in shares)
    general = "" if verdict["general"] == verdict["bound"] else f" ({verdict['general']})"
    ready = stats["ready_batches"]
    return (f"{verdict['bound']} {_percent(verdict['share'])}{general}: {words}\n"
            f"{stats['samples_per_s']:,.0f} samples/s, {stats['encoded_bytes'] / max(stats['running_s'], 1e-9) / 1e6:,.1f} MB/s read; "
            f"{_counted(stats['num_workers'], 'worker')}; ready batches {ready['mean']:.1f} (empty {_percent(ready['empty_share'])}); "
            f"memory peak {_engine.format_bytes(stats['memory_peak'])} of {_engine.format_bytes(stats['memory_limit'])}; "
            f"{_counted(stats['errors'], 'error')}")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
