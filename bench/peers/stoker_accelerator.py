"""Stoker feeding an emulated accelerator: each step sleeps args["step_s"]; how much of the time it computed, per epoch and in the worst window."""

import tempfile
import time

import contestant
from stoker_transforms import transforms

import stoker

WINDOW = 10  # steps


def work(args, stopwatch):
    epochs, items = [], 0
    # The folder stays: see servers.fresh_disk.
    cache = {"cache_dir": tempfile.mkdtemp(dir=args["work"]), "cache_limit": args["disk_cache"]} if args.get("disk_cache") else {}
    with stoker.Loader(args["data"], transform=transforms(args["transform"]), output="numpy", **cache, **args["loader"]) as loader:
        for epoch in range(args["epochs"]):
            steps, stream, asked = [], iter(loader), time.perf_counter()
            for batch in stream:
                items += len(batch.labels)
                del batch
                time.sleep(args["step_s"])
                steps.append(time.perf_counter() - asked)
                asked = time.perf_counter()
            if epoch == 0:
                steps = steps[1:]  # the first step of the run is start-up, as in MLPerf Storage
            windows = [sum(steps[i:i + WINDOW]) for i in range(max(1, len(steps) - WINDOW + 1))]
            epochs.append({"au": args["step_s"] * len(steps) / sum(steps), "worst_au": args["step_s"] * min(WINDOW, len(steps)) / max(windows)})
    stopwatch.stop()
    return {"items": items, "epochs": epochs}


contestant.main(work)
