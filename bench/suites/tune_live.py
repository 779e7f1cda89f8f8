"""The tuner's search against the whole grid, random points and Optuna, on recorded grids of real trials (--live records them again)."""

import csv
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

import prepare
import venvs
from contest import HERE, ROOT, plain_table, say

RECORDED = os.path.join(HERE, "recorded")
STOKER = os.path.join(ROOT, "build", "release", "stoker")
SEEDS = 200
REMEASURED, REMEASURED_FOR = 8, "4s"  # interleaved rounds, of so long

WORKERS = "num_workers=0,1,2,3,4,6"
GRIDS = {
    "jpeg": ("our loader, JPEG, an emulated step of 40 ms", lambda args: [prepare.jpeg_folder(args.data, args.work), "--shuffle", "--transform", "rrc:224,flip,normalize:imagenet", "--step-ms", "40"],
             ["batch_size=8,16,32,64,96,128", WORKERS, "prefetch_factor=1,4"], 4, (5, 40)),
    "png16": ("PyTorch DataLoader (stoker.targets:ct_slices), 16-bit PNG, an emulated step of 40 ms",
              lambda args: ["stoker.targets:ct_slices", prepare.ct_slices(args.work)[0], "--inflate", "1000", "--step-ms", "40", "--with", "img_size=128", "--python", sys.executable],
              ["batch_size=2,4,6,8,12,16", WORKERS, "prefetch_factor=1,4"], 3, (4, 24)),
    "wav": ("our loader, WAV, no step", lambda args: [prepare.wav_folder(args.data, args.work), "--shuffle", "--transform", "pad:8000", "--bench-time", "2s"],
            ["batch_size=16,32,64,128,256,512", WORKERS, "prefetch_factor=1,4"], 4, (10, 20)),
}


