"""Random patches of a zarr array by the PyTorch DataLoader on tensorstore, with a cache of args["cache_bytes"]."""

import contestant
import tensorstore
import torch_patches


def batches(args):
    def open_volume(path):
        # One thread of decoding in each worker process; without workers as many as tensorstore likes.
        limits = {"data_copy_concurrency": {"limit": 1}} if args["num_workers"] else {}
        context = tensorstore.Context({"cache_pool": {"total_bytes_limit": args["cache_bytes"]}, **limits})
        volume = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}, context=context, read=True).result()
        return volume.shape, lambda box: volume[box].read().result()
    yield from torch_patches.stream(args, open_volume)


contestant.race(batches, ["torch", "numpy", "tensorstore"])
