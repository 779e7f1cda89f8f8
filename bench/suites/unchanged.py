"""Python code as it is: callables and a Dataset in python_workers; a stock ImageNet script, tuned and fed by `stoker run --supply` (STOKER_SCRIPTS names clones of its repository)."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import prepare
from contest import ROOT, ours, plain_table, run_once

BATCH = 64
TRAIN, VAL = 3_840, 1_280
EPOCHS = 2
PROCESSES = 2
WORKERS = (0, 1, 2, 4)
SLEEP_MS = 5        # less than Stoker needs for a batch on 2 cores
SCRIPT = "examples/imagenet/main.py"
STOKER = os.path.join(ROOT, "build/release/stoker")
SUPPLIED = [STOKER, "run", "--supply", "--"]
GRID = ["--grid", "num_workers=0,1,2,3,4,5,6,8", "--grid", "prefetch_factor=1,2,4,8,16"]
MARGIN = 0.02


def photos(args):
    """Photos as ImageFolder wants them: train and val, each with folders of classes."""
    sources = sorted(prepare.files_of(prepare.jpeg_folder(args.data, args.work)))

    def make(folder):
        for part, first, count in (("train", 0, TRAIN), ("val", TRAIN, VAL)):
            for number in range(count):
                where = os.path.join(folder, part, f"class{number % 8}")
                os.makedirs(where, exist_ok=True)
                shutil.copyfile(sources[(first + number) % len(sources)], os.path.join(where, f"{number:06d}.jpg"))

    return prepare.whole(os.path.join(args.work, f"unchanged-{TRAIN}-{VAL}"), make)


def command(script, data, workers, report, sleep_ms=SLEEP_MS, epochs=EPOCHS):
    return [sys.executable, os.path.join(ROOT, "bench/peers/script_without_model.py"), report, str(sleep_ms), script, "-a", "resnet18", "-b", str(BATCH),
            "-j", str(workers), "--epochs", str(epochs), "-p", "1000", "--lr", "0", data]


def run_job(script, data, workers, before=(), sleep_ms=SLEEP_MS, epochs=EPOCHS):
    """Samples per second of the first epoch, of the later ones and of validation, and what validation gave."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        done = subprocess.run([*before, *command(script, data, workers, report, sleep_ms, epochs)], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"error: {script} failed:\n{done.stderr[-2000:]}")
        with open(report) as file:
            phases = json.load(file)
    training, validation = ([phase for phase in phases if phase["training"] is kind] for kind in (True, False))
    ends = [phase["times"][-1] for phase in phases]
    starts = [0.0, *ends[:-1]]  # a phase begins where the one before it ends: starting workers is inside

    def rate(phase):
        number = phases.index(phase)
        return sum(phase["samples"]) / (ends[number] - starts[number])

    return {"first": rate(training[0]), "later": statistics.mean(map(rate, training[1:] or training)), "validation": statistics.mean(map(rate, validation)),
            "logits": [phase["logits"] for phase in validation], "said": [line for line in done.stderr.splitlines() if line.startswith("stoker: ")]}


def ceiling(args, data):
    """Samples/s of Stoker's loader with the operations of the script's validation, without a script and without a step."""
    own = ours("the engine alone", "stoker_epochs", {"data": os.path.join(data, "val"), "batch": BATCH, "epochs": 2})
    runs = []
    for _ in range(args.rounds):
        run = run_once(own, args.work)
        if "error" in run:
            raise SystemExit(f"error: the engine alone: {run['error']}")
        runs.append([epoch["items"] / epoch["seconds"] for epoch in run["epochs"]])
    return [statistics.median(rates) for rates in zip(*runs)]


def supplied(args, script, data):
    checked = [run_job(script, data, 2, before, "check", 1)["logits"] for before in ((), SUPPLIED)]
    own = {workers: [] for workers in WORKERS}
    fed = []
    for _ in range(args.rounds):
        for workers in WORKERS:
            own[workers].append(run_job(script, data, workers))
        fed.append(run_job(script, data, 2, SUPPLIED))
    first, again = ceiling(args, data)

    def middle(runs, key):
        return statistics.median(run[key] for run in runs)

    best = {key: max(middle(runs, key) for runs in own.values()) for key in ("first", "later", "validation")}
    equal = checked[0] == checked[1] and all(run["logits"] == own[0][0]["logits"] for runs in [*own.values(), fed] for run in runs)
    rows = [[f"as it is, -j {workers}", *(f"{middle(runs, key):,.0f}" for key in best), ""] for workers, runs in own.items()]
    rows.append(["`stoker run --supply`", *(f"{middle(fed, key):,.0f} ({middle(fed, key) / best[key]:.2f}x)" for key in best),
                 "equal" if equal else "**different**"])
    rows.append(["Stoker's loader alone, the same operations", "", "", f"{first:,.0f}, again {again:,.0f} ({first / best['validation']:.2f}x, {again / best['validation']:.2f}x)", ""])
    yield plain_table("a stock ImageNet script, fed", f"{TRAIN:,} photos to train, {VAL} to validate, batches of {BATCH}, {EPOCHS} epochs; the model sleeps {SLEEP_MS} ms. "
                      f"Samples/s; the first epoch counts from the start of the program's own code, and worker processes start in every phase. In brackets: against the best "
                      f"`-j`. Runs of their own compare every bit of the images that are validated. Medians of {args.rounds}.",
                      ["how", "first epoch", "later epochs", "validation", "logits of validation"], rows)


