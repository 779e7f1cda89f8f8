"""The callbacks in the real trainers of Lightning and of Hugging Face, and a stock training program that nobody here wrote."""

import importlib.util
import sys

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

LIGHTNING = """
import sys, time, torch
import stoker.callbacks
from torch.utils.data import DataLoader, Dataset
import pytorch_lightning as pl
from pytorch_lightning.demos.boring_classes import BoringModel

class Slow(Dataset):
    def __len__(self): return 64
    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.randn(32)

callback = stoker.callbacks.lightning()
trainer = pl.Trainer(max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                     accelerator="cpu", callbacks=[callback])
trainer.fit(BoringModel(), DataLoader(Slow(), batch_size=4), DataLoader(Slow(), batch_size=16))
report = callback.measurement.report()
print(report["verdict"]["bound"], sorted((loader["role"], loader["all_steps"]) for loader in report["loaders"]))
"""

HUGGINGFACE = """
import time, torch
import stoker.callbacks
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments

class Slow(Dataset):
    def __len__(self): return 64
    def __getitem__(self, index):
        time.sleep(0.01)
        return {"x": torch.randn(8), "labels": torch.tensor(0)}

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)
    def forward(self, x, labels=None):
        logits = self.layer(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}

callback = stoker.callbacks.huggingface()
Trainer(Model(), TrainingArguments("out", num_train_epochs=2, per_device_train_batch_size=4, report_to=[], save_strategy="no",
        disable_tqdm=True, use_cpu=True), train_dataset=Slow(), callbacks=[callback]).train()
report = callback.measurement.report()
print(report["verdict"]["bound"], report["loaders"][0]["all_steps"])
"""


def run(text, tmp_path):
    import subprocess

    (tmp_path / "job.py").write_text(text)
    done = subprocess.run([sys.executable, "job.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done


def needs(*modules):
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")


def test_lightning(tmp_path):
    needs("pytorch_lightning", "stoker")
    done = run(LIGHTNING, tmp_path)
    assert done.stdout.splitlines()[-1] == "fetch_bound [('train', 32), ('val', 10)]", done.stdout
    assert "stoker: fetch_bound (io_bound)" in done.stderr


def test_hugging_face(tmp_path):
    needs("transformers", "accelerate", "stoker")
    done = run(HUGGINGFACE, tmp_path)
    assert done.stdout.splitlines()[-1] == "fetch_bound 32", done.stdout
    assert "stoker: fetch_bound (io_bound)" in done.stderr


def test_a_stock_training_program_is_measured_unchanged(measure):
    """The program with which accelerate tests itself, as it is installed: it trains with DataLoaders of every setting."""
    needs("accelerate")
    answer = measure(sys.executable, "-m", "accelerate.test_utils.scripts.test_script", timeout=600)
    assert "Training yielded the same results" in answer["stdout"] + answer["stderr"]
    assert sum(loader["all_steps"] for loader in answer["loaders"]) > 100
    assert answer["total"]["wait"]["handoff"]["unknown"]["share"] < 0.02
