"""Growth of the process's memory under memory_limit 64 MB, 256 MB and 1 GB, with slow and fast consumers."""

import prepare
from contest import ours, plain_table, run_once

CASES = [("64MB", 64_000_000, "uint8"), ("256MB", 256_000_000, "uint8"), ("256MB", 256_000_000, "float32"), ("1GB", 1_000_000_000, "float32")]


def run(args):
    data = prepare.jpeg_folder(args.data, args.work)
    prepare.warm(data)
    rows = []
    for limit, limit_bytes, dtype in CASES:
        for consumer, step_s in (("fast", 0.0), ("slow, 100 ms a step", 0.1)):
            result = run_once(ours("Stoker", "stoker_memory", {
                "data": data, "step_s": step_s, "transform": [["random_resized_crop", 224]] + ([["normalize", "imagenet"]] if dtype == "float32" else []),
                "loader": {"batch_size": 64, "shuffle": True, "dtype": dtype, "memory_limit": limit, "prefetch_factor": 64}}), args.work)
            growth = result.get("growth_bytes")
            rows.append([limit, dtype, consumer, result["error"] if growth is None else f"{growth / 1e6:.0f} MB", f"{limit_bytes / 1e6:.0f} MB",
                         "no" if growth is None or growth > limit_bytes else "yes"])
    yield plain_table("memory", "JPEG files, RandomResizedCrop 224, batches of 64, prefetch_factor=64 so that the limit is what binds, one epoch. "
                      "Growth of RssAnon + RssShmem from before the loader "
                      "is built, read every 5 ms; allowed is the limit.",
                      ["memory_limit", "dtype", "consumer", "growth", "allowed", "kept"], rows)
