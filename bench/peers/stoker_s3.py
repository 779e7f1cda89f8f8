"""Stoker reading from a store, or the same data from a local folder: encoded bytes, or what args["transform"] makes of them."""

import os
import tempfile

import contestant
from stoker_transforms import transforms

import stoker

listings = tempfile.TemporaryDirectory()


def keep_listing(args):
    """The others are given the keys: with args["kept"] Stoker has listed the bucket before it is timed."""
    if args.get("kept"):
        stoker.Loader(args["data"], output="numpy", cache_dir=listings.name, listing="kept", decode="none").close()


def options_of(args):
    """A cache folder of its own, so that no run finds listings or members of another; the disk cache, where the row asks for it. A folder with
    a disk cache stays: see servers.fresh_disk."""
    if args.get("kept"):
        return dict(args["loader"], cache_dir=listings.name, listing="kept")
    if args.get("disk_cache"):
        return dict(args["loader"], cache_dir=tempfile.mkdtemp(dir=args["work"]), cache_limit=args["disk_cache"])
    return dict(args["loader"], cache_dir=os.path.join(listings.name, "cache"))


def epochs(args):
    with stoker.Loader(args["data"], transform=transforms(args.get("transform", [])), output="numpy", **options_of(args)) as loader:
        def epoch():
            for batch in loader:
                yield len(batch.labels), int(batch.lengths.sum()) if args["loader"].get("decode") == "none" else 0

        while True:
            yield epoch()


contestant.race_epochs(epochs, [], keep_listing)
