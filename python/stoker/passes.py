"""How a loader makes samples: what ``loader.plan()`` tells."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from . import _engine

__all__ = ["Pass", "Plan", "make_plan", "mixing_text"]

_MIXES = re.compile(r"(random_choice\[[^\]]*\b(mixup|cutmix)\b[^\]]*\][^,]*|\b(mixup|cutmix)\b[^,]*)$")  # at the end of a short text


class Pass(NamedTuple):
    """Operations that run together over the pixels of an image."""

    output: str | None          # the group of Views; "data": there is one output; None: before all of them
    operations: list[str]
    fused: bool                 # several operations run together, row by row
    whole_image: bool           # it needs the whole image in memory; else it goes row by row
    scratch_bytes: int | None   # of the first pass of an output: working memory of all its passes, for an image like the first one
    images: int                 # that were timed: one sample in 16, others in each epoch
    us: float | None            # microseconds for an image; None: none was timed yet
    share: float | None         # of the time of all passes


class Plan(NamedTuple):
    """The passes in their order. Empty where samples are no images; ``text`` has the operations of every kind of sample in one line. ``then``: what follows."""

    text: str
    passes: list[Pass]
    then: list[str] = []

    def as_dict(self) -> dict[str, Any]:
        return {"text": self.text, "passes": [one._asdict() for one in self.passes], "then": self.then}

    def __str__(self) -> str:
        then = [f"then {text}" for text in self.then]
        if not self.passes:
            return "\n".join([self.text, *then])
        rows = [["pass", "works on", "scratch", "us per image", "share"]]
        has_groups = any(one.output not in (None, "data") for one in self.passes)
        for one in self.passes:
            words = " + ".join(one.operations)
            rows.append([f"{one.output}: {words}" if has_groups and one.output else words, "image" if one.whole_image else "rows",
                         f"{one.scratch_bytes / 1024:,.0f} KiB" if one.scratch_bytes else "", f"{one.us:.1f}" if one.us is not None else "",
                         f"{100 * one.share:.1f} %" if one.share is not None else ""])
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) if column < 2 else cell.rjust(width)
                                   for column, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]
        return "\n".join(lines + then)


def mixing_text(transform: str) -> str:
    """The operation on batches at the end of a compiled transform, as a short text; empty: there is none."""
    found = _MIXES.search(_engine.transform_text(transform))
    return found[0] if found else ""


def make_plan(text: str, passes: list[dict[str, Any]], then: list[str]) -> Plan:
    total = sum(one["seconds"] for one in passes)
    return Plan(text, [Pass(one["output"] or None, one["operations"], len(one["operations"]) > 1, one["whole_image"], one["scratch_bytes"] or None,
                            one["images"], one["seconds"] / one["images"] * 1e6 if one["images"] else None,
                            one["seconds"] / total if total else None) for one in passes], then)
