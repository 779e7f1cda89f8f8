"""Photos to RandomResizedCrop 224, flip, batches of 64, uint8 and float32, first and later epochs, against nine other ways to load them."""

import os
import statistics

import prepare
from contest import contest, ours, peer, plain_table, run_once

BATCH, SIZE, WARMUP = 64, 224, 1024
UINT8 = {"dtype": "uint8", "min": (0, 32), "max": (223, 255), "mean": (64, 192)}
FLOAT32 = {"dtype": "float32", "min": (-2.2, -1.2), "max": (1.2, 2.7), "mean": (-1, 1)}


def stoker(name, data, count, dtype, first, **loader):
    """A new process with an empty cache folder. First epoch: what comes after WARMUP of it, no file of which was met before. Later epochs: the one after it."""
    transform = [["random_resized_crop", SIZE], ["flip"]] + ([["normalize", "imagenet"]] if dtype == "float32" else [])
    return ours(name, "stoker_loader",
                {"data": data, "warmup": WARMUP if first else count, "items": count - WARMUP if first else count, "check": True, "empty_cache": True,
                 "transform": transform, "loader": {"batch_size": BATCH, "shuffle": True, "seed": 42, "dtype": dtype, **loader}},
                antialias="no" if loader.get("decode") == "fast" else "yes")


def contestants(data, work, count, dtype):
    job = {"data": data, "warmup": WARMUP, "items": count, "check": True, "dtype": dtype, "size": SIZE, "batch_size": BATCH, "shuffle": True}
    two, cores = {**job, "num_workers": 2}, len(os.sched_getaffinity(0))
    tensorflow = {**job, "parallel": cores + 1, "layout": "NCHW"}
    dali = {**job, "num_threads": cores}

    def ffcv(name, **more):
        return {**job, "num_workers": cores, "layout": "NCHW", "file": prepare.ffcv_file(work, f"{name}-{count}"), **more}

    rows = [stoker(f"Stoker{mode}, {epochs}", data, count, dtype, epochs == "first epoch", **options)
            for mode, options in (("", {}), (" fast", {"decode": "fast"})) for epochs in ("first epoch", "later epochs")]
    rows += [
        peer("DataLoader + torchvision + Pillow, 2 workers", "torch_torchvision", two, antialias="yes"),
        peer("DataLoader + pillow-simd, 2 workers", "torch_pillow_simd", two, antialias="yes"),
        peer("DataLoader + OpenCV, 2 workers", "torch_opencv", two, antialias="no"),
        peer("tf.data", "tensorflow_jpeg", tensorflow, antialias="no"),
        peer("DALI on the CPU", "dali_jpeg", {**dali, "antialias": True}, antialias="yes"),
        peer("DALI on the CPU, antialias off", "dali_jpeg", {**dali, "antialias": False}, antialias="no"),
        peer("FFCV, photos encoded again at quality 90", "ffcv_images", ffcv("jpeg-q90", mode="jpg", max_resolution=None), antialias="area"),
        peer("FFCV raw, at most 256 pixels: nothing to decode", "ffcv_images", ffcv("jpeg-raw-256", mode="raw", max_resolution=256), antialias="area", kind="reference"),
        peer("SPDL", "spdl_jpeg", {**job, "num_threads": cores + 1}, antialias="yes"),
        peer("Grain + OpenCV, 2 threads", "grain_opencv", {**job, "num_threads": 2}, antialias="no"),
        peer("WebDataset + OpenCV, 2 workers", "webdataset_opencv", {**two, "shards": prepare.jpeg_shards(data)}, antialias="no")]
    if dtype == "uint8":
        rows.append(peer("tf.data, NHWC", "tensorflow_jpeg", {**tensorflow, "layout": "NHWC"}, antialias="no", expect={"shape": [BATCH, SIZE, SIZE, 3]}))
    return rows


def recording(args, data, count):
    """What noting the seek index adds to a first epoch; pairs of runs, because the difference is smaller than the machine's moods."""
    pairs = []
    for i in range(5 * args.rounds):
        pairs.append({use: run_once(stoker(use, data, count, "uint8", True, seek_index=use), args.work) for use in (("off", "auto"), ("auto", "off"))[i % 2]})
        if any("error" in result for result in pairs[-1].values()):
            return plain_table("jpeg-rrc, recording the seek index", "", ["failed"], [[result["error"]] for result in pairs[-1].values() if "error" in result])
    rows = []
    for what, key in (("time", "seconds"), ("CPU", "cpu_seconds")):
        off, auto = ([pair[use][key] / pair[use]["items"] for pair in pairs] for use in ("off", "auto"))
        ratios = sorted(b / a - 1 for a, b in zip(off, auto))
        rows.append([what, f"{statistics.median(off) * 1e6:,.1f} us", f"{statistics.median(auto) * 1e6:,.1f} us", f"{statistics.median(ratios):+.1%}",
                     f"{ratios[0]:+.1%} to {ratios[-1]:+.1%} ({len(pairs)} pairs)", f"{min(auto) / min(off) - 1:+.1%}"])
    return plain_table("jpeg-rrc, recording the seek index in the first epoch, uint8, warm", f"{count:,} JPEG files, one epoch in a new process with an empty cache folder after its warm-up, in turn.",
                       ["per image", "seek_index=off", "seek_index=auto", "median of the pairs", "spread", "best against best"], rows)


def run(args):
    data = prepare.jpeg_folder(args.data, args.work)
    prepare.warm(data)
    count = len(prepare.files_of(data))
    for dtype, values in (("uint8", UINT8), ("float32", FLOAT32)):
        yield contest(f"jpeg-rrc, {dtype}, warm", contestants(data, args.work, count, dtype), args,
                      expect={"shape": [BATCH, 3, SIZE, SIZE], "contiguous": True, **values},
                      note=f"{count:,} JPEG files, batches [{BATCH}, 3, {SIZE}, {SIZE}] {dtype}, contiguous NCHW" +
                      (", normalized" if dtype == "float32" else "") + f". Peers: {count:,} images of one shuffled stream after {WARMUP:,} of warm-up. Stoker's first epoch: a new process without seek index, "
                      f"the {count - WARMUP:,} images after {WARMUP:,} of warm-up, each met for the first time; its later epochs: the one after it.")
    yield recording(args, data, count)
