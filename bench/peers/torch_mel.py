"""The PyTorch DataLoader with soundfile and torchaudio's log-mel spectrograms."""

import glob
import importlib.util
import os

import contestant
import soundfile
import torch
import torch_stream

# torchaudio's wheel from PyPI is built for CUDA and does not load its operators beside a torch without it. The
# transforms need none of them, and without the file it does not try.
for library in glob.glob(os.path.join(importlib.util.find_spec("torchaudio").submodule_search_locations[0], "lib", "_torchaudio*.so")):
    os.remove(library)

import torchaudio

torch.set_num_threads(1)


class LogMels(torch.utils.data.Dataset):
    def __init__(self, args):
        self.files = contestant.labelled_files(args["data"])
        self.transform = torch.nn.Sequential(torchaudio.transforms.MelSpectrogram(16000, n_fft=400, hop_length=160, n_mels=80),
                                             torchaudio.transforms.AmplitudeToDB(top_db=80))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path, label = self.files[index]
        audio, _ = soundfile.read(path, dtype="float32")
        return self.transform(torch.from_numpy(audio)), label


def batches(args):
    for data, _ in torch_stream.stream(LogMels(args), args):
        yield data


contestant.race(batches, ["torch", "torchaudio", "soundfile"])
