"""stoker tune of PyTorch jobs as they are: the settings of their DataLoader, and literals of their source."""

import json
import os
import sys
import textwrap

import pytest

pytest.importorskip("torch")

JOB = """
    import sys
    import torch
    from torch.utils.data import DataLoader

    class Squares(torch.utils.data.Dataset):
        def __len__(self):
            return 400
        def __getitem__(self, index):
            return index * index

    loader = DataLoader(Squares(), batch_size=4, num_workers=1,
                        prefetch_factor=2)
    for epoch in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
        for batch in loader:
            pass
    print("workers", loader.num_workers, "prefetch", loader.prefetch_factor, "last", int(batch[-1]))
"""


@pytest.fixture
def script(tmp_path):
    def write(text, name="train.py"):
        (tmp_path / name).write_text(textwrap.dedent(text))
        return [sys.executable, name]

    return write


def test_a_job_is_tuned_without_grid_and_placeholders(stoker, script, tmp_path):
    job = script(JOB)
    done = stoker("tune", "--warmup-steps", "1", "--bench-steps", "4", "--time-limit", "60s", "--out", "run", "--json", "--", *job, "5")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert config["loader"]["line"] == 12 and os.path.basename(config["loader"]["file"]) == "train.py"
    assert {"num_workers", "prefetch_factor"} <= set(config["grid"]) and "batch_size" not in config["grid"]
    assert {"0", "1"} <= set(config["grid"]["num_workers"])
    settings = json.loads((tmp_path / "run/settings.json").read_text())
    assert settings["loaders"][0]["line"] == 12 and set(settings["loaders"][0]["set"]) == set(config["grid"])
    assert found["apply"].startswith("stoker run --settings run -- ") and found["change"]
    chosen = found["chosen"]["knobs"]
    if chosen["num_workers"] != "1":
        assert f"num_workers 1 -> {chosen['num_workers']}" in found["change"]
        assert "-loader = DataLoader(Squares(), batch_size=4, num_workers=1,\n" in found["diff"]
        assert f"+loader = DataLoader(Squares(), batch_size=4, num_workers={chosen['num_workers']},\n" in found["diff"]
    applied = stoker("run", "--settings", "run", "--", *job)
    assert applied.returncode == 0 and f"workers {chosen['num_workers']} " in applied.stdout


def test_a_setting_that_the_source_does_not_name_is_named_beside_the_diff(stoker, script):
    done = stoker("tune", "--grid", "num_workers=2", "--grid", "persistent_workers=true", "--search", "grid", "--warmup-steps", "1", "--bench-steps",
                  "4", "--out", "run", "--json", "--", *script(JOB), "5")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["change"] == "train.py:12: num_workers 1 -> 2, persistent_workers False -> True"
    assert "num_workers=2," in found["diff"] and "persistent_workers" not in found["diff"]
    assert any("the diff lacks persistent_workers=True" in note and "add it" in note for note in found["notes"]), found["notes"]


def test_knobs_of_a_dataloader_need_no_place_in_the_command(stoker, script, tmp_path):
    done = stoker("tune", "--grid", "num_workers=0,1", "--search", "grid", "--loader", "train.py:12", "--warmup-steps", "1", "--bench-steps", "4",
                  "--out", "run", "--json", "--", *script(JOB), "5")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"] == 2


@pytest.mark.parametrize("words, says", [
    (["--", "true"], "it used no torch DataLoader"), (["--dry-run", "--", "true"], "`--dry-run` runs nothing"),
    (["--loader", "train.py:3", "--grid", "lr=1,2", "--", "true", "{lr}"], "`--loader` names a DataLoader")])
def test_jobs_that_cannot_be_tuned_so_are_refused_in_one_sentence(stoker, words, says):
    done = stoker("tune", *words)
    assert done.returncode == 2 and done.stderr.count("error: ") == 1 and says in done.stderr, done.stderr


def test_a_loader_that_the_job_does_not_make_is_refused_with_those_that_it_makes(stoker, script):
    done = stoker("tune", "--loader", "train.py:99", "--warmup-steps", "1", "--bench-steps", "4", "--", *script(JOB), "5")
    assert done.returncode == 2 and "it makes DataLoaders at train.py:12" in done.stderr, done.stderr


# Shaped as the builder of a team that has no DataLoader: constants of a dataclass in one file, the loop in another.
BUILDER = """
    from dataclasses import dataclass

    @dataclass
    class Config:
        cpu_max_workers: int = 4          # threads
        disk_files_per_task: int = 1024
"""
LOOP = """
    from builder import Config

    if __name__ == "__main__":
        config = Config()
        for _ in range(20):
            print("rate", config.cpu_max_workers * 1000 + config.disk_files_per_task, flush=True)
"""
RATES = ["--rate-regex", "rate ([0-9]+)", "--warmup-steps", "1", "--search", "grid", "--json"]


