"""Allocations per sample once the loader runs, and what its counters cost, for WAV, .npy and JPEG."""

import os

import prepare
from contest import ROOT, ours, plain_table, run_once


def run(args):
    library = os.path.join(ROOT, "build", "release", "bench", "count_malloc.so")
    wav, (npy, _), jpeg = prepare.wav_folder(args.data, args.work), prepare.npy_file(args.work), prepare.jpeg_folder(args.data, args.work)
    cases = [("WAV, batch 256", wav, [["pad_or_trim", 8000]], 256), ("WAV, batch 1024", wav, [["pad_or_trim", 8000]], 1024),
             (".npy, batch 64", npy, [], 64), ("JPEG, batch 64", jpeg, [["random_resized_crop", 224]], 64)]
    rows = []
    for name, data, transform, batch in cases:
        prepare.warm(data)
        result = run_once(ours(name, "stoker_allocations", {"data": data, "transform": transform,
                                                            "loader": {"batch_size": batch, "shuffle": True, "seed": 42}},
                               environment={"LD_PRELOAD": library}), args.work)
        if "error" in result:
            rows.append([name, result["error"], "", "", "", "", ""])
            continue
        steady = result["epochs"][1:]
        total = {key: sum(epoch[key] for epoch in steady) for key in steady[0]}
        items, batches = total["items"], total["batches"]
        engine = total["allocations"] - total["main_thread"] - total["libjpeg"]
        clock = total["clock_reads"] / items
        share = total["clock_reads"] * result["clock_read_ns"] * 1e-9 / total["cpu_seconds"]
        rows.append([name, f"{items:,}", f"{engine / items:.4f}", f"{total['libjpeg'] / items:.2f}", f"{total['main_thread'] / batches:.1f}",
                     f"{clock:.2f} x {result['clock_read_ns']:.0f} ns", f"{share:.2%}"])
    yield plain_table("steady-state", "Second and third epoch of one process; the first warms up. Counted with a preloaded malloc; libjpeg's own are its pools, "
                      "created by libjpeg for each image. The counters' cost is clock readings x the cost of one, over all CPU time.",
                      ["what", "samples", "engine allocations per sample", "libjpeg's own per sample", "consumer's per batch (with Python)",
                       "clock readings per sample", "counters' share of CPU"], rows)
