"""An .npy of 150,528-byte rows in random order through Python, against memcpy on the same number of threads."""

import os

import prepare
from contest import bare, contest, ours

BATCH, EPOCHS, ROW_BYTES = 64, 8, 150_528


def run(args):
    path, offset = prepare.npy_file(args.work)
    prepare.warm(path)
    threads = len(os.sched_getaffinity(0))
    rows = [ours(f"Stoker, storage={storage}", "stoker_loader",
                 {"data": path, "items": EPOCHS * prepare.NPY_ROWS, "loader": {"batch_size": BATCH, "shuffle": True, "seed": 42, "storage": storage}})
            for storage in ("buffered", "mmap")]
    rows.append(bare(f"memcpy, {threads} threads", "bare_copy_rows", path, offset, ROW_BYTES, prepare.NPY_ROWS, BATCH, threads, EPOCHS))
    table = contest("npy-copy, warm", rows, args, note=f"{prepare.NPY_ROWS:,} rows of {ROW_BYTES:,} bytes, {EPOCHS} epochs, batches of {BATCH} into reused memory.")
    if table is None:
        return
    rates = {row["name"]: row.get("rate") for row in table["rows"]}
    memcpy = rates.pop(f"memcpy, {threads} threads")
    mine = max((rate for rate in rates.values() if rate), default=None)
    if memcpy and mine:
        table["note"] += f" Stoker reaches {mine / memcpy:.0%} of memcpy ({memcpy * ROW_BYTES / 1e9:.1f} GB/s)."
    yield table
