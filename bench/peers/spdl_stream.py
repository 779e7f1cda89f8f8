"""An SPDL pipeline of threads as an endless stream of batches."""

import itertools
import random

from spdl.pipeline import PipelineBuilder


def endless(paths, shuffle):
    while True:
        yield from random.sample(paths, len(paths)) if shuffle else paths


def groups(paths, args):
    order = endless(paths, args["shuffle"])
    while True:
        yield list(itertools.islice(order, args["batch_size"]))


def run(builder, threads):
    pipeline = builder.add_sink(2).build(num_threads=threads)
    with pipeline.auto_stop():
        yield from pipeline.get_iterator(timeout=60)


def stream(paths, args, sample, batch):
    """`sample(path)` is a task, `batch(samples)` another."""
    builder = PipelineBuilder().add_source(endless(paths, args["shuffle"])).pipe(sample, concurrency=args["num_threads"])
    yield from run(builder.aggregate(args["batch_size"]).pipe(batch), args["num_threads"] + 1)


def stream_of_groups(paths, args, batch):
    """`batch(paths)` is one task: better where a sample is too little work for one."""
    yield from run(PipelineBuilder().add_source(groups(paths, args)).pipe(batch, concurrency=args["num_threads"], output_order="input"), args["num_threads"])
