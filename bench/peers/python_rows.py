"""Python code for each sample: callables in Stoker's python_workers, and a Dataset in them or in torch's DataLoader."""

import multiprocessing
import time

import contestant
import numpy
import python_callables


def rows_through(args):
    """Rows of an .npy through a callable; "none" leaves it out."""
    import stoker

    transform = {"none": [], "same": [python_callables.same], "busy": [python_callables.busy]}[args["callable"]]
    workers = {} if args["callable"] == "none" else {"python_workers": args["workers"]}
    with stoker.Loader(args["data"], batch_size=args["batch"], transform=transform, shuffle=True, output="numpy", **workers) as loader:
        while True:
            for data, _ in loader:
                yield data


def items_through_stoker(args):
    import stoker

    with stoker.Loader(dataset=python_callables.Items(args["count"]), batch_size=args["batch"], shuffle=True, output="torch", python_workers=args["workers"]) as loader:
        while True:
            for images, _ in loader:
                yield images


def items_through_torch(args):
    from torch.utils.data import DataLoader

    loader = DataLoader(python_callables.Items(args["count"]), batch_size=args["batch"], shuffle=True, num_workers=args["workers"], persistent_workers=True)
    while True:
        for images, _ in loader:
            yield images


def alone(args):
    """The callable in a loop, in as many processes at once: two threads of one core slow each other down, whoever calls."""
    time.sleep(0.5)
    with multiprocessing.get_context("fork").Pool(args["workers"]) as pool:
        while True:
            yield [row for rows in pool.map(busy_rows, [args["batch"]] * args["workers"]) for row in rows]


def busy_rows(count):
    row = numpy.zeros((224, 224, 3), numpy.uint8)
    for _ in range(count):
        python_callables.busy(row)
    return range(count)


def import_of_torch(args):
    """The least memory of a loop that gets tensors."""
    import torch

    yield torch.zeros(args["items"])


if __name__ == "__main__":
    HOW = {"rows": rows_through, "stoker": items_through_stoker, "torch": items_through_torch, "alone": alone, "import": import_of_torch}
    contestant.race(lambda args: HOW[args["how"]](args), [])
