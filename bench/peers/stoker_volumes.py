"""Stoker's patches of volumes through Python, as a user writes it."""

import contestant

import stoker


def batches(args):
    volumes = stoker.Volumes([args["data"]], patch=args["patch"], samples=2000, normalize="zscore")
    with stoker.Loader(volumes, output="numpy", **args["loader"]) as loader:
        while True:
            for batch in loader:
                yield batch.image


contestant.race(batches, [])  # run.py knows the version
