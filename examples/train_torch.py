"""A training loop on a folder of classes: python train_torch.py FOLDER"""

import sys

import torch

import stoker

loader = stoker.Loader(
    sys.argv[1],
    batch_size=8,
    shuffle=True,
    seed=42,
    memory_limit="512MB",
    transform=[stoker.RandomResizedCrop(32), stoker.HorizontalFlip(), stoker.Normalize("imagenet")],
    on_error="replace",
)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(),
                            torch.nn.Linear(128, len(loader.classes)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for epoch in range(loader.epoch, 3):
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
print(loader.summary())
