"""A DALI pipeline on the CPU as an endless stream of NumPy batches, no GPU or driver needed."""

import numpy
from nvidia.dali import pipeline_def


def stream(graph, args):
    """`graph()` builds the operators and returns the data's node."""
    pipeline = pipeline_def(graph)(batch_size=args["batch_size"], num_threads=args["num_threads"], device_id=None, seed=42)
    pipeline.build()
    while True:
        yield numpy.asarray(pipeline.run()[0].as_tensor())
