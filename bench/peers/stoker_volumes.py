"""Stoker's patches of volumes through Python, as a user writes it."""

import glob
import os

import contestant

import stoker


def sources(path):
    """A volume, or the volumes of a folder with their masks."""
    images = sorted(glob.glob(os.path.join(path, "image-*.nii")))
    return [(image, image.replace("image", "mask")) for image in images] or [path]


def batches(args):
    volumes = stoker.Volumes(sources(args["data"]), patch=args["patch"], samples=2000, normalize="zscore", **args.get("volumes", {}))
    with stoker.Loader(volumes, output="numpy", **args["loader"]) as loader:
        while True:
            for batch in loader:
                yield batch.image


contestant.race(batches, [])  # run.py knows the version
