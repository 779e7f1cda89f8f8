"""Lightning, with checkpoints that hold the loader's place: python train_lightning.py FOLDER CHECKPOINT RANKS"""

import os
import sys

import pytorch_lightning as pl
import torch

import stoker


class Model(pl.LightningModule):
    def __init__(self, classes):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, classes))
        self.seen = 0

    def training_step(self, batch, batch_index):
        images, labels = batch
        self.seen += len(labels)
        return torch.nn.functional.cross_entropy(self.layers(images), labels)

    def on_train_epoch_end(self):
        print(f"rank {self.global_rank}, epoch {self.current_epoch}: {self.seen} samples", flush=True)
        self.seen = 0

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


folder, checkpoint, ranks = sys.argv[1], sys.argv[2], int(sys.argv[3])
loader = stoker.Loader(folder, batch_size=4, shuffle=True, seed=42, output="torch",
                       transform=[stoker.RandomResizedCrop(32), stoker.Normalize("imagenet")])
resume = checkpoint if os.path.exists(checkpoint) else None
trainer = pl.Trainer(max_epochs=4 if resume else 2, accelerator="cpu", devices=ranks, strategy="ddp" if ranks > 1 else "auto",
                     logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Model(len(loader.classes)), loader, ckpt_path=resume)  # the loader's state travels in the checkpoint
trainer.save_checkpoint(checkpoint)
