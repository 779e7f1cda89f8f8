"""A random window of 16-bit slices, for peers that have none: level -700 to 100, width 300 to 2000 Hounsfield units."""

import random

LEVEL, WIDTH, HU_OFFSET = (-700.0, 100.0), (300.0, 2000.0), 32768.0


def window():
    """(low, width): (stored - low) / width, clipped to [0, 1], is the windowed value."""
    width = random.uniform(*WIDTH)
    return random.uniform(*LEVEL) - width / 2 + HU_OFFSET, width


def windowed(pixels):
    """float32 in [0, 1]."""
    import numpy

    low, width = window()
    out = pixels.astype(numpy.float32)
    out -= low
    out *= 1 / width
    return numpy.clip(out, 0, 1, out=out)
