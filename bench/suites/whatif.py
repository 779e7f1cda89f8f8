"""What `stoker plan` predicts from one ledger, against what is then measured; and how often its P10-P90 holds."""

import json
import os
import shutil
import statistics
import subprocess
import tempfile

import prepare
from contest import ROOT, plain_table

STOKER = os.environ.get("STOKER_BIN", os.path.join(ROOT, "build", "release", "stoker"))
STEPS = {"JPEG": (64, 24), "WAV": (1024, 60), "PNG16": (32, 30)}  # batch size, measured steps
COVERAGE_RUNS = 12


def answer(*words, prefix=()):
    done = subprocess.run([*prefix, STOKER, *map(str, words)], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"error: `{' '.join(map(str, words))}`: {done.stderr}")
    return json.loads(done.stdout)


def jobs(args):
    """name -> (folder, flags of `stoker load`). The seek index is off: it makes each epoch another job."""
    return {"JPEG": (prepare.jpeg_folder(args.data, args.work), ["--transform", "rrc:224,flip", "--seek-index", "off"]),
            "WAV": (prepare.wav_folder(args.data, args.work), ["--transform", "pad:8000"]),
            "PNG16": (prepare.ct_slices(args.work)[0], ["--transform", f"window:level=-700..100:width=300..2000:offset={prepare.HU_OFFSET},resize:224x224", "--image-color", "keep"])}


