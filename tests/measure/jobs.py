"""Training jobs whose bottleneck is known, because it was put there. `python jobs.py NAME` runs one; test_truth.py knows the truth.

Sleeping stands for waiting for bytes, burning CPU time of the thread (not wall time: the machine may be busy) for decoding.
"""

import multiprocessing.context
import queue
import subprocess
import sys
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


def burn(ms):
    end = time.thread_time() + ms / 1000
    while time.thread_time() < end:
        pass


def work(sleep=0, cpu=0):
    if sleep:
        time.sleep(sleep / 1000)
    if cpu:
        burn(cpu)


class Samples(Dataset):
    def __init__(self, count=96, sleep=0, cpu=0):
        self.count, self.sleep, self.cpu = count, sleep, cpu

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        work(self.sleep, self.cpu)
        return torch.full((64,), float(index))


class Programs(Samples):
    """Each sample is made by another program, as ffmpeg would."""

    def __getitem__(self, index):
        subprocess.run(["sh", "-c", "i=0; while [ $i -lt 15000 ]; do i=$((i+1)); done"], check=True)
        return torch.full((64,), float(index))


class Stream(IterableDataset):
    def __init__(self, count=96, sleep=0, cpu=0):
        self.count, self.sleep, self.cpu = count, sleep, cpu

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        for index in range(self.count // (info.num_workers if info else 1)):
            work(self.sleep, self.cpu)
            yield torch.full((64,), float(index))


class InBatches(Samples):
    def __getitems__(self, indices):
        work(self.sleep * len(indices), self.cpu * len(indices))
        return [torch.full((64,), float(index)) for index in indices]


class OneSlow(Samples):
    """One sample in 24 takes 40 times as long as the others."""

    def __getitem__(self, index):
        work(self.sleep * (40 if index % 24 == 11 else 1))
        return torch.full((64,), float(index))


class SlowAtFirst(Samples):
    """Samples come from afar the first time, and from a cache later."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.seen = set()

    def __getitem__(self, index):
        if index not in self.seen:
            self.seen.add(index)
            time.sleep(self.sleep / 1000)
        burn(self.cpu)
        return torch.full((64,), float(index))


class Objects(Samples):
    """Large Python objects: pickled, sent and unpickled one by one."""

    def __getitem__(self, index):
        return [{"id": i, "name": str(i)} for i in TEMPLATE]


TEMPLATE = range(12000)


class Growing(Samples):
    """Leaks 40 KB with each sample. Growth is judged after two minutes."""

    kept = []

    def __getitem__(self, index):
        work(self.sleep)
        self.kept.append(bytearray(b"x" * 40_000))
        return torch.full((64,), float(index))


def as_list(samples):
    return samples


def burning_collate(samples):
    burn(40)
    return torch.stack(samples)


def waiting_collate(samples):
    time.sleep(0.04)
    return torch.stack(samples)


class ThreadContext(multiprocessing.context.BaseContext):
    """Workers as threads of the training process."""

    class Process(threading.Thread):
        pid = exitcode = 0

        def terminate(self):
            pass

    @staticmethod
    def Queue():
        made = queue.Queue()
        made.cancel_join_thread = made.close = lambda: None
        return made

    Event = staticmethod(threading.Event)


def train(loader, step=0, epochs=1):
    for _ in range(epochs):
        for _ in loader:
            work(sleep=step)


def train_and_validate(train_loader, val_loader, epochs=2):
    for _ in range(epochs):
        train(train_loader, step=5)
        with torch.no_grad():
            train(val_loader, step=30)


def train_on_both(first, second, step):
    for _ in zip(first, second):
        work(sleep=step)


def loader(dataset, workers=0, method=None, batch_size=4, **options):
    context = {"multiprocessing_context": method} if workers and method else {}
    return DataLoader(dataset, batch_size=batch_size, num_workers=workers, **context, **options)


JOBS = {
    # samples wait for their bytes
    "fetch-main": lambda: train(loader(Samples(64, sleep=10)), step=5),
    "fetch-fork": lambda: train(loader(Samples(160, sleep=20), 2, "fork"), step=5),
    "fetch-spawn": lambda: train(loader(Samples(160, sleep=20), 2, "spawn"), step=5),
    "fetch-forkserver": lambda: train(loader(Samples(160, sleep=20), 2, "forkserver"), step=5),
    "fetch-stream": lambda: train(loader(Stream(64, sleep=10)), step=5),
    "fetch-stream-fork": lambda: train(loader(Stream(160, sleep=20), 2, "fork"), step=5),
    "fetch-in-batches": lambda: train(loader(InBatches(64, sleep=10)), step=5),
    "fetch-unbatched": lambda: train(loader(Samples(24, sleep=20), batch_size=None), step=5),
    "fetch-threads": lambda: train(loader(Samples(160, sleep=20), 2, ThreadContext()), step=5),
    "fetch-any-order": lambda: train(loader(Samples(160, sleep=20), 2, "fork", in_order=False), step=5),
    "fetch-persistent": lambda: train(loader(Samples(80, sleep=20), 2, "fork", persistent_workers=True), step=5, epochs=2),
    "fetch-prefetch-1": lambda: train(loader(Samples(80, sleep=20), 1, "fork", prefetch_factor=1), step=5),
    "one-slow-sample": lambda: train(loader(OneSlow(240, sleep=5), 2, "fork"), step=25),
    # samples compute
    "prep-main": lambda: train(loader(Samples(64, cpu=10)), step=5),
    "prep-fork": lambda: train(loader(Samples(80, cpu=12), 1, "fork"), step=5),
    "prep-spawn": lambda: train(loader(Samples(80, cpu=12), 1, "spawn"), step=5),
    "prep-stream": lambda: train(loader(Stream(64, cpu=10)), step=5),
    "prep-programs": lambda: train(loader(Programs(60), 1, "fork"), step=5),
    "prep-programs-main": lambda: train(loader(Programs(60)), step=5),
    "prep-crowded": lambda: train(loader(Samples(160, cpu=12), 6, "fork", prefetch_factor=1), step=2),
    # known parts of each
    "mixed-main": lambda: train(loader(Samples(64, sleep=14, cpu=6)), step=30),
    "mixed-fork": lambda: train(loader(Samples(80, sleep=14, cpu=6), 1, "fork"), step=5),
    "mixed-spawn": lambda: train(loader(Samples(80, sleep=6, cpu=14), 1, "spawn"), step=5),
    "half-compute": lambda: train(loader(Samples(64, sleep=10)), step=40),
    # the step is the limit
    "compute-main": lambda: train(loader(Samples(64)), step=30),
    "compute-fork": lambda: train(loader(Samples(96, sleep=2), 2, "fork"), step=60),
    "compute-spawn": lambda: train(loader(Samples(96, cpu=1), 1, "spawn"), step=30),
    # samples were there, the batch was not
    "handoff-objects-fork": lambda: train(loader(Objects(60), 1, "fork", batch_size=2, collate_fn=as_list), step=1),
    "handoff-objects-spawn": lambda: train(loader(Objects(60), 1, "spawn", batch_size=2, collate_fn=as_list), step=1),
    "handoff-collate-fork": lambda: train(loader(Samples(96), 1, "fork", collate_fn=burning_collate), step=5),
    "handoff-collate-main": lambda: train(loader(Samples(64), collate_fn=waiting_collate), step=5),
    "handoff-start": lambda: train(loader(Samples(32), 2, "fork"), step=1, epochs=6),
    # more than one thing
    "slow-first-epoch": lambda: train(loader(SlowAtFirst(48, sleep=40, cpu=8), 1, "fork", persistent_workers=True), step=5, epochs=3),
    "train-and-val": lambda: train_and_validate(train_loader=(loader(Samples(48, sleep=10))), val_loader=loader(Samples(24))),
    "two-at-once": lambda: train_on_both(loader(Samples(64, sleep=10)), loader(Samples(64)), step=5),
    "growing-memory": lambda: train(loader(Growing(9000, sleep=15), 1, "fork"), step=1),
    # a burst that hides a slow loader
    "burst": lambda: burst(),
}


def burst():
    """20 steps that are served from 32 batches made before the first one: the loader reaches a fourth of the step's rate."""
    made = loader(Samples(400, sleep=40), 8, "fork", prefetch_factor=4, batch_size=8)
    batches = iter(made)
    time.sleep(8 * 0.04 * 4 + 1)
    for _ in range(20):
        next(batches)
        time.sleep(0.01)


if __name__ == "__main__":
    JOBS[sys.argv[1]]()
