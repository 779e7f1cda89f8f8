"""stoker run: PyTorch jobs as they are, with settings or batches from outside."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

torch = pytest.importorskip("torch")
pytest.importorskip("stoker")

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

PICTURES = """
    import torchvision_names
    import torch
    from torchvision import datasets, transforms

    def loader(*operations, **options):
        dataset = datasets.ImageFolder("pictures", transforms.Compose([*operations, transforms.ToTensor()]))
        return torch.utils.data.DataLoader(dataset, batch_size=4, **options)

    torch.manual_seed(1)
    validation = loader(transforms.Resize((16, 16)), shuffle=True)
    other = loader(transforms.Resize((16, 16)), transforms.ColorJitter(), transforms.Lambda(lambda image: image))
    for images, labels in validation:
        print(type(images).__name__, list(images.shape), images.double().sum().item(), labels.tolist())
    for images, labels in other:
        pass
    print("random", torch.rand(1).item(), flush=True)
"""


@pytest.fixture
def script(tmp_path):
    def write(text, name="train.py"):
        (tmp_path / name).write_text(textwrap.dedent(text))
        return [sys.executable, name]

    return write


@pytest.fixture
def pictures(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for number in range(12):
        folder = tmp_path / "pictures" / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        image.new("RGB", (30, 24), (number * 20, 255 - number * 20, 7)).save(folder / f"{number:02}.jpg")
    return tmp_path / "pictures"


@pytest.fixture
def with_torchvision(monkeypatch):
    """Variables for a job that imports torchvision_names."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python/tests"))
    return {"PYTHONPATH": str(ROOT / "python/tests")}


def test_a_flag_without_its_value_is_named_before_the_command(stoker):
    done = stoker("run", "--settings", "--", sys.executable, "train.py")
    assert done.returncode == 2 and "`--settings` needs a value" in done.stderr and "write `--settings DIR`" in done.stderr, done.stderr


def test_supplied_batches_are_the_jobs_own(stoker, script, pictures, with_torchvision):
    job = script(PICTURES)
    own = subprocess.run(job, capture_output=True, text=True, cwd=pictures.parent)
    if own.returncode != 0 and "torchvision" in own.stderr:
        pytest.skip("no torchvision")
    done = stoker("run", "--supply", "--", *job, env=with_torchvision)
    assert done.returncode == 0 and done.stdout == own.stdout, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("stoker: ")]
    assert lines[0] == "stoker: train.py:8: replaced: Stoker reads ImageFolder (12 images) with 2 operations"
    assert any("not replaced: ColorJitter is not known: operation 2 of 4" in line or "Lambda is not known" in line for line in lines), lines
    assert any("replaced, 12 samples" in line for line in lines), lines


def test_measure_offers_to_supply_a_loader_that_can_be_replaced(stoker, script, pictures, with_torchvision):
    text = """
        import torchvision_names
        from torch.utils.data import DataLoader
        from torchvision import datasets, transforms

        operations = [transforms.Resize((300, 300)), transforms.ToTensor()]
        if {extra}:
            operations.append(transforms.Lambda(lambda image: image))
        for _ in range(4):
            for batch in DataLoader(datasets.ImageFolder("pictures", transforms.Compose(operations)), batch_size=2):
                pass
    """
    for extra in (False, True):
        job = script(text.replace("{extra}", str(extra)))
        done = stoker("measure", "--json", "--", *job, env=with_torchvision)
        if done.returncode != 0 and "torchvision" in done.stderr:
            pytest.skip("no torchvision")
        found = json.loads(done.stdout)
        assert found["loaders"][0]["settings"]["replaceable"] is not extra
        assert any(advice.startswith(f"stoker run --supply -- {job[0]} ") for advice in found["advice"]) is not extra, found["advice"]


def test_json_tells_what_became_of_each_loader(stoker, script, pictures, with_torchvision):
    done = stoker("run", "--supply", "--json", "--", *script(PICTURES), env=with_torchvision)
    if "Error" in done.stderr and "torchvision" in done.stderr:
        pytest.skip("no torchvision")
    found = json.loads(done.stdout[done.stdout.index("{\n"):])
    assert found["schema"] == "stoker.run/1" and found["exit_code"] == 0
    assert [loader["replaced"] for loader in found["loaders"]] == [True, False]
    assert found["loaders"][0]["samples"] == 12 and found["loaders"][1]["why"]
    assert "stoker: " not in done.stderr, "--json is quiet"


def test_a_job_without_a_dataloader_runs_as_it_is(stoker, script):
    done = stoker("run", "--supply", "--", *script("print('hello')"))
    assert done.returncode == 0 and done.stdout == "hello\n" and "iterated over no torch DataLoader" in done.stderr


