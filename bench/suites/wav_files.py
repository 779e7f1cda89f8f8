"""51,000 small WAV files to [1024, 8000] float32, warm and cold, in order and shuffled, against four other loaders and a bare loop."""

import os
import statistics

import prepare
from contest import bare, contest, ours, peer

BATCH, FRAMES, WARM_EPOCHS = 1024, 8000, 3
EXPECT = {"shape": [BATCH, FRAMES], "dtype": "float32", "contiguous": True, "min": (-1, -0.1), "max": (0.1, 1), "mean": (-0.1, 0.1)}


def stoker(data, items, shuffle=False, name="Stoker", **more):
    return ours(name, "stoker_loader", {"data": data, "items": items, "check": not shuffle, "transform": [["pad_or_trim", FRAMES]],
                                        "loader": {"batch_size": BATCH, "shuffle": shuffle, "seed": 42}, **more})


def bare_loops(data, epochs, order, depths):
    """open, read, close (depth 0), or as many at a time by io_uring, on 1 to 4 threads."""
    return [bare(f"bare loop in C++, {'io_uring' if depth else 'read'}, {threads} thread{'s' * (threads > 1)}", "bare_wav_loop", data, FRAMES, BATCH, epochs, threads, order, depth,
                 group="bare loop")
            for depth in (0, *depths) for threads in (1, 2, 3, 4)]


def peers(data, items):
    job, cores = {"data": data, "items": items, "check": True, "frames": FRAMES, "batch_size": BATCH, "shuffle": False}, len(os.sched_getaffinity(0))
    return [*(peer(f"DataLoader + soundfile, {workers} workers", "torch_soundfile", {**job, "num_workers": workers}) for workers in (2, 4)),
            peer("DALI on the CPU", "dali_wav", {**job, "num_threads": cores}),
            peer("tf.data", "tensorflow_wav", {**job, "parallel": cores}),
            *(peer(f"SPDL, {name}", "spdl_wav", {**job, "num_threads": threads}) for name, threads in (("1 thread", 1), ("2 threads", 2))),
            peer("np.memmap of rows packed as int16: no files to open", "numpy_memmap_rows", {**job, "rows": prepare.wav_rows(data, FRAMES)}, kind="reference")]


def compare_first_batches(table):
    """Fails the rows whose first batch is not what most others made of the same files."""
    if table is None:
        return None
    sums = {row["name"]: run["batch"]["magnitude"] for row in table["rows"] for run in row["runs"] if run.get("batch")}
    usual = statistics.median_low(sums.values()) if sums else 0
    for row in table["rows"]:
        if abs(sums.get(row["name"], usual) - usual) > 1e-5 * usual and row.pop("rate", None):
            row["error"] = f"did other work: the magnitudes of its first batch sum to {sums[row['name']]:.1f}, those of most others to {usual:.1f}"
    return table


def run(args):
    data = prepare.wav_folder(args.data, args.work)
    files, note = prepare.WAV_FILES, f"Batches [{BATCH}, {FRAMES}] float32. Listing and start-up are inside the time; the bare loop, the best of read and io_uring " \
                                     "on 1 to 4 threads, knows its files beforehand."
    others = peers(data, WARM_EPOCHS * files)
    prepare.warm(data)
    prepare.warm(others[-1].args["rows"])
    yield compare_first_batches(contest(
        "wav-files, warm, in order", [stoker(data, WARM_EPOCHS * files), *others, *bare_loops(data, WARM_EPOCHS, "in-order", [128])], args,
        expect=EXPECT, note=f"{files:,} files, {WARM_EPOCHS} epochs. {note}"))

    yield compare_first_batches(contest(
        "wav-files, warm, one epoch", [stoker(data, files), stoker(data, files, name="Stoker, samples=", list=True),
                                       stoker(data, files, name="Stoker, listing not cached", empty_cache=True), *bare_loops(data, 1, "in-order", [128])], args,
        expect=EXPECT, note=f"{files:,} files, 1 epoch. {note} The list of samples= is made before."))

    def cool():
        prepare.cool(data)
    state = prepare.cool(data)
    yield compare_first_batches(contest(
        f"wav-files, {state}, in order", [stoker(data, files), *peers(data, files), *bare_loops(data, 1, "in-order", [512])], args, before=cool,
        expect=EXPECT, note=f"{files:,} files, 1 epoch, caches dropped before each run. {note}"))
    yield contest(f"wav-files, {state}, shuffled", [stoker(data, files, shuffle=True), *bare_loops(data, 1, "shuffled", [512])], args, before=cool,
                  expect=EXPECT, note=f"{files:,} files, 1 epoch in random order, caches dropped before each run. {note}")
