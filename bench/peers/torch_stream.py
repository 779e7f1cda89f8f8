"""The PyTorch DataLoader as an endless stream: one pass of the sampler over many permutations, so that no epoch's end stalls the workers."""

import torch
from torch.utils.data import DataLoader, RandomSampler

ENOUGH = 1 << 30  # samples; more than any race takes


class InOrder(torch.utils.data.Sampler):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        while True:
            yield from range(self.count)


def stream(dataset, args):
    """Batches of `dataset`'s samples, made by args["num_workers"] processes of one thread each."""
    torch.set_num_threads(1)
    sampler = RandomSampler(dataset, num_samples=ENOUGH) if args["shuffle"] else InOrder(len(dataset))
    yield from DataLoader(dataset, batch_size=args["batch_size"], sampler=sampler, num_workers=args["num_workers"])
