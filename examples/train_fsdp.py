"""A model whose parameters are sharded over the ranks (FSDP2): torchrun --nproc-per-node 2 train_fsdp.py FOLDER CHECKPOINT"""

import os
import sys

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.fsdp import fully_shard

import stoker

folder, checkpoint = sys.argv[1:]
loader = stoker.Loader(folder, batch_size=4, shuffle=True, seed=42, output="torch",
                       transform=[stoker.RandomResizedCrop(32), stoker.Normalize("imagenet")])
torch.distributed.init_process_group("gloo")  # "nccl" where there are GPUs
mesh = torch.distributed.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 32), torch.nn.ReLU(), torch.nn.Linear(32, len(loader.classes)))
fully_shard(model, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
rank = torch.distributed.get_rank()

if os.path.exists(checkpoint):
    saved = {"model": get_model_state_dict(model), "loader": loader.state_dict()}
    dcp.load(saved, checkpoint_id=checkpoint)
    set_model_state_dict(model, saved["model"])
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
dcp.save({"model": get_model_state_dict(model), "loader": loader.state_dict()}, checkpoint_id=checkpoint)
torch.distributed.destroy_process_group()
