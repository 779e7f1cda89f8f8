"""Lightning, accelerate and the Hugging Face Trainer as they are installed, with one and with two processes (gloo).

Each job is a program that makes its loader first, as people do, and writes down which samples of which epoch it trained on.
"""

import importlib.util
import json
import subprocess
import sys

import numpy
import pytest

import stoker

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

COUNT, BATCH, EPOCHS = 50, 4, 3

START = """
import json, os, sys, warnings
import torch
import stoker

out, processes, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
loader = stoker.Loader("rows.npy", batch_size=4, shuffle=True, seed=7, num_workers=1, output="torch")
trained = []

def note(batch):
    trained.append([batch.epoch, batch.ids.tolist()])

def rank():
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0

def finish():
    with open(f"{out}.{rank()}", "w") as file:
        json.dump(trained, file)
"""

LIGHTNING = START + """
import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
    def training_step(self, batch, batch_index):
        note(batch)
        rows, labels = batch
        loss = self.layer(rows).mean()
        self.log("loss", loss, on_epoch=True)
        return loss
    def validation_step(self, batch, batch_index):
        rows, labels = batch
        self.layer(rows)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-4)

class Stop(pl.Callback):
    def on_train_batch_end(self, trainer, *_):
        if mode.startswith("stop") and trainer.global_step == int(mode[4:]):
            trainer.save_checkpoint("lightning.ckpt")
            trainer.should_stop = True
            trainer.fit_loop._min_steps = None

validation = stoker.Loader("rows.npy", batch_size=5, num_workers=1, output="torch")
callbacks = [Stop()]
if mode == "epoch":
    callbacks.append(ModelCheckpoint(dirpath=".", filename="lightning", enable_version_counter=False))
trainer = pl.Trainer(max_epochs=1 if mode == "epoch" else 3, logger=False, enable_checkpointing=mode == "epoch", enable_progress_bar=False,
                     enable_model_summary=False, accelerator="cpu", devices=processes, strategy="ddp" if processes > 1 else "auto",
                     callbacks=callbacks)
trainer.fit(Model(), loader, validation, ckpt_path="lightning.ckpt" if mode == "resume" else None)
finish()
"""

ACCELERATE = """
from accelerate import Accelerator
from accelerate.data_loader import prepare_data_loader
""" + START + """
accelerator = Accelerator(cpu=True)
layer = torch.nn.Linear(2, 1)
model, optimizer, same = accelerator.prepare(layer, torch.optim.SGD(layer.parameters(), lr=1e-4), loader)
assert same is loader

def train(batches):
    for batch in batches:
        note(batch)
        rows, labels = batch
        accelerator.backward(model(rows).mean())
        optimizer.step()
        optimizer.zero_grad()
        if mode == f"stop{len(trained)}":
            accelerator.save_state("accelerate.ckpt")
            return False
    return mode[:4] != "skip"

if mode == "resume":
    accelerator.load_state("accelerate.ckpt")
around = loader
if mode[:4] == "skip":
    around = accelerator.skip_first_batches(loader, int(mode[4:]))
elif mode == "function":
    around = prepare_data_loader(loader, put_on_device=True, device=accelerator.device)
while loader.epoch < 3 and train(around):
    pass
accelerator.wait_for_everyone()
finish()
accelerator.end_training()
"""

HUGGINGFACE = START + """
import transformers
from transformers import Trainer, TrainerCallback, TrainingArguments

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
    def forward(self, rows):
        return self.layer(rows)

class Ours(Trainer):
    def get_train_dataloader(self):
        return loader
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        note(inputs)
        rows, labels = inputs
        return model(rows).mean()

class Stop(TrainerCallback):
    def on_step_end(self, arguments, state, control, **_):
        if mode.startswith("stop") and state.global_step == int(mode[4:]):
            control.should_save = control.should_training_stop = True

arguments = TrainingArguments("huggingface", num_train_epochs=3, per_device_train_batch_size=4, report_to=[], save_strategy="no",
                              disable_tqdm=True, use_cpu=True)
trainer = Ours(Model(), arguments, callbacks=[Stop()])
trainer.train(resume_from_checkpoint=mode == "resume")
assert trainer.num_examples(loader) == 50
finish()
"""

PROGRAMS = {"lightning": (LIGHTNING, "pytorch_lightning"), "accelerate": (ACCELERATE, "accelerate"), "huggingface": (HUGGINGFACE, "transformers")}


