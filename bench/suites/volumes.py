"""Random 72 x 136 x 136 patches of a uint8 volume as z-scored float32, against a DataLoader on np.memmap and a bare C++ loop."""

import os

import prepare
from contest import bare, contest, ours, peer

BATCH, PATCHES, PATCH = 2, 8000, (72, 136, 136)


def run(args):
    path, offset = prepare.volume_file(args.work)
    prepare.warm(path)
    threads = len(os.sched_getaffinity(0))
    job = {"data": path, "patch": PATCH, "batch_size": BATCH, "shuffle": True}
    rows = [ours("Stoker", "stoker_volumes", {**job, "items": PATCHES, "warmup": 200, "loader": {"batch_size": BATCH, "shuffle": True, "seed": 42}}),
            *(peer(f"DataLoader on np.memmap, {workers} workers", "torch_memmap_patches", {**job, "items": PATCHES // 20, "warmup": 20, "num_workers": workers})
              for workers in (0, threads)),
            bare(f"bare C++ loop, {threads} threads", "bare_patches", path, offset, *prepare.VOLUME, PATCHES, threads)]
    depth, height, width = prepare.VOLUME
    table = contest("volumes, warm", rows, args, note=f"One .npy of {depth} x {height} x {width} uint8, read from memory. Batches of {BATCH} float32 patches, with the z-score of each patch.")
    if table is None:
        return
    rates = {row["name"]: row.get("rate") for row in table["rows"]}
    mine, loop = rates.get("Stoker"), rates.get(f"bare C++ loop, {threads} threads")
    peers = [rate for name, rate in rates.items() if name.startswith("DataLoader") and rate]
    if mine and loop and peers:
        table["note"] += f" Stoker reaches {mine / loop:.0%} of the bare loop and {mine / max(peers):.1f}x the faster DataLoader."
    yield table
