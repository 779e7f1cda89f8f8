"""An SPDL pipeline as an endless stream: paths in groups of one batch, each group one task of a thread."""

import random

from spdl.pipeline import PipelineBuilder


def groups(paths, args):
    while True:
        order = random.sample(paths, len(paths)) if args["shuffle"] else paths
        for first in range(0, len(order), args["batch_size"]):
            yield order[first:first + args["batch_size"]]


def run(builder, threads):
    pipeline = builder.add_sink(2).build(num_threads=threads)
    with pipeline.auto_stop():
        yield from pipeline.get_iterator(timeout=60)


def stream(paths, args, batch):
    """`batch(paths)` is one task: best where a sample is too little work for one."""
    yield from run(PipelineBuilder().add_source(groups(paths, args)).pipe(batch, concurrency=args["num_threads"], output_order="input"), args["num_threads"])
