"""Stoker with one of the recipes of the suite `augment`."""

import contestant
from augment_recipes import STOKER

import stoker


def batches(args):
    with stoker.Loader(args["data"], transform=STOKER[args["recipe"]], output="numpy", shuffle=True, seed=42, batch_size=args["batch_size"],
                       storage=args["storage"]) as loader:
        while True:
            for data, _ in loader:
                yield data["first"] if isinstance(data, dict) else data


contestant.race(batches, [])
