"""SPDL: FFmpeg decodes, crops, scales (bilinear) and flips in one filter graph per image."""

import contestant
import numpy
import spdl.io
import spdl_stream
from images import OFFSET, SCALE, flipped, rectangle


def batches(args):
    size = args["size"]

    def sample(path):
        packets = spdl.io.demux_image(path)
        top, left, height, width = rectangle(packets.height, packets.width)
        steps = [f"crop={width}:{height}:{left}:{top}:exact=1", f"scale={size}:{size}:flags=bilinear", "format=pix_fmts=rgb24"]
        return spdl.io.decode_packets(packets, filter_desc=",".join(steps + ["hflip"] * flipped()))

    def batch(frames):
        images = spdl.io.to_numpy(spdl.io.convert_frames(frames))
        out = numpy.empty((len(frames), 3, size, size), args["dtype"])
        for channel in range(3):
            if args["dtype"] == "uint8":
                out[:, channel] = images[..., channel]
            else:
                numpy.multiply(images[..., channel], SCALE[channel], out=out[:, channel], dtype=numpy.float32)
                out[:, channel] += OFFSET[channel]
        return out

    yield from spdl_stream.stream([path for path, _ in contestant.labelled_files(args["data"])], args, sample, batch)


contestant.race(batches, ["spdl"])
