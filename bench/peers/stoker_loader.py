"""Stoker through Python, as a user writes it."""

import tempfile

import contestant
from stoker_transforms import transforms

import stoker

samples = None  # of args["list"]: the program has its list before the time starts


def make_list(args):
    global samples
    if args.get("list"):
        samples = contestant.labelled_files(args["data"])


def batches(args):
    source = {"samples": samples} if samples else {"source": args["data"]}
    with tempfile.TemporaryDirectory() as empty:
        cache = {"cache_dir": empty} if args.get("empty_cache") else {}
        with stoker.Loader(**source, transform=transforms(args.get("transform", [])), output="numpy", **cache, **args["loader"]) as loader:
            while True:
                for data, _ in loader:
                    yield data


contestant.race(batches, [], make_list)  # run.py knows the version
