"""tf.data with decode_wav."""

import contestant
import tensorflow as tf
import tensorflow_stream


def batches(args):
    def sample(path):
        return tf.audio.decode_wav(tf.io.read_file(path), desired_channels=1, desired_samples=args["frames"]).audio[:, 0]

    yield from tensorflow_stream.stream([path for path, _ in contestant.labelled_files(args["data"])], args, sample)


contestant.race(batches, ["tensorflow-cpu"])
