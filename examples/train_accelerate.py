"""accelerate, resumed where it ended: torchrun --nproc-per-node 2 train_accelerate.py FOLDER CHECKPOINT"""

import os
import sys

import torch
from accelerate import Accelerator

import stoker

folder, checkpoint = sys.argv[1:]
accelerator = Accelerator(cpu=True)
loader = stoker.Loader(folder, batch_size=4, shuffle=True, seed=42, output="torch",
                       transform=[stoker.RandomResizedCrop(32), stoker.Normalize("imagenet")])
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, len(loader.classes)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)  # the loader stays what it is: it has its rank
if os.path.exists(checkpoint):
    accelerator.load_state(checkpoint)  # the loader's place too, with any number of ranks

first = loader.epoch
for epoch in range(first, first + 2):
    seen = 0
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        seen += len(labels)
    print(f"rank {accelerator.process_index}, epoch {epoch}: {seen} samples in {len(loader)} steps", flush=True)
accelerator.save_state(checkpoint)
accelerator.end_training()
