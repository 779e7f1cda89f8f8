"""litdata: chunks in a format of its own, fetched in the workers of its loader and kept on the local disk."""

import os
import tempfile

import contestant
import litdata
import own_shards
import torch
from litdata.streaming import downloader

downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True  # it refuses a server without TLS


class Lengths(litdata.StreamingDataset):
    def __getitem__(self, index):
        return len(super().__getitem__(index))


def same(sample):
    return sample


def write(args):
    def write_all(folder, samples, shard_bytes):
        litdata.optimize(same, list(samples), output_dir=folder, chunk_bytes=shard_bytes, num_workers=1)

    own_shards.write(args, write_all)


def epochs(args):
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=args["work"]) as folder:
        data = Lengths(f"s3://{args['bucket']}/{args['key']}", cache_dir=os.path.join(folder, "cache"), shuffle=True)
        # Writing the chunks makes `spawn` the default, and then every worker imports torch within the time.
        loader = litdata.StreamingDataLoader(data, batch_size=args["batch_size"], num_workers=args["num_workers"], persistent_workers=True, multiprocessing_context="fork")
        while True:
            yield ((len(lengths), int(lengths.sum())) for lengths in loader)


if __name__ == "__main__":  # its writer starts processes that import this file
    contestant.race_epochs(epochs, ["litdata", "torch"], before=write)
    os._exit(0)  # it hangs when its loader is dropped
