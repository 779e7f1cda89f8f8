"""Batches of 1 GiB from a .npy of 4 GiB, warm: the time to each of them, by memory_limit, against a copy by numpy."""

import os
import statistics

import prepare
from contest import ours, plain_table, run_once

ROWS, ROW_BYTES, BATCH = 4096, 1 << 20, 1024
LIMITS = ("3GB", "5GB", "8GB")


def rows_file(work):
    def make(folder):
        import numpy

        prepare.say(f"writing {ROWS:,} rows of 1 MiB")
        rows = numpy.lib.format.open_memmap(os.path.join(folder, "rows.npy"), "w+", numpy.uint8, (ROWS, ROW_BYTES))
        block = numpy.random.default_rng(prepare.SEED).integers(0, 256, (64, ROW_BYTES), numpy.uint8)
        for first in range(0, ROWS, len(block)):
            rows[first:first + len(block)] = block
        rows.flush()
    return os.path.join(prepare.whole(os.path.join(work, "npy-large"), make), "rows.npy")


def run(args):
    data = rows_file(args.work)
    prepare.warm(data)
    job = {"data": data, "batch_size": BATCH}
    contestants = [ours("numpy, a copy of the mapped rows", "batch_times", {**job, "loader": {}})]
    contestants += [ours(f"Stoker, memory_limit={limit}", "batch_times", {**job, "loader": {"memory_limit": limit}}) for limit in LIMITS]
    runs = {contestant.name: [] for contestant in contestants}
    for _ in range(max(args.rounds, 3)):
        for contestant in contestants:
            runs[contestant.name].append(run_once(contestant, args.work))
    rows = []
    for name, results in runs.items():
        failed = [result["error"] for result in results if "error" in result]
        if failed:
            rows.append([name, "failed: " + failed[0], "", ""])
            continue
        first = [result["batch_s"][0] for result in results]
        later = [statistics.mean(result["batch_s"][1:]) for result in results]
        rows.append([name, f"{statistics.median(first):.2f} s", f"{min(first):.2f}-{max(first):.2f} s ({len(first)})", f"{statistics.median(later):.2f} s"])
    yield plain_table("large-batches, warm", f"{ROWS:,} rows of 1 MiB, batches of {BATCH:,} rows, one epoch in a new process each time; the first batch "
                      "includes building the loader.", ["what", "first batch", "spread (runs)", "each later batch"], rows)
