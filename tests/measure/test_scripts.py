"""Training programs that nobody here wrote, run whole under `stoker measure`: alone, and beside programs that keep every core busy.

STOKER_SCRIPTS names a folder with clones of their repositories: examples (pytorch/examples), makemore and nanoGPT (karpathy). Their text is
no part of this project. Each runs in a copy of its folder, on data that is made here.
"""

import importlib
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

FOLDER = os.environ.get("STOKER_SCRIPTS")  # the environment of the measured job has no such names


def photos(folder):
    """Folders of classes, as ImageFolder reads them."""
    from PIL import Image

    random.seed(1)
    for part, count in (("train", 48), ("val", 8)):
        for label in ("cat", "dog"):
            where = folder / "photos" / part / label
            where.mkdir(parents=True)
            for index in range(count):
                Image.frombytes("RGB", (320, 240), random.randbytes(320 * 240 * 3)).save(where / f"{index}.jpg", quality=80)


def digits(folder):
    """MNIST's four files, where the program looks for them: beside its own folder."""
    where = folder.parent / "data/MNIST/raw"
    where.mkdir(parents=True)
    for part, count in (("train", 640), ("t10k", 128)):
        (where / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + random.randbytes(count * 28 * 28))
        (where / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + bytes(index % 10 for index in range(count)))


def names(folder):
    random.seed(1)
    words = {"".join(random.choices("abcdefghij", k=random.randint(3, 9))) for _ in range(2400)}
    (folder / "names.txt").write_text("\n".join(sorted(words)))


def tokens(folder):
    where = folder / "data/made"
    where.mkdir(parents=True)
    for part in ("train", "val"):
        (where / f"{part}.bin").write_bytes(struct.pack("<20000H", *(index % 60 for index in range(20000))))


@dataclass
class Script:
    path: str                       # below STOKER_SCRIPTS
    arguments: list
    make_data: Callable = lambda folder: None
    needs: list = field(default_factory=list)     # modules
    loaders: dict = field(default_factory=dict)   # role: steps; of the training loader of all epochs
    num_workers: int = 0
    has_flag: bool = False          # one of its arguments sets num_workers


SCRIPTS = {
    "imagenet": Script("examples/imagenet/main.py", ["photos", "-a", "resnet18", "-b", "8", "-j", "0", "--epochs", "1", "--no-accel"], photos,
                       ["torchvision"], {"train": 12, "val": 2}, has_flag=True),
    "mnist": Script("examples/mnist/main.py", ["--epochs", "2", "--batch-size", "32", "--no-accel"], digits, ["torchvision"], {"train": 40, "val": 2}),
    "dcgan": Script("examples/dcgan/main.py", ["--dataset", "fake", "--workers", "1", "--niter", "1", "--ngf", "8", "--ndf", "8"], needs=["torchvision"],
                    loaders={"train": 16}, num_workers=1, has_flag=True),
    "makemore": Script("makemore/makemore.py", ["-i", "names.txt", "--num-workers", "2", "--max-steps", "60", "--type", "mlp"], names, ["tensorboard"],
                       {"train": 60}, num_workers=2, has_flag=True),
    "nanoGPT": Script("nanoGPT/train.py", ["--dataset=made", "--device=cpu", "--compile=False", "--eval_iters=1", "--max_iters=4", "--n_layer=1",
                                           "--n_head=1", "--n_embd=32", "--block_size=32", "--batch_size=4", "--gradient_accumulation_steps=1"], tokens),
}


@pytest.fixture(params=SCRIPTS)
def script(request, tmp_path):
    """A program in a copy of its folder, with its data."""
    one = SCRIPTS[request.param]
    if not FOLDER:
        pytest.skip(f"{request.param}: STOKER_SCRIPTS names no folder")
    source = pathlib.Path(FOLDER) / one.path
    if not source.exists():
        pytest.skip(f"{request.param}: there is no {source}")
    for module in one.needs:
        try:
            importlib.import_module(module)
        except Exception as error:  # an unfitting build of torchvision raises RuntimeError
            pytest.skip(f"{request.param} needs {module}: {error}")
    one.folder = tmp_path / "job"
    shutil.copytree(source.parent, one.folder, ignore=shutil.ignore_patterns(".git", "data"))
    one.make_data(one.folder)
    return one


@pytest.fixture(params=["alone", "crowded"])
def beside(request):
    """Nothing, or a busy loop on every core."""
    count = len(os.sched_getaffinity(0)) if request.param == "crowded" else 0
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    yield request.param
    for loop in loops:
        loop.kill()
        loop.wait()


def test_it_runs_to_its_end_and_is_explained(script, beside, binary, environment, tmp_path, report):
    command = [sys.executable, pathlib.Path(script.path).name, *script.arguments]
    answer = report(command, script.folder)
    assert answer["exit_code"] == 0, answer["stderr"]
    if not script.loaders:
        assert answer["why"][-1] == "torch was imported, but no DataLoader was iterated"
        assert not any("_bound" in text for text in answer["why"]), "its threads train, and may also make the input"
        return
    seen = {loader["role"]: loader for loader in answer["loaders"]}
    assert {role: loader["all_steps"] for role, loader in seen.items()} == script.loaders, answer["stderr"]
    train = seen["train"]
    lines = (script.folder / command[1]).read_text().splitlines()
    assert pathlib.Path(train["file"]).name == command[1] and "DataLoader(" in lines[train["line"] - 1], (train["file"], train["line"])
    assert train["settings"]["num_workers"] == script.num_workers
    assert train["verdict"] is not None and answer["why"] and answer["advice"], answer["stderr"]
    assert answer["total"]["wait"]["handoff"]["unknown"]["share"] < 0.02
    assert train["total"]["compute"]["cpu_ms_per_step"] > 0
    if beside == "crowded" and answer["host"]["cores"]["used_by_others"] != "unknown":
        assert answer["host"]["cores"]["used_by_others"] > 0.3, answer["stderr"]
    check_plan(answer, script, binary, environment, tmp_path)


def check_plan(answer, script, binary, environment, tmp_path):
    """`plan` says the same of workers as `measure`, and its command is one that can be run as it stands."""
    done = subprocess.run([binary, "plan", "--ledger", tmp_path / "out/measure.json", "--json"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    options = {option["name"]: option for option in json.loads(done.stdout)["runs"][0]["options"]}
    for name, option in options.items():
        if not name.startswith("num_workers=") or not option["worth"]:
            continue
        workers = name.split("=")[1]
        if script.has_flag:
            assert "#" not in option["command"] and f" {workers} " in option["command"] + " ", option["command"]
        else:
            assert f"# first set {name} at {pathlib.Path(script.path).name}:" in option["command"], option["command"]
    advised = [text for text in answer["advice"] if text.startswith("num_workers=")]
    if advised and "about" in advised[0]:
        gain = float(advised[0].split("about ")[1].split("x")[0])
        assert options[advised[0].split(" ")[0]]["gain"]["p50"] == pytest.approx(gain, abs=0.06)


@pytest.fixture
def report(binary, environment, tmp_path):
    """The JSON answer about a command that is run in a folder."""
    def run(command, folder):
        done = subprocess.run([binary, "measure", "--out", tmp_path / "out", "--", *command], capture_output=True, text=True, timeout=900,
                              env={**environment, "OMP_NUM_THREADS": "2"}, cwd=folder)
        return {**json.loads((tmp_path / "out/measure.json").read_text()), "stderr": done.stdout[-2000:] + done.stderr}

    return run
