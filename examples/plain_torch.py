"""A training loop as many are: Pillow in a torch DataLoader. What starves it? stoker measure -- python plain_torch.py FOLDER"""

import pathlib
import sys

import numpy
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self, folder):
        self.paths = sorted(pathlib.Path(folder).rglob("*.[jJ][pP]*"))[:1000]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with Image.open(self.paths[index]) as image:
            pixels = numpy.asarray(image.convert("RGB").resize((64, 64)))
        return torch.from_numpy(pixels.copy()).permute(2, 0, 1).float() / 255, index % 10


torch.set_num_threads(1)
train_loader = DataLoader(Photos(sys.argv[1]), batch_size=16, num_workers=1, persistent_workers=True, shuffle=True)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 5, 2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(10):
    for images, labels in train_loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
