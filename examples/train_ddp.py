"""Training on several ranks, resumed where it ended: torchrun --nproc-per-node 2 train_ddp.py FOLDER CHECKPOINT"""

import os
import sys

import torch

import stoker

folder, checkpoint = sys.argv[1:]
loader = stoker.Loader(folder, batch_size=4, shuffle=True, seed=42, output="torch",
                       transform=[stoker.RandomResizedCrop(32), stoker.Normalize("imagenet")])
torch.distributed.init_process_group("gloo")  # the loader takes its rank at the first iter() or len()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, len(loader.classes))))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
rank = torch.distributed.get_rank()

if os.path.exists(checkpoint):
    saved = torch.load(checkpoint, weights_only=True)
    model.load_state_dict(saved["model"])
    loader.load_state_dict(saved["loader"])  # any number of ranks

first = loader.epoch
for epoch in range(first, first + 2):
    seen = 0
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += len(labels)
    print(f"rank {rank}, epoch {epoch}: {seen} samples in {len(loader)} steps", flush=True)
if rank == 0:
    torch.save({"model": model.state_dict(), "loader": loader.state_dict()}, checkpoint)
torch.distributed.barrier()
torch.distributed.destroy_process_group()
