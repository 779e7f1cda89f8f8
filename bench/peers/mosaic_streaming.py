"""mosaicml-streaming: shards in a format of its own (MDS), fetched by boto3 in the workers of a DataLoader and kept on the local disk."""

import os
import tempfile

import contestant
import own_shards
import torch

# It imports torchvision, which wants its operators' names: see torch_torchvision.py.
library = torch.library.Library("torchvision", "DEF")
for operator in ("nms", "qnms"):
    library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from streaming import MDSWriter, StreamingDataset


class Lengths(StreamingDataset):
    def __getitem__(self, index):
        return len(super().__getitem__(index)["jpg"])


def write(args):
    def write_all(folder, samples, shard_bytes):
        with MDSWriter(out=folder, columns={"jpg": "bytes"}, size_limit=shard_bytes) as writer:
            for sample in samples:
                writer.write({"jpg": sample})

    own_shards.write(args, write_all)


def epochs(args):
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=args["work"]) as folder:
        data = Lengths(remote=f"s3://{args['bucket']}/{args['key']}", local=os.path.join(folder, "cache"), shuffle=True, batch_size=args["batch_size"])
        for stream in data.streams:
            stream._downloader.clean_up()  # else all workers share the connection that fetched the index, and mix up its answers
        loader = torch.utils.data.DataLoader(data, batch_size=args["batch_size"], num_workers=args["num_workers"], persistent_workers=True)
        while True:
            yield ((len(lengths), int(lengths.sum())) for lengths in loader)


contestant.race_epochs(epochs, ["mosaicml-streaming", "torch"], before=write)