@pytest.fixture
def train(tmp_path):
    """``train("lightning", processes, mode)``: the steps that were trained, each as (epoch, ids of every rank)."""
    numpy.save(tmp_path / "rows.npy", numpy.arange(2 * COUNT, dtype=numpy.float32).reshape(COUNT, 2))
    for name, (program, _) in PROGRAMS.items():
        (tmp_path / f"train_{name}.py").write_text(program)

    def run(trainer, processes, mode="whole", fails=False):
        if importlib.util.find_spec(PROGRAMS[trainer][1]) is None:
            pytest.skip(f"{PROGRAMS[trainer][1]} is not installed")
        launcher = [sys.executable]
        if processes > 1 and trainer != "lightning":  # Lightning starts its processes itself
            launcher += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        done = subprocess.run([*launcher, f"train_{trainer}.py", mode, str(processes), mode], cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        if fails:
            return done.stderr
        ranks = [json.loads((tmp_path / f"{mode}.{rank}").read_text()) for rank in range(processes)]
        assert len({len(steps) for steps in ranks}) == 1
        trained = []
        for step in zip(*ranks):
            assert len({epoch for epoch, _ in step}) == 1
            trained.append((step[0][0], [ids for _, ids in step]))
        return trained

    return run


@pytest.fixture
def expected():
    """The same steps as the loader gives them without any trainer."""

    def steps(processes, tmp_path):
        ranks = []
        for rank in range(processes):
            with stoker.Loader(tmp_path / "rows.npy", batch_size=BATCH, shuffle=True, seed=7, output="numpy", rank=rank, world_size=processes) as loader:
                ranks.append([(batch.epoch, batch.ids.tolist()) for _ in range(EPOCHS) for batch in loader])
        return [(step[0][0], [ids for _, ids in step]) for step in zip(*ranks)]

    return steps


def ids_of(steps, epoch):
    return sorted(number for at, parts in steps if at == epoch for ids in parts for number in ids)


CASES = [(trainer, processes) for trainer in PROGRAMS for processes in (1, 2)]


@pytest.mark.parametrize("trainer, processes", CASES)
def test_every_epoch_is_trained_and_every_sample_once(train, expected, tmp_path, trainer, processes):
    steps = train(trainer, processes)
    assert [ids_of(steps, epoch) for epoch in range(EPOCHS)] == EPOCHS * [list(range(COUNT))]
    assert steps == expected(processes, tmp_path)


@pytest.mark.parametrize("trainer, processes", CASES)
@pytest.mark.parametrize("stop_after", [3, 9])  # of 13 steps with one process, of 7 with two
def test_a_checkpoint_resumes_exactly(train, expected, tmp_path, trainer, processes, stop_after):
    before = train(trainer, processes, f"stop{stop_after}")
    after = train(trainer, processes, "resume")
    assert len(before) == stop_after
    assert before + after == expected(processes, tmp_path)


@pytest.mark.parametrize("processes", [1, 2])
def test_lightning_resumes_after_a_whole_epoch(train, expected, tmp_path, processes):
    before = train("lightning", processes, "epoch")
    after = train("lightning", processes, "resume")
    assert before + after == expected(processes, tmp_path)


@pytest.mark.parametrize("processes", [1, 2])
def test_accelerate_skips_batches(train, expected, tmp_path, processes):
    skipped = train("accelerate", processes, "skip2")
    assert skipped == [step for step in expected(processes, tmp_path) if step[0] == 0][2:]


def test_accelerate_rebuilds_the_loader_in_one_process(train, expected, tmp_path):
    """prepare_data_loader is also a function, which makes a DataLoader of what it reads from the loader."""
    assert train("accelerate", 1, "function") == expected(1, tmp_path)


def test_accelerate_does_not_share_out_the_batches_twice(train):
    assert "cannot share the batches of this Loader among processes" in train("accelerate", 2, "function", fails=True)


def test_a_loader_made_before_accelerate_is_imported_says_that_save_state_lacks_it(tmp_path):
    pytest.importorskip("accelerate")
    numpy.save(tmp_path / "rows.npy", numpy.zeros((8, 2), numpy.float32))
    program = """
import sys, warnings
import stoker
loader = stoker.Loader("rows.npy", batch_size=4, output="numpy")
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
if sys.argv[1] == "known":
    accelerator.prepare_data_loader(loader)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(2):
        list(loader)
print([str(one.message) for one in seen if "accelerate" in str(one.message)])
"""
    for how, count in (("known", 0), ("unknown", 1)):
        done = subprocess.run([sys.executable, "-c", program, how], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.stdout.count("save_state leaves its position out") == count, done.stdout + done.stderr
