"""51,000 small WAV files to [1024, 8000] float32, warm and cold, against the PyTorch DataLoader with soundfile."""

import prepare
from contest import bare, contest, ours, peer

BATCH, FRAMES = 1024, 8000


def contestants(data, epochs, work, check):
    rows = [ours("Stoker", "stoker_loader", {"data": data, "epochs": epochs, "check": check, "transform": [["pad_or_trim", FRAMES]],
                                             "loader": {"batch_size": BATCH, "shuffle": False}})]
    for workers in (0, 2, 4):
        rows.append(peer(f"DataLoader + soundfile, {workers} workers", "torch_soundfile",
                         {"data": data, "epochs": epochs, "check": check, "frames": FRAMES, "batch_size": BATCH, "num_workers": workers}, work))
    return rows + [bare(f"open, read, close, convert in C++, {threads} threads", "bare_wav_loop", data, FRAMES, BATCH, threads, epochs)
                   for threads in (2, 16)]


def compare_checksums(table):
    sums = [run["checksum"] for row in table["rows"] for run in row["runs"] if run.get("checksum")]
    if sums and max(sums) - min(sums) > 1e-5 * max(sums):
        raise SystemExit(f"error: contestants do not agree on the first batch: sums of magnitudes {sorted(set(sums))}")


def run(args):
    data = prepare.wav_folder(args.data, args.work)
    prepare.warm(data)
    table = contest("wav-files, warm", contestants(data, 3, args.work, True), args.rounds,
                    note=f"{prepare.WAV_FILES:,} files in order, batches [{BATCH}, {FRAMES}] float32, 3 epochs; listing and start-up are inside the time.")
    compare_checksums(table)
    yield table

    state = prepare.cool(data)
    yield contest(f"wav-files, {state}", contestants(data, 1, args.work, False), args.rounds, before=lambda: prepare.cool(data),
                  note="The same, 1 epoch, caches dropped before each run.")
