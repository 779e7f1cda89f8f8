"""WebDataset over HTTP: tar shards through a curl process each, in worker processes that hand back lengths only."""

import os

import contestant
import torch
import webdataset


def length(sample):
    return len(sample["jpg"])


def epochs(args):
    torch.set_num_threads(1)
    urls = [f"{os.environ['AWS_ENDPOINT_URL_S3']}/{args['bucket']}/{key}" for key in args["keys"]]
    data = webdataset.WebDataset(urls, shardshuffle=len(urls), nodesplitter=webdataset.split_by_node).map(length).batched(args["batch_size"], collation_fn=list)
    loader = webdataset.WebLoader(data, batch_size=None, num_workers=args["num_workers"], persistent_workers=True)
    while True:
        yield ((len(lengths), sum(lengths)) for lengths in loader)


contestant.race_epochs(epochs, ["webdataset", "torch"])
