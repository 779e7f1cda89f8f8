"""The memory of a training step, traced without running it, against what torch's profiler sees when it runs."""

import contextlib

import pytest

torch = pytest.importorskip("torch")
model_memory = pytest.importorskip("stoker.model_memory")
from torch import nn  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402


class Bottleneck(nn.Module):
    """Of a ResNet: 1x1, 3x3, 1x1 convolutions around a short cut."""

    def __init__(self, inside, middle, stride):
        super().__init__()
        outside = 4 * middle
        self.layers = nn.Sequential(nn.Conv2d(inside, middle, 1, bias=False), nn.BatchNorm2d(middle), nn.ReLU(inplace=True),
                                    nn.Conv2d(middle, middle, 3, stride, 1, bias=False), nn.BatchNorm2d(middle), nn.ReLU(inplace=True),
                                    nn.Conv2d(middle, outside, 1, bias=False), nn.BatchNorm2d(outside))
        same = stride == 1 and inside == outside
        self.short = nn.Identity() if same else nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.layers(x) + self.short(x))


def resnet(*depths, width=64):
    """resnet(3, 4, 6, 3) is ResNet-50."""
    layers, inside = [], width
    for number, depth in enumerate(depths):
        middle = width << number
        blocks = [Bottleneck(inside if i == 0 else 4 * middle, middle, 2 if i == 0 and number > 0 else 1) for i in range(depth)]
        layers.append(nn.Sequential(*blocks))
        inside = 4 * middle
    return nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1), *layers,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000))


def peak_by_profiler(make, batch, size, amp, optimizer):
    torch.manual_seed(0)
    model = make().train()
    images = torch.rand(batch, 3, size, size)
    learn = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) if optimizer == "sgd" else torch.optim.AdamW(model.parameters(), foreach=False)
    precision = model_memory.PRECISIONS[amp]

    def step():
        with torch.autocast("cpu", precision) if precision else contextlib.nullcontext():
            out = model(images)
        out.float().mean().backward()
        learn.step()
        learn.zero_grad()

    step()
    tensors = [*model.parameters(), *model.buffers(), images, *(one for state in learn.state.values() for one in state.values() if torch.is_tensor(one))]
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    now = peak = 0
    for event in sorted((one for one in profiler.profiler.kineto_results.events() if one.name() == "[memory]"), key=lambda one: one.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak + sum(one.numel() * one.element_size() for one in tensors)


@pytest.mark.parametrize("amp, optimizer", [("none", "sgd"), ("bf16", "adam")])
def test_a_small_net_is_within_a_tenth_of_the_profiler(amp, optimizer):
    make, batch, size = lambda: resnet(1, 1, width=16), 4, 48
    traced = model_memory.traced_step(make, batch, size, amp, False, optimizer)["peak"]
    assert traced == pytest.approx(peak_by_profiler(make, batch, size, amp, optimizer), rel=0.1)


def test_checkpointing_keeps_less_and_the_parts_are_told(tmp_path):
    here = __file__.rsplit("/", 1)[0]
    (tmp_path / "net.py").write_text(f"import sys\nsys.path.insert(0, {here!r})\nfrom test_model_memory import resnet\ndef build(): return resnet(1, 1, width=16)\n")
    found = {kept: model_memory.memory_of(f"{tmp_path}/net.py:build,img=48", "none", kept) for kept in (False, True)}
    assert found[True]["activation_bytes_per_image"] < 0.8 * found[False]["activation_bytes_per_image"]
    one = found[False]
    assert one["gradients_bytes"] == one["optimizer_bytes"] == one["parameters_bytes"] == 4 * one["parameter_count"]
    assert one["input_bytes_per_image"] == 3 * 48 * 48 * 4 and one["forward_flops"] > 0
    half = model_memory.memory_of(f"{tmp_path}/net.py:build,img=48", "bf16", False)
    assert 0.4 < half["activation_bytes_per_image"] / one["activation_bytes_per_image"] < 0.8


@pytest.mark.parametrize("text, says", [("torchvision:resnet50,size=3", "none of img=N"), ("resnet50", "cannot read the model"),
                                        ("torchvision:resnet50,img=0", "none of img=N")])
def test_a_model_that_cannot_be_read_is_named(text, says):
    from stoker import UsageError

    with pytest.raises(UsageError, match=says):
        model_memory.find(text)


@pytest.mark.slow
def test_resnet_50_is_within_a_tenth_of_the_profiler_and_near_what_a_team_saw():
    make = lambda: resnet(3, 4, 6, 3)  # noqa: E731
    traced = model_memory.traced_step(make, 2, 96, "none", False, "sgd")
    assert traced["parameter_count"] == 25_557_032
    assert traced["peak"] == pytest.approx(peak_by_profiler(make, 2, 96, "none", "sgd"), rel=0.1)
    at_256 = model_memory.traced_step(make, 256, 224, "fp16", False, "sgd")["peak"]
    assert at_256 == pytest.approx(12.9e9, rel=0.15)


@pytest.fixture(scope="module")
def models():
    try:
        return model_memory.torchvision_models()
    except Exception as error:
        pytest.skip(f"torchvision: {error}")


@pytest.mark.slow
@pytest.mark.parametrize("amp, optimizer", [("none", "sgd"), ("bf16", "adam")])
@pytest.mark.parametrize("name, batch, size", [
    *((f"resnet{layers}", 8, 96) for layers in (18, 34, 50, 101, 152)), ("resnet50", 8, 160), ("mobilenet_v3_small", 8, 96),
    ("densenet121", 4, 64), ("efficientnet_b0", 4, 96), ("convnext_tiny", 2, 96), ("swin_t", 2, 96), ("vit_b_32", 4, 224)])
def test_models_of_torchvision_are_within_a_tenth_of_the_profiler(models, name, batch, size, amp, optimizer):
    make = lambda: models.get_model(name, weights=None)  # noqa: E731
    traced = model_memory.traced_step(make, batch, size, amp, False, optimizer)["peak"]
    assert traced == pytest.approx(peak_by_profiler(make, batch, size, amp, optimizer), rel=0.1)


@pytest.mark.slow
def test_torchvision_s_resnet_50_is_near_what_a_team_saw(models):
    found = model_memory.memory_of("torchvision:resnet50,img=224", "fp16")
    assert found["fixed_bytes"] + 256 * found["bytes_per_image"] == pytest.approx(12.9e9, rel=0.15)
