"""NVIDIA DALI's audio decoder on the CPU."""

import contestant
import dali_stream
from nvidia.dali import fn, types


def batches(args):
    def graph():
        encoded, _ = fn.readers.file(file_root=args["data"])
        audio, _ = fn.decoders.audio(encoded, dtype=types.FLOAT, downmix=True)
        return fn.slice(audio, start=[0], shape=[args["frames"]], axes=[0], out_of_bounds_policy="pad")

    yield from dali_stream.stream(graph, args)


contestant.race(batches, ["nvidia-dali-cuda130"])
