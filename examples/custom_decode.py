"""A format that Stoker lacks, decoded in Python: python custom_decode.py FOLDER (of .raw files, 8 x 8 uint16)"""

import pathlib
import sys

import numpy

import stoker


def decode(view):
    """Gets the bytes of one file, returns one array; all have the same shape."""
    return numpy.frombuffer(view, numpy.uint16).reshape(8, 8).astype(numpy.float32)


samples = [(path, path.stem) for path in sorted(pathlib.Path(sys.argv[1]).glob("*.raw"))]
with stoker.Loader(samples=samples, batch_size=4, shuffle=True, decode=decode, output="numpy") as loader:
    for data, labels in loader:
        print(data.shape, [loader.classes[label] for label in labels])
    print(f"{loader.stats()['python_s']:.4f} s in Python callables")
