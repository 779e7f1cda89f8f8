"""The PyTorch DataLoader with soundfile: how most people read WAV files today."""

import os

import contestant
import numpy
import soundfile
import torch
from torch.utils.data import DataLoader, Dataset


class WavFolder(Dataset):
    def __init__(self, folder, frames):
        classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        self.samples = [(os.path.join(folder, name, file), label)
                        for label, name in enumerate(classes) for file in sorted(os.listdir(os.path.join(folder, name)))]
        self.frames = frames

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        sound, _ = soundfile.read(path, dtype="float32", frames=self.frames)
        row = numpy.zeros(self.frames, numpy.float32)
        row[:len(sound)] = sound
        return torch.from_numpy(row), label


def work(args, stopwatch):
    workers = args["num_workers"]
    if workers:
        torch.set_num_threads(1)
    loader = DataLoader(WavFolder(args["data"], args["frames"]), batch_size=args["batch_size"], shuffle=False,
                        num_workers=workers, persistent_workers=workers > 0)
    items, first_batch_s = 0, None
    for epoch in range(args["epochs"]):
        for data, _ in loader:
            if first_batch_s is None:
                first_batch_s = stopwatch.elapsed()
            items += len(data)
            if args.get("stop_after_batches") == 1:
                break
    shape = list(data.shape)
    stopwatch.stop()
    checksum = 0.0
    if args.get("check"):
        for data, _ in loader:
            checksum = float(data.double().abs().sum())
            break
    del loader
    return {"items": items, "first_batch_s": first_batch_s, "shape": shape, "checksum": checksum,
            "versions": {"torch": torch.__version__, "soundfile": soundfile.__version__}}


if __name__ == "__main__":
    contestant.main(work)
