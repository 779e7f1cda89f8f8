"""Raw 256 x 256 images in one .npy to RandomResizedCrop 224, uint8 and float32, against FFCV's raw mode."""

import os

import prepare
from contest import contest, ours, peer

from suites.jpeg_rrc import FLOAT32, UINT8

BATCH, SIZE, EPOCHS = 64, 224, 4
SHAPE = {"shape": [BATCH, 3, SIZE, SIZE], "contiguous": True}


def run(args):
    data = prepare.images_file(args.data, args.work)
    prepare.warm(data)
    count, cores = prepare.IMAGES, len(os.sched_getaffinity(0))
    for dtype, values in (("uint8", UINT8), ("float32", FLOAT32)):
        transform = [["random_resized_crop", SIZE], ["flip"]] + ([["normalize", "imagenet"]] if dtype == "float32" else [])
        job = {"data": data, "warmup": count, "items": EPOCHS * count, "check": True}
        ffcv = {**job, "file": prepare.ffcv_file(args.work, "images-raw"), "mode": "raw", "max_resolution": None, "size": SIZE, "dtype": dtype,
                "batch_size": BATCH, "num_workers": cores}
        yield contest(f"raw-crop, {dtype}, warm", [
            ours("Stoker", "stoker_loader", {**job, "transform": transform, "loader": {"batch_size": BATCH, "shuffle": True, "seed": 42, "dtype": dtype}}, antialias="yes"),
            peer("FFCV raw", "ffcv_images", {**ffcv, "layout": "NCHW"}, antialias="area"),
            peer("FFCV raw, channels_last", "ffcv_images", {**ffcv, "layout": "channels_last"}, antialias="area", expect={"contiguous": False})],
            args, expect={**SHAPE, **values},
            note=f"{count:,} images of 256 x 256 x 3 uint8, batches [{BATCH}, 3, {SIZE}, {SIZE}] {dtype}" + (", normalized" if dtype == "float32" else "") +
                 f", contiguous NCHW where not named otherwise; {EPOCHS} epochs, timed after one of warm-up.")
