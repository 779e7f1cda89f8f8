"""16-bit slices of 512 x 512 to a random window, resized to 224, float32, from PNG files and from one .npy, against four other loaders."""

import os

import prepare
from contest import contest, ours, peer

BATCH, SIZE = 32, 224
WINDOW = ["window", [-700, 100], [300, 2000], prepare.HU_OFFSET]
EXPECT = {"shape": [BATCH, 1, SIZE, SIZE], "dtype": "float32", "contiguous": True, "min": (0, 0), "max": (0.99, 1.0001), "mean": (0.1, 0.6)}


def stoker(data, warmup, items, **loader):
    return [ours(", ".join(["Stoker", name, *loader.values()]), "stoker_loader",
                 {"data": data, "warmup": warmup, "items": items, "check": True, "transform": [WINDOW, ["resize", [SIZE, SIZE], filter]],
                  "loader": {"batch_size": BATCH, "shuffle": True, "seed": 42, "color": "keep", **loader}}, antialias=name)
            for name, filter in (("bilinear", "bilinear"), ("area", "box"))]


def run(args):
    png, npy = prepare.ct_slices(args.work)
    prepare.warm(png)
    cores, count = len(os.sched_getaffinity(0)), prepare.SLICES
    job = {"data": png, "warmup": count // 2, "items": 2 * count, "check": True, "size": SIZE, "batch_size": BATCH, "shuffle": True}
    yield contest("png16, warm", stoker(png, count // 2, 2 * count) + [
        peer("DataLoader + OpenCV, 2 workers", "torch_png16_opencv", {**job, "num_workers": 2}, antialias="area"),
        peer("DataLoader + Pillow, 2 workers", "torch_png16_pillow", {**job, "num_workers": 2}, antialias="bilinear"),
        peer("tf.data", "tensorflow_png16", {**job, "parallel": 0}, antialias="no"),
        peer("DALI on the CPU", "dali_png16", {**job, "num_threads": cores, "antialias": False}, antialias="no")], args, expect=EXPECT,
        note=f"{count:,} generated 16-bit gray PNG files of 512 x 512, batches [{BATCH}, 1, {SIZE}, {SIZE}] float32, two epochs of one shuffled stream, "
             f"timed after {count // 2:,} slices of warm-up.")

    prepare.warm(npy)
    job = {**job, "data": npy, "warmup": count, "items": 4 * count}
    yield contest("png16, the same slices raw in one .npy, warm", stoker(npy, 4 * count, 20 * count, storage="mmap") + stoker(npy, 4 * count, 20 * count, storage="buffered") + [
        peer(f"DataLoader + np.memmap + OpenCV, {workers} workers", "torch_memmap16", {**job, "num_workers": workers}, antialias="area")
        for workers in (0, 2)], args, expect=EXPECT,
        note=f"{count:,} slices of 512 x 512 uint16, batches [{BATCH}, 1, {SIZE}, {SIZE}] float32, shuffled, timed after warm-up; Stoker takes 20 epochs, being faster.")
