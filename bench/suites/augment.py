"""Augmentations: ColorJitter, RandAugment with RandomErasing, DINO's ten views, CIFAR's padded crops, against DataLoader and torchvision."""

import os

import numpy
import prepare
from contest import contest, ours, peer

FLOAT32 = {"dtype": "float32", "min": (-2.3, -1.0), "max": (1.0, 2.8), "mean": (-1.2, 1.2)}
CIFAR = 50_000
# recipe, samples in a batch, what is timed of Stoker and of the peer, after what warm-up of either
PHOTOS = [("jitter", 64, 2048, 512), ("randaugment", 64, 2048, 512), ("dino", 16, 384, 96)]


def cifar_file(work):
    """Arrays as large and as many as CIFAR-10's."""
    path = os.path.join(work, "cifar-like.npy")
    if not os.path.exists(path):
        images = numpy.random.default_rng(1).integers(0, 256, (CIFAR, 32, 32, 3), dtype=numpy.uint8)
        numpy.save(path + ".partial.npy", images)
        os.replace(path + ".partial.npy", path)
    return path


def race(args, recipe, data, batch_size, mine, theirs, expect, note, storage="buffered"):
    def job(timed):
        return {"data": data, "recipe": recipe, "warmup": timed // 4, "items": timed, "check": True, "batch_size": batch_size, "shuffle": True, "num_workers": 2}

    return contest(f"augment, {recipe}, warm", [
        ours("Stoker", "stoker_augment", {**job(mine), "storage": storage}),
        peer("DataLoader + torchvision + Pillow, 2 workers", "torch_augment", job(theirs))], args, expect=expect, note=note)


def run(args):
    data = prepare.jpeg_folder(args.data, args.work)
    prepare.warm(data)
    for recipe, batch_size, mine, theirs in PHOTOS:
        yield race(args, recipe, data, batch_size, mine, theirs, {"shape": [batch_size, 3, 224, 224], "contiguous": True, **FLOAT32},
                   f"{len(prepare.files_of(data)):,} JPEG files, batches of {batch_size}, float32 NCHW, the recipes of bench/peers/augment_recipes.py; "
                   f"{mine:,} samples of Stoker and {theirs:,} of the peer, after a quarter of that as warm-up.")
    yield race(args, "cifar", cifar_file(args.work), 256, 8 * CIFAR, CIFAR, {"shape": [256, 3, 32, 32], "dtype": "uint8", "contiguous": True},
               f"{CIFAR:,} arrays of 32 x 32 x 3 uint8 in one .npy, RandomCrop(32, 4) and flip, batches of 256; both hold the arrays in memory.", storage="ram")