def tune(folder, script, data, search):
    out = os.path.join(folder, search)
    # Each trial writes its report to the same place; nobody reads it.
    words = command(script, data, 2, os.path.join(folder, "report.json"))
    done = subprocess.run([STOKER, "tune", *GRID, "--search", search, "--warmup-steps", "4", "--bench-steps", "40", "--out", out, "--json", "--", *words],
                          cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"error: stoker tune failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def again(folder, script, data, settings, rounds):
    """Samples/s of later epochs with each of these settings, in turn: the highest of many single trials is partly luck."""
    with open(os.path.join(folder, "auto", "settings.json")) as file:
        applied = json.load(file)
    rates = [[] for _ in settings]
    for _ in range(rounds):
        for number, knobs in enumerate(settings):
            applied["loaders"][0]["set"] = {name: int(value) for name, value in knobs.items()}
            path = os.path.join(folder, "settings.json")
            with open(path, "w") as file:
                json.dump(applied, file)
            rates[number].append(run_job(script, data, 2, [STOKER, "run", "--settings", path, "--"])["later"])
    return [statistics.median(one) for one in rates]


def tuned(args, script, data):
    with tempfile.TemporaryDirectory() as folder:
        whole, few = tune(folder, script, data, "grid"), tune(folder, script, data, "auto")
        best, chosen = again(folder, script, data, [whole["best"]["knobs"], few["chosen"]["knobs"]], args.rounds)
    rows = [["every point", str(whole["grid_points"]), f"{whole['seconds']:.0f} s", str(whole["best"]["knobs"]), f"{best:,.0f}"],
            ["`--search auto`", str(few["ok"]), f"{few['seconds']:.0f} s ({few['seconds'] / whole['seconds']:.0%})", str(few["chosen"]["knobs"]),
             f"{chosen:,.0f} ({chosen / best:.1%})"]]
    yield plain_table("a stock ImageNet script, tuned", "`stoker tune -- python ...`: the settings go into its DataLoader from outside. The highest rate of every point is partly luck, so both "
                      f"settings ran {args.rounds} times more, in turn: medians of their later epochs. Within {MARGIN:.0%} counts as the best.",
                      ["search", "points", "time", "settings", "samples/s"], rows)


def callables(args):
    """Per-sample callables and the items of a Dataset, on the same number of processes."""
    path, _ = prepare.npy_file(args.work)
    prepare.warm(path)
    common = {"batch": BATCH, "workers": PROCESSES, "warmup": 1_024}
    rows = {
        "rows of an .npy, no callable": {"how": "rows", "callable": "none", "data": path, "items": 40_000},
        "rows of an .npy, callable returns its argument": {"how": "rows", "callable": "same", "data": path, "items": 40_000},
        "the callable of 1 ms alone": {"how": "alone", "items": 4_096, "warmup": 256},
        "rows of an .npy, callable of 1 ms": {"how": "rows", "callable": "busy", "data": path, "items": 8_192},
        "Dataset of 1 ms, torch's DataLoader": {"how": "torch", "count": 4_096, "items": 8_192},
        "Dataset of 1 ms, `stoker.Loader(dataset=...)`": {"how": "stoker", "count": 4_096, "items": 8_192},
        "Dataset of 1 ms, torch's DataLoader, 8 processes": {"how": "torch", "count": 4_096, "items": 8_192, "workers": 8},
        "Dataset of 1 ms, `stoker.Loader(dataset=...)`, 8 processes": {"how": "stoker", "count": 4_096, "items": 8_192, "workers": 8},
        "a process that imports torch, and nothing else": {"how": "import", "items": 1, "warmup": 0},
    }
    runs = {name: [] for name in rows}
    for _ in range(args.rounds):
        for name, asked in rows.items():
            run = run_once(ours(name, "python_rows", {**common, **asked}), args.work)
            if "error" in run:
                raise SystemExit(f"error: {name}: {run['error']}")
            runs[name].append(run)

    def middle(name, figure):
        return statistics.median(figure(run) for run in runs[name])

    def rate(run):
        return run["items"] / run["seconds"]

    def cpu_ms(run):
        return 1e3 * run["cpu_seconds"] / run["items"]

    def memory(run):
        return run["memory_bytes"] / 2**20

    names = list(rows)
    alone = names[2]
    against = {names[3]: f"{middle(names[3], cpu_ms) / middle(alone, cpu_ms):.2f}x the CPU of the callable"}
    for torch, own in (names[4:6], names[6:8]):
        against[own] = f"{middle(own, rate) / middle(torch, rate):.2f}x the rate, {middle(own, memory) / middle(torch, memory):.0%} of the memory"
    yield plain_table("Python code for each sample", f"224 x 224 x 3 uint8, batches of {BATCH}, {PROCESSES} processes where no other number stands, warm. Memory is the peak of the whole process tree, shared pages counted once. "
                      f"Medians of {args.rounds}.", ["what", "samples/s", "CPU per sample", "memory", "against"],
                      [[name, f"{middle(name, rate):,.0f}", f"{middle(name, cpu_ms):.3f} ms", f"{middle(name, memory):,.0f} MiB", against.get(name, "")] for name in names])


def run(args):
    if not args.table or args.table in "python code for each sample":
        yield from callables(args)
    folder = os.environ.get("STOKER_SCRIPTS")
    script = os.path.join(folder or "", SCRIPT)
    if not folder or not os.path.exists(script):
        print(f"note: unchanged is left out: STOKER_SCRIPTS names a folder with {SCRIPT} (github.com/pytorch/examples)", file=sys.stderr)
        return
    data = photos(args)
    prepare.warm(data)
    for title, table in (("fed", supplied), ("tuned", tuned)):
        if not args.table or args.table in title:
            yield from table(args, script, data)
