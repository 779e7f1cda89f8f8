"""Listing 51,000 files, the first time and later, against `find -type f -printf %s`."""

import os
import shutil
import statistics
import subprocess
import time

import prepare
from contest import ROOT, plain_table


def seconds(command):
    started = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def run(args):
    data = prepare.wav_folder(args.data, args.work)
    cache = os.path.join(args.work, "scan-cache")
    program = os.path.join(ROOT, "build", "release", "bench", "bare_scan")
    find = ["find", data, "-type", "f", "-printf", "%s"]

    def first():
        shutil.rmtree(cache, ignore_errors=True)
        os.makedirs(cache)
        return seconds([program, data, cache])

    seconds(find)
    first()
    contestants = {"find -printf %s": lambda: seconds(find), "Stoker, first scan": first,
                   "Stoker, later scan": lambda: seconds([program, data, cache])}
    times = {name: [] for name in contestants}
    for _ in range(max(args.rounds, 5)):
        for name, measure in contestants.items():
            times[name].append(measure())
    base = statistics.median(times["find -printf %s"])
    rows = [[name, f"{statistics.median(t) * 1e3:.1f} ms", f"{min(t) * 1e3:.1f}-{max(t) * 1e3:.1f} ms ({len(t)})",
             f"{statistics.median(t) / base:.2f}"] for name, t in times.items()]
    yield plain_table("scan, warm", f"{prepare.WAV_FILES:,} files in 51 folders; whole processes, from start to exit.",
                      ["what", "time", "spread (runs)", "times find's"], rows)
