"""Stoker through Python, as a user writes it."""

import contestant
import stoker
from stoker_transforms import transforms


def work(args, stopwatch):
    loader = stoker.Loader(args["data"], transform=transforms(args.get("transform", [])), output="numpy", **args["loader"])
    items, first_batch_s, checksum = 0, None, 0.0
    for epoch in range(args.get("epochs", 1)):
        for data, _ in loader:
            if first_batch_s is None:
                first_batch_s = stopwatch.elapsed()
            items += len(data)
            if args.get("stop_after_batches") == 1:
                break
    shape = list(data.shape)
    stopwatch.stop()
    if args.get("check"):  # outside the time: the same work was done, not only as much
        for data, _ in loader:
            checksum = float(abs(data.astype("float64")).sum())
            break
    loader.close()
    return {"items": items, "first_batch_s": first_batch_s, "shape": shape, "checksum": checksum, "versions": {"stoker": stoker.__version__}}


contestant.main(work)
