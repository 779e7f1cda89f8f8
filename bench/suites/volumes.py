"""Random patches of volumes as z-scored float32: .npy, zarr, TIFF and NIfTI against DataLoaders; cold against what the disk gives."""

import math
import os

import prepare
from contest import bare, contest, ours, peer

BATCH, PATCHES, PATCH = 2, 8000, (72, 136, 136)
SCAN_BATCH, SCAN_PATCH = 4, (96, 96, 96)
COLD_LIMIT, COLD_PATCHES = 512 << 20, 600
DEPTH = 64  # reads in flight of the reference; more give no more here


def run(args):
    yield warm(args)
    for packing in ("raw", "blosc-zstd"):
        yield zarr(args, packing)
    for packing in ("none", "deflate"):
        yield tiff(args, packing)
    yield nifti(args)
    yield cold(args)


def cores():
    return len(os.sched_getaffinity(0))


def wanted(args, title):
    """Whether to make the data of this table."""
    return not args.table or args.table in title


def job_of(path, items, **more):
    return {"data": path, "patch": PATCH, "batch_size": BATCH, "shuffle": True, "items": items, "warmup": max(2 * BATCH, items // 20), **more}


def stoker_job(path, items, **loader):
    return {**job_of(path, items), "loader": {"batch_size": BATCH, "shuffle": True, "seed": 42, **loader}}


def best_peer(table):
    return max((row["rate"] for row in table["rows"] if row["kind"] == "peer" and "rate" in row), default=None)


def rate_of(table, kind):
    return max((row["rate"] for row in table["rows"] if row["kind"] == kind and "rate" in row), default=None)


def with_bar(table, bar):
    """Adds what was to be reached, and what was."""
    mine, peers = rate_of(table, "ours") if table else None, best_peer(table) if table else None
    if mine and peers:
        table["note"] += f" The bar is {bar}x the faster peer; Stoker reaches {mine / peers:.1f}x."
    return table


def warm(args):
    title = "volumes, warm"
    if not wanted(args, title):
        return None
    path, offset = prepare.volume_file(args.work)
    prepare.warm(path)
    rows = [ours("Stoker", "stoker_volumes", stoker_job(path, PATCHES)),
            *(peer(f"DataLoader on np.memmap, {workers} workers", "torch_memmap_patches", job_of(path, PATCHES // 20, num_workers=workers))
              for workers in (0, cores())),
            bare(f"bare C++ loop, {cores()} threads", "bare_patches", path, offset, *prepare.VOLUME, PATCHES, cores())]
    depth, height, width = prepare.VOLUME
    table = contest(title, rows, args, note=f"One .npy of {depth} x {height} x {width} uint8, read from memory. Batches of {BATCH} float32 patches, with the z-score of each patch.")
    mine, loop, peers = (rate_of(table, "ours"), rate_of(table, "reference"), best_peer(table)) if table else (None, None, None)
    if mine and loop and peers:
        table["note"] += f" Stoker reaches {mine / loop:.0%} of the bare loop and {mine / peers:.1f}x the faster DataLoader."
    return table


def zarr(args, packing):
    title = f"volumes, zarr v3, {packing}, warm"
    if not wanted(args, title):
        return None
    path, quarter = prepare.volume_zarr(args.work, packing), math.prod(prepare.VOLUME) // 4
    prepare.warm(path)
    rows = [ours("Stoker", "stoker_volumes", stoker_job(path, PATCHES // 4, memory_limit=quarter)),
            *(peer(f"DataLoader on tensorstore, {workers} workers", "torch_tensorstore_patches", job_of(path, PATCHES // 20, num_workers=workers, cache_bytes=quarter))
              for workers in (0, cores()))]
    return with_bar(contest(title, rows, args, note="The volume in chunks of 128 x 128 x 128, read from memory. All of Stoker's memory is a quarter of the volume, and so is "
                            "tensorstore's cache of chunks."), 4)


def tiff(args, packing):
    title = f"volumes, TIFF, {packing}, warm"
    if not wanted(args, title):
        return None
    path = prepare.volume_tiff(args.work, packing)
    prepare.warm(path)
    rows = [ours("Stoker", "stoker_volumes", stoker_job(path, PATCHES if packing == "none" else PATCHES // 20)),
            *(peer(f"DataLoader on tifffile, {workers} workers", "torch_tifffile_patches", job_of(path, PATCHES // (100 if packing == "none" else 400), num_workers=workers))
              for workers in (0, cores()))]
    return with_bar(contest(title, rows, args, note="The volume as one file of a page for each plane, read from memory."), 8 if packing == "none" else 4)


def nifti(args):
    title = "volumes, NIfTI with masks, warm"
    if not wanted(args, title):
        return None
    path = prepare.scans(args.work)
    prepare.warm(path)
    job = {"data": path, "patch": SCAN_PATCH, "batch_size": SCAN_BATCH, "items": 4000, "warmup": 64}
    mine = {**job, "volumes": {"foreground": 0.5}, "loader": {"batch_size": SCAN_BATCH, "shuffle": True, "seed": 42}}
    rows = [ours("Stoker", "stoker_volumes", mine),
            *(peer(f"MONAI CacheDataset, {workers} workers", "monai_patches", {**job, "items": 400, "num_workers": workers}) for workers in (0, cores()))]
    depth, height, width = prepare.SCAN
    return with_bar(contest(title, rows, args, note=f"{prepare.SCANS} .nii volumes of {depth} x {height} x {width} int16. Patches of {' x '.join(map(str, SCAN_PATCH))} with their masks, "
                            "half of them around label. MONAI has them in memory as float32, with the places of the label; its first batch, which reads the files, is in the warm-up."), 5)


def cold(args):
    title = "volumes, cold"
    if not wanted(args, title):
        return None
    path, offset = prepare.volume_file(args.work, prepare.LARGE_VOLUME)
    depth, height, width = prepare.LARGE_VOLUME
    span = (PATCH[1] - 1) * width + PATCH[2]  # of one plane of a patch, from its first element to its last
    planes = depth * height * width // span
    rows = [ours("Stoker", "stoker_volumes", stoker_job(path, COLD_PATCHES, storage="direct", memory_limit=COLD_LIMIT)),
            bare(f"the disk, {DEPTH} reads in flight", "bare_pack_rows", path, offset, span, planes, 1, math.ceil(COLD_PATCHES * PATCH[0] / planes), 1, "ring", DEPTH)]
    table = contest(title, rows, args, before=lambda: prepare.cool(path),
                    note=f"One .npy of {depth} x {height} x {width} uint8 past the page cache, memory_limit={COLD_LIMIT >> 20}MiB. The reference reads as many bytes as a patch needs, plane by plane, "
                    "at random places, and throws them away.")
    if not table:
        return None
    for row in table["rows"]:
        if row["kind"] == "reference" and "rate" in row:
            for key in ("rate", "low", "high"):
                row[key] /= PATCH[0]  # its items are planes
            row["cpu_per_item_s"] *= PATCH[0]
    mine, disk = rate_of(table, "ours"), rate_of(table, "reference")
    if mine and disk:
        table["note"] += f" The bar is 70 % of the disk; Stoker reaches {mine / disk:.0%}."
    return table
