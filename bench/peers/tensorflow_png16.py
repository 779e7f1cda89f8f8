"""16-bit PNG slices by tf.data; bilinear resize without antialiasing."""

import contestant
import tensorflow as tf
import tensorflow_stream
from slices import HU_OFFSET, LEVEL, WIDTH


def batches(args):
    size = args["size"]

    def sample(path):
        pixels = tf.cast(tf.io.decode_png(tf.io.read_file(path), channels=1, dtype=tf.uint16), tf.float32)
        width = tf.random.uniform((), *WIDTH)
        low = tf.random.uniform((), *LEVEL) - width / 2 + HU_OFFSET
        return tf.reshape(tf.image.resize(tf.clip_by_value((pixels - low) / width, 0, 1), (size, size)), (1, size, size))

    yield from tensorflow_stream.stream([path for path, _ in contestant.labelled_files(args["data"])], args, sample)


contestant.race(batches, ["tensorflow-cpu"])
