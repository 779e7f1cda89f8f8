"""16-bit PNG slices by NVIDIA DALI on the CPU."""

import contestant
import dali_stream
from nvidia.dali import fn, math, types
from slices import HU_OFFSET, LEVEL, WIDTH


def batches(args):
    def graph():
        encoded, _ = fn.readers.file(file_root=args["data"], random_shuffle=True, initial_fill=1000)
        pixels = fn.experimental.decoders.image(encoded, device="cpu", output_type=types.ANY_DATA, dtype=types.UINT16)
        width = fn.random.uniform(range=list(WIDTH))
        low = fn.random.uniform(range=list(LEVEL)) - width / 2 + HU_OFFSET
        values = math.clamp((fn.cast(pixels, dtype=types.FLOAT) - low) / width, 0.0, 1.0)
        values = fn.resize(values, size=[args["size"]] * 2, interp_type=types.INTERP_LINEAR, antialias=args["antialias"])
        return fn.transpose(values, perm=[2, 0, 1])

    yield from dali_stream.stream(graph, args)


contestant.race(batches, ["nvidia-dali-cuda130"])
