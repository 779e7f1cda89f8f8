"""Augmentations: ColorJitter, RandAugment with RandomErasing, DINO's ten views, CIFAR's padded crops, against DataLoader and torchvision;
log-mel spectrograms and FLAC files, against DataLoader with torchaudio and soundfile, and DALI."""

import os

import numpy
import prepare
from contest import contest, ours, peer

FLOAT32 = {"dtype": "float32", "min": (-2.3, -1.0), "max": (1.0, 2.8), "mean": (-1.2, 1.2)}
CIFAR = 50_000
CLIPS = 2_000
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


def race(args, recipe, data, batch_size, mine, theirs, expect, note):
    def job(timed):
        return {"data": data, "recipe": recipe, "warmup": timed // 4, "items": timed, "check": True, "batch_size": batch_size, "shuffle": True, "num_workers": 2}

    return contest(f"augment, {recipe}, warm", [
        ours("Stoker", "stoker_augment", {**job(mine), "storage": "buffered"}),
        peer("DataLoader + torchvision + Pillow, 2 workers", "torch_augment", job(theirs))], args, expect=expect, note=note)


def wanted(args, *titles):
    """Whether a table is asked for: data is made for nothing else."""
    return not args.table or any(args.table in title for title in titles)


def run(args):
    if wanted(args, *(f"augment, {recipe}, warm" for recipe, *_ in PHOTOS)):
        yield from photos(args)
    if wanted(args, "augment, cifar, warm"):
        yield race(args, "cifar", cifar_file(args.work), 256, 8 * CIFAR, CIFAR, {"shape": [256, 3, 32, 32], "dtype": "uint8", "contiguous": True},
                   f"{CIFAR:,} arrays of 32 x 32 x 3 uint8 in one .npy, RandomCrop(32, 4) and flip, batches of 256; the peer holds the arrays in memory.")
    yield from audio(args)


def photos(args):
    data = prepare.jpeg_folder(args.data, args.work)
    prepare.warm(data)
    for recipe, batch_size, mine, theirs in PHOTOS:
        yield race(args, recipe, data, batch_size, mine, theirs, {"shape": [batch_size, 3, 224, 224], "contiguous": True, **FLOAT32},
                   f"{len(prepare.files_of(data)):,} JPEG files, batches of {batch_size}, float32 NCHW, the recipes of bench/peers/augment_recipes.py; "
                   f"{mine:,} samples of Stoker and {theirs:,} of the peer, after a quarter of that as warm-up.")


def audio(args):
    def job(data, batch_size, timed, **more):
        return {"data": data, "warmup": timed // 4, "items": timed, "check": True, "batch_size": batch_size, "shuffle": True, "num_workers": 2, **more}

    data = prepare.clips(args.work, "wav", CLIPS, 1)
    prepare.warm(data)
    yield contest("augment, log-mel, warm", [
        ours("Stoker", "stoker_augment", job(data, 64, 32 * CLIPS, recipe="log-mel", storage="buffered")),
        peer("DataLoader + soundfile + torchaudio, 2 workers", "torch_mel", job(data, 64, 2 * CLIPS)),
        peer("DALI on the CPU", "dali_mel", {**job(data, 64, 4 * CLIPS), "num_threads": len(os.sched_getaffinity(0))})], args,
        expect={"shape": [64, 80, 101], "dtype": "float32", "contiguous": True, "min": (-101, -30), "max": (0, 60)},
        note=f"{CLIPS:,} WAV files of 1 s at 16 kHz, 80 mel bands every 10 ms, in decibels; batches of 64.")
    data = prepare.clips(args.work, "flac", CLIPS // 10, 10)
    prepare.warm(data)
    frames = 160_000
    yield contest("augment, FLAC of 10 s, warm", [
        ours("Stoker", "stoker_augment", job(data, 16, 16 * CLIPS // 10, recipe="flac", storage="buffered")),
        peer("DataLoader + soundfile, 2 workers", "torch_soundfile", job(data, 16, 4 * CLIPS // 10, frames=frames))], args,
        expect={"shape": [16, frames], "dtype": "float32", "contiguous": True, "min": (-1, -0.1), "max": (0.1, 1), "mean": (-0.1, 0.1)},
        note=f"{CLIPS // 10:,} FLAC files of 10 s at 16 kHz, 16 bits; batches [16, {frames}] float32.")
