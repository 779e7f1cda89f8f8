"""Time to the first batch on a 50,000-file folder, warm, after the first scan, against the PyTorch DataLoader."""

import statistics

import prepare
from contest import ours, peer, plain_table, run_once

BATCH, FRAMES = 64, 8000


def run(args):
    data = prepare.wav_folder(args.data, args.work, 50_000)
    prepare.warm(data)
    contestants = [
        ours("Stoker", "stoker_loader", {"data": data, "items": 1, "transform": [["pad_or_trim", FRAMES]],
                                         "loader": {"batch_size": BATCH, "shuffle": True, "seed": 42}}),
        peer("DataLoader + soundfile, 2 workers", "torch_soundfile",
             {"data": data, "items": 1, "frames": FRAMES, "batch_size": BATCH, "num_workers": 2, "shuffle": True})]
    for contestant in contestants:
        run_once(contestant, args.work)
    runs = {contestant.name: [] for contestant in contestants}
    for _ in range(max(args.rounds, 5)):
        for contestant in contestants:
            runs[contestant.name].append(run_once(contestant, args.work))
    rows = []
    for name, results in runs.items():
        failed = [result["error"] for result in results if "error" in result]
        times = [] if failed else [result["first_batch_s"] for result in results]
        rows.append([name, "failed: " + failed[0], ""] if failed else
                    [name, f"{statistics.median(times):.3f} s", f"{min(times):.3f}-{max(times):.3f} s ({len(times)})"])
    yield plain_table("first-batch, warm, after the first scan",
                      f"50,000 WAV files, batch {BATCH}; a new process each time, from building the loader to the first batch; imports are outside.",
                      ["what", "time to first batch", "spread (runs)"], rows)