def pack_of(folder):
    def make(place):
        os.rmdir(place)
        subprocess.run([STOKER, "pack", folder, place, "--kind", "encoded", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return prepare.whole(folder.rstrip("/") + "-whatif.pack", make)


def load(name, folder, flags, *more, cores=None):
    batch, steps = STEPS[name]
    words = ["load", folder, *flags, "--shuffle", "--bench-steps", steps, "--json", "--quiet"]
    if "--warmup-steps" not in more:
        words += ["--warmup-steps", max(8, steps // 4)]
    if "--batch-size" not in more:
        words += ["--batch-size", batch]
    return answer(*words, *more, prefix=["taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))] if cores else [])


def both_ranks(name, folder, flags, *more):
    """Two processes at once; their rates together."""
    batch, steps = STEPS[name]
    running = [subprocess.Popen([STOKER, "load", folder, *flags, "--shuffle", "--batch-size", str(batch), "--warmup-steps", "8", "--bench-steps", str(steps), "--json", "--quiet",
                                 "--rank", str(rank), "--world-size", "2", *more], stdout=subprocess.PIPE, text=True) for rank in range(2)]
    return {"samples_per_s": sum(json.loads(process.communicate()[0])["samples_per_s"] for process in running)}


def predict(ledger, question, work):
    with tempfile.NamedTemporaryFile("w", suffix=".json", dir=work) as file:
        json.dump(ledger, file)
        file.flush()
        return answer("plan", "--ledger", file.name, "--what-if", question, "--json")["runs"][0]["what_ifs"][0]["predicted_images_per_s"]


def questions(name, folder, flags, first):
    """(what is asked, flags of the ledger, how it is measured). The steps are set from the first ledger."""
    batch, rate = STEPS[name][0], first["samples_per_s"]
    one, two = ["--num-workers", "1"], ["--num-workers", "2"]
    slow, near = round(1e3 * batch / rate / 0.6, 3), round(1e3 * batch / rate / 1.25, 3)
    return [("num_workers=2", one, lambda: load(name, folder, flags, *two)),
            (f"step_ms={slow}", one, lambda: load(name, folder, flags, *one, "--step-ms", slow)),
            (f"step_ms={near}", one, lambda: load(name, folder, flags, *one, "--step-ms", near)),
            ("storage=ram", one, lambda: load(name, folder, flags, *one, "--storage", "ram", "--warmup-steps", 2 + first["ledger"]["dataset_samples"] // batch)),
            ("storage=mmap", one, lambda: load(name, folder, flags, *one, "--storage", "mmap")),
            ("pack=encoded", one, lambda: load(name, pack_of(folder), flags, *one)),
            (f"batch_size={4 * batch}", one, lambda: load(name, folder, flags, *one, "--batch-size", 4 * batch)),
            ("ranks=2", one, lambda: both_ranks(name, folder, flags, *one)),
            ("cores=1", two, lambda: load(name, folder, flags, *two, cores=1))]


def compare(args):
    rows, errors = [], []
    for name, (folder, flags) in jobs(args).items():
        prepare.warm(folder)
        prepare.warm(pack_of(folder))
        first = load(name, folder, flags, "--num-workers", "1")
        asked = questions(name, folder, flags, first)
        predicted, seen = [[] for _ in asked], [[] for _ in asked]
        for _ in range(args.rounds):
            for i, (question, base, measure) in enumerate(asked):  # its ledger just before it: the machine is not the same for long
                predicted[i].append(predict(load(name, folder, flags, *base), question, args.work))
                seen[i].append(measure()["samples_per_s"])
        for (question, _, _), guess, found in zip(asked, predicted, seen):
            middle, low, high, observed = statistics.median(guess), min(found), max(found), statistics.median(found)
            error = max(0, low - middle, middle - high) / observed
            errors.append(error)
            rows.append([name, question, f"{middle:,.0f}", f"{observed:,.0f}", f"{low:,.0f} to {high:,.0f}", f"{100 * abs(middle - observed) / observed:.0f} %", f"{100 * error:.0f} %"])
    within = sum(error < 0.3 for error in errors) / len(errors)
    yield plain_table("whatif, predicted and measured", f"Samples per second, full speed unless a step is named, page cache warm, medians of {args.rounds} rounds; each round measures the ledger first, "
                      "predicts from it, then runs the change. The error counts beyond the observed interval.",
                      ["data", "what if", "predicted", "measured", "observed interval", "from the median", "error"], rows)
    yield plain_table("whatif, all of them", "", ["what-ifs", "median error", "below 30 %", "largest"],
                      [[str(len(errors)), f"{100 * statistics.median(errors):.1f} %", f"{100 * within:.0f} %", f"{100 * max(errors):.0f} %"]])


def coverage(args):
    """Each run of ten blocks makes an interval; the rates of all other runs are held against it."""
    rows, held, pairs = [], 0, 0
    for name, (folder, flags) in jobs(args).items():
        batch, intervals, rates = STEPS[name][0], [], []
        for _ in range(COVERAGE_RUNS):
            place = os.path.join(args.work, "whatif-run")
            shutil.rmtree(place, ignore_errors=True)
            passed = [word for word in flags if word not in ("--seek-index", "off")]
            seek = ["--grid", "seek_index=off"] if "--seek-index" in flags else []
            answer("tune", folder, *passed, "--shuffle", "--grid", "num_workers=2", "--grid", f"batch_size={batch}", *seek, "--search", "grid", "--bench-steps", "20", "--out", place, "--json")
            run = answer("plan", "--run", place, "--images", "1e9", "--json")["runs"][0]
            rate = run["configurations"][run["chosen"]]["images_per_s"]
            intervals.append((rate["p10"], rate["p90"]))
            rates.append(rate["p50"])
        shutil.rmtree(place, ignore_errors=True)
        inside = sum(low <= rate <= high for i, (low, high) in enumerate(intervals) for j, rate in enumerate(rates) if i != j)
        count = COVERAGE_RUNS * (COVERAGE_RUNS - 1)
        held, pairs = held + inside, pairs + count
        spread = statistics.stdev(rates) / statistics.mean(rates)
        rows.append([name, str(COVERAGE_RUNS), f"{statistics.median(rates):,.0f}", f"{100 * spread:.1f} %",
                     f"{100 * statistics.median((high / low - 1) for low, high in intervals):.0f} %", f"{100 * inside / count:.0f} %"])
    rows.append(["together", "", "", "", "", f"{100 * held / pairs:.0f} %"])
    yield plain_table("whatif, P10 to P90 of one short run", "Each run of about ten blocks makes an interval as `stoker plan` does; the rates of all other runs are held against it. 80 % is what it claims.",
                      ["data", "runs", "samples/s", "runs differ by (sd)", "width of P10-P90", "holds for"], rows)


def run(args):
    if not args.table or args.table in "predicted and measured":
        yield from compare(args)
    if not args.table or args.table in "P10 to P90":
        yield from coverage(args)