HOSTILE = """
    import torchvision_names
    import torch
    from torch.utils import data
    from torchvision import datasets, transforms

    RESIZE = [transforms.Resize((16, 16)), transforms.ToTensor()]

    class OwnIterator(data.dataloader._SingleProcessDataLoaderIter):
        def _next_data(self):
            images, labels = super()._next_data()
            return images + 1, labels

    class OwnLoader(data.DataLoader):
        def _get_iterator(self):
            return OwnIterator(self)

    class Counting(datasets.ImageFolder):
        count = 0
        def __getitem__(self, index):
            Counting.count += 1
            image, label = super().__getitem__(index)
            return image, label + Counting.count

    def folder(operations, kind=datasets.ImageFolder):
        return kind("pictures", transforms.Compose(operations))

    for loader in (OwnLoader(folder(RESIZE), batch_size=4),
                   data.DataLoader(folder(RESIZE, Counting), batch_size=4),
                   data.DataLoader(folder([*RESIZE, lambda image: image * 2]), batch_size=4)):
        for images, labels in loader:
            print(images.double().sum().item(), labels.tolist())
    torch.__version__ = "1.13.1"
    for images, labels in data.DataLoader(folder(RESIZE), batch_size=4):
        print(images.double().sum().item(), labels.tolist())
    torch.__version__ = "2.1.0"
    print("beyond", flush=True)
    for images, labels in data.DataLoader(folder(RESIZE), batch_size=4, sampler=[0, 1, 2, 3, 99, 4, 5, 6]):
        print(images.double().sum().item(), labels.tolist(), flush=True)
"""


def test_jobs_that_cannot_be_fed_go_on_as_without_stoker_and_are_told_why(stoker, script, pictures, with_torchvision):
    job = script(HOSTILE)
    own = subprocess.run(job, capture_output=True, text=True, cwd=pictures.parent)
    if "beyond" not in own.stdout and "torchvision" in own.stderr:
        pytest.skip("no torchvision")
    done = stoker("run", "--supply", "--", *job, env=with_torchvision)
    assert done.stdout == own.stdout and done.returncode == own.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].startswith("IndexError: ") or "IndexError: list index out of range" in done.stderr, done.stderr
    said = [line.split(": ", 2)[2] for line in done.stderr.splitlines() if line.startswith("stoker: train.py:")]
    assert said[:4] == ["not replaced: OwnLoader makes its iterators itself", "not replaced: Counting has a __getitem__ of its own",
                        "not replaced: <lambda> is not an operation of torchvision: operation 3 of 3", "not replaced: torch 1.13.1 is older than 2.0"], done.stderr


def test_two_jobs_at_once_get_the_batches_of_one(script, pictures, with_torchvision):
    job = script(PICTURES)
    command = [os.environ["STOKER_BIN"], "run", "--supply", "--", *job]
    both = [subprocess.Popen(command, cwd=pictures.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **with_torchvision})
            for _ in range(2)]
    (first, first_said), (second, second_said) = (one.communicate(timeout=300) for one in both)
    if "torchvision" in first_said and both[0].returncode != 0:
        pytest.skip("no torchvision")
    assert [one.returncode for one in both] == [0, 0] and first == second and first.count("Tensor") == 3, first_said + second_said
    assert all("replaced: Stoker reads ImageFolder (12 images)" in said for said in (first_said, second_said))


def test_the_exit_code_is_the_jobs(stoker):
    assert stoker("run", "--supply", "--", "sh", "-c", "exit 7").returncode == 7


@pytest.mark.parametrize("words, says", [
    (["--", "true"], "nothing to put into the job"), (["--supply"], "COMMAND"), (["--supply", "--", "/no/such/program"], "/no/such/program"),
    (["--settings", "nowhere", "--", "true"], "`--settings nowhere` has no settings.json")])
def test_wrong_use_of_run_is_one_sentence(stoker, words, says):
    done = stoker("run", *words)
    assert done.returncode == 2 and done.stderr.count("error: ") == 1 and says in done.stderr, done.stderr


def test_settings_are_put_into_the_loader_that_they_name(stoker, script, tmp_path):
    job = script(JOB)
    settings = {"loaders": [{"file": str(tmp_path / "train.py"), "line": 12, "set": {"num_workers": 0, "prefetch_factor": 8}}]}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    done = stoker("run", "--settings", "settings.json", "--", *job)
    assert done.returncode == 0 and done.stdout == "workers 0 prefetch None last 159201\n", done.stderr
    settings["loaders"][0]["set"] = {"num_workers": 2, "prefetch_factor": 3}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    assert stoker("run", "--settings", tmp_path, "--", *job).stdout == "workers 2 prefetch 3 last 159201\n"
    settings["loaders"][0]["line"] = 99
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    assert stoker("run", "--settings", tmp_path, "--", *job).stdout == "workers 1 prefetch 2 last 159201\n"


COUNTS = """
import signal, sys, time
got = 0
def count(number, frame):
    global got
    got += 1
signal.signal(signal.SIGINT, count)
print("ready", flush=True)
end = time.monotonic() + 20
while not got and time.monotonic() < end:
    time.sleep(0.05)
time.sleep(0.4)
print(got, flush=True)
"""


@pytest.mark.parametrize("verb", [["run", "--supply"], ["measure", "--quiet"]], ids=["run", "measure"])
@pytest.mark.parametrize("to", ["group", "stoker"])
def test_a_signal_reaches_the_job_once_whoever_it_was_sent_to(tmp_path, verb, to):
    (tmp_path / "job.py").write_text(COUNTS)
    for _ in range(3):
        job = subprocess.Popen([os.environ["STOKER_BIN"], *verb, "--", sys.executable, "job.py"], cwd=tmp_path, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        assert job.stdout.readline() == "ready\n"
        (os.killpg if to == "group" else os.kill)(job.pid, signal.SIGINT)
        assert job.stdout.readline() == "1\n"
        job.communicate(timeout=30)
