"""tf.data as an endless stream of batches."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf


def stream(paths, args, sample, after=None):
    """`sample(path)` in parallel, batches of it, then `after(batch)`."""
    data = tf.data.Dataset.from_tensor_slices(paths)
    if args["shuffle"]:
        data = data.shuffle(len(paths))
    data = data.repeat().map(sample, num_parallel_calls=args["parallel"] or tf.data.AUTOTUNE, deterministic=not args["shuffle"]).batch(args["batch_size"])
    if after:
        data = data.map(after, num_parallel_calls=1)
    yield from data.prefetch(2)
