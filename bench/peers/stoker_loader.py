"""Stoker through Python, as a user writes it."""

import tempfile

import contestant
from stoker_transforms import transforms

import stoker


def batches(args):
    with tempfile.TemporaryDirectory() as empty:
        cache = {"cache_dir": empty} if args.get("empty_cache") else {}
        with stoker.Loader(args["data"], transform=transforms(args.get("transform", [])), output="numpy", **cache, **args["loader"]) as loader:
            while True:
                for data, _ in loader:
                    yield data


contestant.race(batches, [])  # run.py knows the version
