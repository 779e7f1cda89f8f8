"""Growth of this process's own memory (RssAnon + RssShmem, not file pages) while Stoker runs under a limit."""

import threading
import time

import contestant
from stoker_transforms import transforms

import stoker


def own_bytes():
    total = 0
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(("RssAnon:", "RssShmem:")):
                total += int(line.split()[1]) * 1024
    return total


def work(args, stopwatch):
    before, peak, done = own_bytes(), 0, threading.Event()

    def watch():
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, own_bytes())
    watcher = threading.Thread(target=watch, daemon=True)  # does not keep a failing process alive
    watcher.start()
    loader = stoker.Loader(args["data"], transform=transforms(args.get("transform", [])), seed=42, output="numpy", **args["loader"])
    items = 0
    for data, _ in loader:
        items += len(data)
        time.sleep(args["step_s"])
    stopwatch.stop()
    done.set()
    watcher.join()
    loader.close()
    return {"items": items, "growth_bytes": max(peak, own_bytes()) - before, "versions": {"stoker": stoker.__version__}}


contestant.main(work)
