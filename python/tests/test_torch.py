"""torch tensors over the slabs."""

import gc

import numpy
import pytest

import stoker

torch = pytest.importorskip("torch")


def load(path, **options):
    return stoker.Loader(path, **{"batch_size": 4, "output": "torch", **options})


def test_auto_is_torch_once_it_is_imported(photos):
    with stoker.Loader(photos) as loader:
        assert loader.options["output"] == "torch" and isinstance(next(iter(loader)).data, torch.Tensor)


def test_auto_is_numpy_before(run_python, photos):
    run_python("""
        import sys, numpy, stoker
        loader = stoker.Loader(sys.argv[1])
        assert isinstance(next(iter(loader)).data, numpy.ndarray) and "torch" not in sys.modules
    """, photos)


def test_tensors_are_the_slab_itself(photos):
    with load(photos) as loader:
        batch = next(iter(loader))
        images, labels = batch
        assert images.shape == (4, 3, 40, 48) and images.dtype == torch.uint8 and labels.dtype == torch.int64
        assert images.data_ptr() == batch._slab.numpy(0).ctypes.data
        assert labels.data_ptr() == batch._slab.labels().ctypes.data
        assert images.data_ptr() % 64 == 0


def test_a_tensor_keeps_the_slab_and_frees_it(photos):
    with load(photos) as loader:
        part = next(iter(loader)).data[1:2]
        gc.collect()
        assert loader.stats()["slabs_held"] == 1
        del part
        assert loader.stats()["slabs_held"] == 0


def test_a_tensor_outlives_the_loader(photos):
    loader = load(photos)
    images, _ = next(iter(loader))
    copy = images.clone()
    loader.close()
    del loader
    gc.collect()
    assert torch.equal(images, copy)


def test_channels_last_is_what_torch_calls_it(photos):
    with load(photos, layout="channels_last") as loader, load(photos) as plain:
        images, expected = next(iter(loader)).data, next(iter(plain)).data
        assert images.is_contiguous(memory_format=torch.channels_last) and torch.equal(images, expected)


def test_bfloat16_is_in_place_and_rounded_to_even(photos):
    with load(photos, transform=[stoker.Normalize("imagenet")], dtype="bfloat16") as loader:
        batch = next(iter(loader))
        assert batch.data.dtype == torch.bfloat16 and batch.data.data_ptr() == batch._slab.numpy(0).ctypes.data
        with load(photos, transform=[stoker.Normalize("imagenet")]) as plain:
            assert torch.equal(batch.data, next(iter(plain)).data.to(torch.bfloat16))


def test_normalize_is_torchvisions(photos):
    mean, std = torch.tensor([0.485, 0.456, 0.406])[:, None, None], torch.tensor([0.229, 0.224, 0.225])[:, None, None]
    with load(photos, transform=[stoker.Normalize("imagenet")]) as loader, load(photos) as plain:
        expected = next(iter(plain)).data.to(torch.float32).div(255).sub(mean).div(std)
        torch.testing.assert_close(next(iter(loader)).data, expected, atol=1e-6, rtol=1e-6)


def test_copy_and_views_give_tensors(photos):
    with load(photos, transform=[stoker.Views(a=(2, [stoker.RandomResizedCrop(8)]), b=(1, [stoker.Resize((9, 9))]))], copy=True) as loader:
        batches = list(loader)
        assert len(batches) == 6 and batches[3].data["a"].shape == (4, 2, 3, 8, 8) and isinstance(batches[0].ids, torch.Tensor)


def test_a_training_loop_learns_from_the_batches(array, tmp_path):
    rows = numpy.random.default_rng(0).normal(size=(256, 3)).astype(numpy.float32)
    numpy.save(tmp_path / "rows.npy", rows)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    with load(tmp_path / "rows.npy", batch_size=32, shuffle=True) as loader:
        for _ in range(5):
            for data, _ in loader:
                loss = ((model(data) - data.sum(1, keepdim=True)) ** 2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


# ---- the way to a device, with a stand-in for the runtime


class Runtime:
    """As much of torch.cuda as the copier uses. Copies are done when the test says so; everything is written down."""

    def __init__(self):
        self.log, self.finished = [], False
        runtime = self

        class Event:
            def query(self):
                return runtime.finished

            def synchronize(self):
                runtime.log.append("synchronize")
                runtime.finished = True

        class Stream:
            def __init__(self, name):
                self.name = name

            def record_event(self):
                runtime.log.append(f"event on {self.name}")
                return Event()

            def wait_event(self, event):
                runtime.log.append(f"{self.name} waits")

            def __enter__(self):
                runtime.log.append(f"enter {self.name}")

            def __exit__(self, *_):
                runtime.log.append("leave")

        class Cuda:
            is_available = staticmethod(lambda: True)
            Stream = staticmethod(lambda device: Stream("side"))
            stream = staticmethod(lambda stream: stream)
            current_stream = staticmethod(lambda device: Stream("consumer"))

        self.cuda, self.device = Cuda, torch.device


class OnDevice:
    def __init__(self, runtime):
        self.runtime = runtime

    def record_stream(self, stream):
        self.runtime.log.append(f"used by {stream.name}")


@pytest.fixture
def device_loader(photos, monkeypatch):
    from stoker import torch as framework

    runtime = Runtime()
    loader = load(photos, prefetch_factor=4)
    loader._copier = framework.DeviceCopier("cuda", runtime)

    def to(tensor, device, non_blocking):
        assert device.type == "cuda" and non_blocking
        runtime.log.append("copy")
        return OnDevice(runtime)

    monkeypatch.setattr(torch.Tensor, "to", to)
    yield loader, runtime
    loader.close()


def test_a_copy_runs_on_a_side_stream_and_the_consumers_stream_waits(device_loader):
    loader, runtime = device_loader
    images, labels = next(iter(loader))
    assert isinstance(images, OnDevice) and isinstance(labels, OnDevice)
    assert runtime.log == ["enter side", "copy", "copy", "leave", "event on side", "consumer waits", "used by consumer", "used by consumer"]


def test_the_slab_is_held_until_the_copy_has_completed(device_loader):
    loader, runtime = device_loader
    iterator = iter(loader)
    next(iterator)
    gc.collect()
    assert loader.stats()["slabs_held"] == 1
    next(iterator)
    gc.collect()
    assert loader.stats()["slabs_held"] == 2
    runtime.finished = True
    next(iterator)
    gc.collect()
    assert loader.stats()["slabs_held"] == 0
    runtime.finished = False
    next(iterator)
    loader.close()
    assert runtime.log[-1] == "synchronize"


def test_a_device_that_is_not_there_is_refused(photos):
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    with pytest.raises(ValueError, match="no such device"):
        load(photos, device="cuda")
    with pytest.raises(ValueError, match="copy stream"):
        load(photos, device="meta")
    with load(photos, device="cpu") as loader:
        assert next(iter(loader)).data.device.type == "cpu"


def test_pinning_without_a_device_is_said_and_not_done(photos):
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    with load(photos, pin_memory=True) as loader:
        assert not loader.options["pin_memory"] and any("pin" in note for note in loader.notes)
        assert len([None for _ in loader]) == 6