def tune(target, grid, steps, folder, search, bench_time=None):
    shutil.rmtree(folder, ignore_errors=True)
    target = [*target, *(["--bench-time", bench_time] if bench_time else [])]
    words = [word for knob in grid for word in ("--grid", knob)]
    done = subprocess.run([STOKER, "tune", *target, *words, "--search", search, "--warmup-steps", str(steps[0]), "--bench-steps", str(steps[1]), "--out", folder, "--json"],
                          stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode not in (0, 1):
        raise SystemExit(f"error: stoker tune failed with code {done.returncode}")
    return json.loads(done.stdout)


def recorded_path(name, kind):
    return os.path.join(RECORDED, f"{name}.{kind}")


def start(name, args):
    """What is tuned, ready to be read from memory."""
    target = GRIDS[name][1](args)
    prepare.warm(next(word for word in target if os.path.exists(word)))
    return target, os.path.join(args.work, "tune-live")


def record(name, args):
    """Passes over the whole grid into recorded/NAME.csv."""
    title, _, grid, passes, steps = GRIDS[name]
    target, folder = start(name, args)
    loads, rows, header, shares = [os.getloadavg()[0]], [], None, []
    for number in range(passes):
        say(f"{name}: pass {number + 1} of {passes} over the grid")
        shares.append(tune(target, grid, steps, folder, "grid")["tuner_cpu_share"])
        loads.append(os.getloadavg()[0])
        with open(os.path.join(folder, "results.csv"), newline="") as file:
            header, *more = csv.reader(file)
        rows += more
    os.makedirs(RECORDED, exist_ok=True)
    with open(recorded_path(name, "csv"), "w", newline="") as file:
        file.write(f"# {title}; {passes} passes over the grid by `./dev bench tune-live --live`, {time.strftime('%Y-%m-%d', time.gmtime())}, "
                   f"{len(os.sched_getaffinity(0))} cores, load {min(loads):.1f}-{max(loads):.1f}, tuner's own CPU {100 * max(shares):.2f} %\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([number + 1, *row[1:]] for number, row in enumerate(rows))


def search(name, args):
    """The search itself, live; its answer against the recorded grid's best, interleaved. Into recorded/NAME.json."""
    title, _, grid, passes, steps = GRIDS[name]
    target, folder = start(name, args)
    with open(recorded_path(name, "csv"), newline="") as file:
        next(file)
        header, *rows = csv.reader(file)
    column, seconds, status = header.index("images_per_s"), header.index("trial_seconds"), header.index("status")
    knobs = header[status + 1:column]
    rates = {}
    for row in rows:
        rates.setdefault(tuple(row[status + 1:column]), []).append(float(row[column]) if row[status] == "ok" else 0)
    best = max(rates, key=lambda point: statistics.mean(rates[point]))
    loads = [os.getloadavg()[0]]
    say(f"{name}: the search")
    found = tune(target, grid, steps, folder, "auto")
    mine = tuple(found["best"]["knobs"][knob] for knob in knobs)
    again = {best: [], mine: []}
    say(f"{name}: what it found and the grid's best, in turn")
    for number in range(REMEASURED if mine != best else 0):
        for point in sorted(again, reverse=number % 2 == 1):
            one = tune(target, [f"{knob}={word}" for knob, word in zip(knobs, point)], steps, folder, "grid", REMEASURED_FOR)
            again[point].append(one["best"]["images_per_s"])
    loads.append(os.getloadavg()[0])
    ratio = statistics.mean(again[mine]) / statistics.mean(again[best]) if mine != best else 1.0
    facts = {"title": title, "best": dict(zip(knobs, best)), "auto": dict(zip(knobs, mine)), "auto_over_best_remeasured": ratio,
             "remeasured": {" ".join(point): values for point, values in again.items()}, "auto_seconds": found["seconds"],
             "grid_seconds": sum(float(row[seconds]) for row in rows) / passes, "tuner_cpu_share": found["tuner_cpu_share"],
             "load": loads, "cores": len(os.sched_getaffinity(0)), "date": time.strftime("%Y-%m-%d", time.gmtime())}
    with open(recorded_path(name, "json"), "w") as file:
        json.dump(facts, file, indent=1)
        file.write("\n")


def optuna(path, budgets, args):
    try:
        python = venvs.python_of("optuna_search", args.work)
    except venvs.Unavailable as reason:
        return None, str(reason)
    done = subprocess.run([python, os.path.join(HERE, "peers", "optuna_search.py"), json.dumps({"file": path, "budgets": budgets})], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return None, f"exit {done.returncode}"
    answer = json.loads(done.stdout)
    return answer["regrets"], answer["version"]


def percent(value, digits=1):
    return f"{100 * value:.{digits}f} %"


def live_row(facts):
    ratio = "the same point" if facts["auto"] == facts["best"] else percent(facts["auto_over_best_remeasured"])
    return [facts["title"], ratio, percent(facts["auto_seconds"] / facts["grid_seconds"]),
            f"{facts['auto_seconds']:.0f} of {facts['grid_seconds']:.0f} s", percent(facts["tuner_cpu_share"], 2),
            f"{min(facts['load']):.1f}-{max(facts['load']):.1f}", facts["date"]]


def cores_of(path):
    """Of the machine that recorded it, as the first line of the file says."""
    with open(path) as file:
        return re.search(r"([0-9]+) cores", file.readline())[1]


def run(args):
    live = []
    names = [name for name in GRIDS if not args.only or name in args.only.split(",")]
    for part, does in (("grid", record), ("search", search)):
        for name in names if args.live in (part, "all") else ():
            does(name, args)
    for name in names:
        path = recorded_path(name, "csv")
        if not os.path.exists(path):
            say(f"note: {name} was not recorded: ./dev bench tune-live --live")
            continue
        if os.path.exists(recorded_path(name, "json")):
            with open(recorded_path(name, "json")) as file:
                live.append(live_row(json.load(file)))
        program = os.path.join(ROOT, "build", "release", "bench", "tune_replay")
        played = json.loads(subprocess.run([program, path, "--cores", cores_of(path), "--seeds", str(SEEDS)], check=True, stdout=subprocess.PIPE, text=True).stdout)
        runs = played["runs"]
        theirs, word = optuna(path, [one["seconds"] for one in runs], args)
        shares = [one["seconds"] / played["grid_seconds"] for one in runs]
        rows = [[label, percent(statistics.median(regrets), 2), percent(sorted(regrets)[int(0.95 * (len(regrets) - 1))], 2),
                 percent(sum(regret <= 0.02 for regret in regrets) / len(regrets), 0), time_share]
                for label, regrets, time_share in [
                    ("--search auto, its fastest", [one["best"] for one in runs], percent(statistics.median(shares))),
                    ("--search auto, what it chooses", [one["chosen"] for one in runs], percent(statistics.median(shares))),
                    *([(f"Optuna {word}, TPE and median pruner", theirs, "the same")] if theirs else []),
                    ("random points", [one["random"] for one in runs], "the same"),
                    ("every point once", [one["exhaustive"] for one in runs], "100 %")]]
        if not theirs:
            rows.append([f"Optuna: not run ({word})", "", "", "", ""])
        yield plain_table(f"tune-live, {name}: {GRIDS[name][0]}", f"{played['points']} points, {played['passes']} recordings of each; {SEEDS} replays of each search, whose trials are answered by "
                          "recorded ones. Regret: how far the mean of all recordings of what was picked lies below that of the best point.",
                          ["search", "regret, median", "p95", "within 2 %", "time of the grid's, median"], rows)
    yield plain_table("tune-live, as it ran live", f"The search's fastest and the grid's fastest, measured again {REMEASURED} times in turn, {REMEASURED_FOR} each; time of the search against one pass over the grid; "
                      "CPU of the tuner itself while trials ran; load of the machine before and after.",
                      ["target", "search's over grid's", "time", "", "tuner's CPU", "load", "recorded"], live)