def test_literals_of_the_source_are_knobs_for_one_trial_only(stoker, script, tmp_path):
    script(BUILDER, "builder.py")
    before = (tmp_path / "builder.py").read_text()
    done = stoker("tune", "--set", "builder.py:cpu_max_workers=4,8,12", "--set", "builder.py:disk_files_per_task=512,2048", *RATES, "--out", "run",
                  "--", *script(LOOP))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["ok"] == 6 and found["best"]["images_per_s"] == 14048
    assert found["best"]["knobs"] == {"builder.py:cpu_max_workers": "12", "builder.py:disk_files_per_task": "2048"}
    assert (tmp_path / "builder.py").read_text() == before
    assert "rate 5024" in stoker("run", "--supply", "--", *script(LOOP)).stdout, "nothing is kept, also not as bytecode"


# Shaped as a training program with its settings as keyword arguments and constants.
TRAIN = """
    WORKERS = 1

    def make(data, *, prefetch=1, **options):
        return WORKERS * 10 + prefetch + options["depth"]

    if __name__ == "__main__":
        import sys
        for _ in range(20):
            print("rate", make(None, depth=100), sys.argv[1:], flush=True)
"""


def test_constants_defaults_and_keywords_of_the_program_itself_are_knobs(stoker, script, tmp_path):
    done = stoker("tune", "--set", "train.py:WORKERS=2", "--set", "train.py:prefetch=3", "--set", "train.py:depth=200,400", *RATES, "--out", "run",
                  "--", *script(TRAIN), "--epochs", "3")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["best"]["images_per_s"] == 423
    assert "['--epochs', '3']" in (tmp_path / "run/trials/0001/stdout").read_text()


def test_a_literal_that_is_not_there_ends_the_search_with_its_name(stoker, script):
    script(BUILDER, "builder.py")
    done = stoker("tune", "--set", "builder.py:cpu_max_wokers=4,8", *RATES, "--", *script(LOOP))
    assert done.returncode == 2 and "`builder.py` has no literal named `cpu_max_wokers`" in done.stderr, done.stderr


HEAD = """
    import torch
    from torch.utils import data

    class Squares(data.Dataset):
        def __len__(self):
            return 400
        def __getitem__(self, index):
            return torch.tensor([float(index * index)])

    class Numbers(data.IterableDataset):
        def __iter__(self):
            return iter(range(400))
"""
# Ways in which people make loaders. Each says its line as `HERE`.
WAYS = {
    "rebuilt in each epoch": """
    for epoch in range(5):
        loader = data.DataLoader(Squares(), batch_size=4)  # HERE
        for batch in loader:
            pass
    """,
    "several": """
    validation = data.DataLoader(Squares(), batch_size=40)
    loader = data.DataLoader(Squares(), batch_size=4)  # HERE
    for epoch in range(5):
        for batch in loader:
            pass
        with torch.no_grad():
            for batch in validation:
                pass
    """,
    "a batch sampler": """
    loader = data.DataLoader(Squares(), batch_sampler=data.BatchSampler(data.RandomSampler(Squares()), 4, True))  # HERE
    for epoch in range(5):
        for batch in loader:
            pass
    """,
    "an IterableDataset": """
    loader = data.DataLoader(Numbers(), batch_size=4)  # HERE
    for epoch in range(5):
        for batch in loader:
            pass
    """,
    "torchrun": """
    torch.distributed.init_process_group("gloo")
    loader = data.DataLoader(Squares(), batch_size=4, sampler=data.DistributedSampler(Squares()))  # HERE
    for epoch in range(10):
        loader.sampler.set_epoch(epoch)
        for batch in loader:
            pass
    torch.distributed.destroy_process_group()
    """,
    "accelerate": """
    import accelerate
    loader = accelerate.Accelerator(cpu=True).prepare(data.DataLoader(Squares(), batch_size=4))  # HERE
    for epoch in range(5):
        for batch in loader:
            pass
    """,
    "lightning": """
    import lightning

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
        def training_step(self, batch, index):
            return self.layer(batch).mean()
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 1e-9)

    loader = data.DataLoader(Squares(), batch_size=4)  # HERE
    trainer = lightning.Trainer(max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)
    trainer.fit(Model(), loader)
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_loaders_are_tuned_however_the_job_makes_them(stoker, script, tmp_path, way):
    if way in ("accelerate", "lightning"):
        pytest.importorskip(way)
    text = textwrap.dedent(HEAD) + textwrap.dedent(WAYS[way])
    job = script(text)
    if way == "torchrun":
        job = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *job[1:]]
    done = stoker("tune", "--grid", "num_workers=0,1", "--search", "grid", "--warmup-steps", "1", "--bench-steps", "4", "--out", "run", "--json", "--", *job)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"] == 2
    (loader,) = json.loads((tmp_path / "run/settings.json").read_text())["loaders"]
    line = 1 + next(number for number, line in enumerate(text.splitlines()) if "HERE" in line)
    assert os.path.basename(loader["file"]) == "train.py" and loader["line"] == line and set(loader["set"]) == {"num_workers"}
