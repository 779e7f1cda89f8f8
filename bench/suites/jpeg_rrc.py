"""Photos to RandomResizedCrop 224, flip, batches of 64, uint8 and float32, first and later epochs, against eight other loaders."""

import os

import prepare
from contest import contest, ours, peer

BATCH, SIZE, EPOCHS = 64, 224, 2
UINT8 = {"dtype": "uint8", "min": (0, 32), "max": (223, 255), "mean": (64, 192)}
FLOAT32 = {"dtype": "float32", "min": (-2.2, -1.2), "max": (1.2, 2.7), "mean": (-1, 1)}


def stoker(name, data, count, dtype, first, **loader):
    """First epoch: an empty cache folder and a new process, all of one epoch timed. Later epochs: the same, its first epoch not timed."""
    transform = [["random_resized_crop", SIZE], ["flip"]] + ([["normalize", "imagenet"]] if dtype == "float32" else [])
    return ours(name, "stoker_loader",
                {"data": data, "warmup": 0 if first else count, "items": count if first else EPOCHS * count, "check": True, "empty_cache": True,
                 "transform": transform, "loader": {"batch_size": BATCH, "shuffle": True, "seed": 42, "dtype": dtype, **loader}},
                antialias="no" if loader.get("decode") == "fast" else "yes")


def contestants(data, work, count, dtype):
    job = {"data": data, "warmup": count // 2, "items": EPOCHS * count, "check": True, "dtype": dtype, "size": SIZE, "batch_size": BATCH, "shuffle": True}
    two, cores = {**job, "num_workers": 2}, len(os.sched_getaffinity(0))
    tensorflow = {**job, "parallel": cores + 1, "layout": "NCHW"}
    dali = {**job, "num_threads": cores}
    rows = [stoker(f"Stoker{mode}, {epochs}", data, count, dtype, epochs == "first epoch", **options)
            for mode, options in (("", {}), (" fast", {"decode": "fast"})) for epochs in ("first epoch", "later epochs")]
    rows += [
        peer("DataLoader + torchvision + Pillow, 2 workers", "torch_torchvision", two, antialias="yes"),
        peer("DataLoader + pillow-simd, 2 workers", "torch_pillow_simd", two, antialias="yes"),
        peer("DataLoader + OpenCV, 2 workers", "torch_opencv", two, antialias="no"),
        peer("tf.data", "tensorflow_jpeg", tensorflow, antialias="no"),
        peer("DALI on the CPU", "dali_jpeg", {**dali, "antialias": True}, antialias="yes"),
        peer("DALI on the CPU, antialias off", "dali_jpeg", {**dali, "antialias": False}, antialias="no")]
    if dtype == "uint8":
        rows.append(peer("tf.data, NHWC", "tensorflow_jpeg", {**tensorflow, "layout": "NHWC"}, antialias="no", expect={"shape": [BATCH, SIZE, SIZE, 3]}))
    return rows


def run(args):
    data = prepare.jpeg_folder(args.data, args.work)
    prepare.warm(data)
    count = len(prepare.files_of(data))
    for dtype, values in (("uint8", UINT8), ("float32", FLOAT32)):
        yield contest(f"jpeg-rrc, {dtype}, warm", contestants(data, args.work, count, dtype), args,
                      expect={"shape": [BATCH, 3, SIZE, SIZE], "contiguous": True, **values},
                      note=f"{count:,} JPEG files, batches [{BATCH}, 3, {SIZE}, {SIZE}] {dtype}, contiguous NCHW" +
                      (", normalized" if dtype == "float32" else "") + f". Peers: {EPOCHS} epochs of one shuffled stream, timed after {count // 2:,} pictures of warm-up. "
                      "Stoker's first epoch: a new process without seek index, start-up inside the time; its later epochs: the two after it.")
