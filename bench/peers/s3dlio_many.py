"""s3dlio (Rust): many requests in flight in one process."""

import random

import contestant
import s3dlio


def epochs(args):
    uris = [f"s3://{args['bucket']}/{key}" for key in args["keys"]]
    while True:
        random.shuffle(uris)
        lengths = [len(memoryview(body)) for _, body in s3dlio.get_many(uris, max_in_flight=args["depth"])]
        yield [(len(lengths), sum(lengths))]


contestant.race_epochs(epochs, ["s3dlio"])
