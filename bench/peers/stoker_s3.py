"""Stoker reading from a store, or the same data from a local folder: encoded bytes, or what args["transform"] makes of them."""

import contextlib
import os
import tempfile

import contestant
from stoker_transforms import transforms

import stoker


def options_of(args, folder):
    """An empty cache folder, so that no run finds listings or members of another; the disk cache, where the row asks for it."""
    options = dict(args["loader"], cache_dir=os.path.join(folder, "cache"))
    if args.get("disk_cache"):
        options.update(cache_limit=args["disk_cache"])
    return options


def epochs(args):
    source = {"samples": [f"s3://{args['bucket']}/{key}" for key in args["keys"]]} if args.get("list") else {"source": args["data"]}
    with tempfile.TemporaryDirectory(dir=args["work"]) as folder, contextlib.ExitStack() as stack:
        loader = stack.enter_context(stoker.Loader(**source, transform=transforms(args.get("transform", [])), output="numpy", **options_of(args, folder)))

        def epoch():
            for batch in loader:
                yield len(batch.labels), int(batch.lengths.sum()) if args["loader"].get("decode") == "none" else 0

        while True:
            yield epoch()


contestant.race_epochs(epochs, [])
