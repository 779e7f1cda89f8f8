"""What the DataLoaders on S3 have in common: workers that hand back lengths only, which is the best case for processes."""

import torch


def epochs(dataset, args):
    """`dataset[i]` is the length of object i."""
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(dataset, batch_size=args["batch_size"], shuffle=True, num_workers=args["num_workers"], prefetch_factor=args["prefetch_factor"],
                                         persistent_workers=True)
    while True:
        yield ((len(lengths), int(lengths.sum())) for lengths in loader)
