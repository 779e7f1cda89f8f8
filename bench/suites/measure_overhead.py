"""What `stoker measure` costs the job it measures: the same steps with and without it, in turn."""

import json
import os
import statistics
import subprocess
import sys

from contest import ROOT, plain_table

# (step in ms, steps, workers)
RACES = [(10, 300, 0), (10, 300, 1), (200, 25, 0), (200, 25, 1)]

# The step sleeps, so what remains of the training thread's CPU time is the loader's and the hook's. CPU time is what a busy machine cannot blur.
JOB = """
import json, os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Samples(Dataset):
    def __init__(self): self.rows = torch.zeros(4096, 64)
    def __len__(self): return 64 * int(sys.argv[2])
    def __getitem__(self, index): return self.rows[index % 4096], index

step, steps, workers = float(sys.argv[1]) / 1000, int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
loader = DataLoader(Samples(), batch_size=64, num_workers=workers, prefetch_factor=4 if workers else None)
walls, last = [], None
for number, batch in enumerate(loader):
    now = time.perf_counter()
    if number == 5: cpu, began = time.thread_time(), now
    if last is not None and number > 5: walls.append(now - last)
    last = now
    time.sleep(step)
fields = open(f"/proc/{os.getppid()}/stat").read().rsplit(")", 1)[1].split()
print(json.dumps({"cpu_us": 1e6 * (time.thread_time() - cpu) / (steps - 5), "wall_ms": 1e3 * sorted(walls)[len(walls) // 2],
                  "parent_share": (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") / (time.perf_counter() - began)}))
"""


def run_once(arguments, measured):
    program = [os.path.join(ROOT, "build/release/stoker"), "measure", "--"] if measured else []
    done = subprocess.run([*program, sys.executable, "-c", JOB, *map(str, arguments)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def run(args):
    rows = []
    for step, steps, workers in RACES:
        plain, measured = [], []
        for _ in range(args.rounds):
            plain.append(run_once((step, steps, workers), False))
            measured.append(run_once((step, steps, workers), True))

        def middle(runs, key):
            return statistics.median(one[key] for one in runs)

        more = statistics.median(b["cpu_us"] - a["cpu_us"] for a, b in zip(plain, measured))
        rows.append([f"{step} ms", str(workers), f"{middle(plain, 'cpu_us'):.0f} us", f"{middle(measured, 'cpu_us'):.0f} us", f"{more / step / 10:.2f} %",
                     f"{middle(plain, 'wall_ms'):.2f} ms", f"{middle(measured, 'wall_ms'):.2f} ms", f"{100 * middle(measured, 'parent_share'):.2f} %"])
    note = f"Batches of 64 rows from memory, the cheapest samples there are; the step sleeps. Medians of {args.rounds} runs each, in turn."
    header = ["step", "num_workers", "CPU of the training thread per step", "measured", "more, of the step", "median step", "measured",
              "`stoker` itself, of a core"]
    yield plain_table("what `stoker measure` costs", note, header, rows)
