"""WebDataset: the photos in tar shards, read in order with a shuffle buffer, decoded by OpenCV in two worker processes."""

import contestant
import numpy
import torch
import webdataset
from opencv_images import crop


def batches(args):
    torch.set_num_threads(1)

    def sample(entry):
        return torch.from_numpy(crop(numpy.frombuffer(entry["jpg"], numpy.uint8), args["size"], args["dtype"]))

    data = webdataset.WebDataset(args["shards"], resampled=True, shardshuffle=False, nodesplitter=webdataset.split_by_node).shuffle(500).map(sample)
    yield from webdataset.WebLoader(data.batched(args["batch_size"], collation_fn=torch.stack), batch_size=None, num_workers=args["num_workers"])


contestant.race(batches, ["webdataset", "torch", "opencv-python-headless"])
