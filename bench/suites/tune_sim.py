"""How near the tuner's search comes to the best of 72 points on simulated jobs, and at what share of the grid's time."""

import json
import os
import subprocess

from contest import ROOT, plain_table

GRIDS = 1500
NAMES = {"exhaustive": "every point once, the highest rate", "auto": "--search auto, its fastest", "auto_cheapest": "--search auto, what it chooses",
         "auto_tried": "--search auto, the truly best of what it tried",
         "random": "random points for the same time, the highest rate"}
TITLES = {"worker_side": "tune-sim, the workers' own rates are known", "consumer_side": "tune-sim, only the consumer's clock is known"}


def run(args):
    program = os.path.join(ROOT, "build", "release", "bench", "tune_sim")
    done = subprocess.run([program, "--grids", str(GRIDS), "--seed", str(args.seed)], check=True, stdout=subprocess.PIPE, text=True)
    result = json.loads(done.stdout)
    for kind, title in TITLES.items():
        rows = [[name, f"{100 * figures['within_2_percent']:.1f} %", f"{100 * figures['time_median']:.1f} %", f"{100 * figures['time_p95']:.1f} %",
                 f"{figures['trials_mean']:.1f}", f"{100 * figures['regret_median']:.2f} %", f"{100 * figures['regret_p95']:.1f} %"]
                for key, name in NAMES.items() for figures in [result[kind][key]]]
        yield plain_table(title, f"{result['grids']:,} jobs of a discrete-event simulator (seed {args.seed}): 6 batch sizes x 6 numbers of workers x pinning; bursts, "
                          "faults that are not monotone, 1-3 % noise of each trial beside that of its steps; every trial 5 + at least 20 steps, whole rounds of the workers. "
                          "Judged by the true rate of what was picked.",
                          ["search", "within 2 % of the true best", "time of the grid's, median", "p95", "trials", "regret, median", "p95"], rows)
