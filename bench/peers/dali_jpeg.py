"""NVIDIA DALI on the CPU: only the crop is decoded; normalize, flip and layout in one operator."""

import contestant
import dali_stream
from images import MEAN, STD
from nvidia.dali import fn, types


def batches(args):
    figures = {"mean": list(map(float, 255 * MEAN)), "std": list(map(float, 255 * STD)), "dtype": types.FLOAT} if args["dtype"] == "float32" else {"dtype": types.UINT8}

    def graph():
        encoded, _ = fn.readers.file(file_root=args["data"], random_shuffle=True, initial_fill=2000)
        images = fn.decoders.image_random_crop(encoded, device="cpu", output_type=types.RGB, random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3], num_attempts=10)
        images = fn.resize(images, size=[args["size"]] * 2, interp_type=types.INTERP_LINEAR, antialias=args["antialias"])
        return fn.crop_mirror_normalize(images, output_layout="CHW", mirror=fn.random.coin_flip(), **figures)

    yield from dali_stream.stream(graph, args)


contestant.race(batches, ["nvidia-dali-cuda130"])
