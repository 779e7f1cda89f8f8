"""What transform= takes, without running anything."""

import json

import pytest
from stoker.transforms import compile_steps, compile_transform

import stoker


def fake(name, **attributes):
    """An object that looks like one of torchvision's."""
    kind = type(name, (), {"__module__": "torchvision.transforms.transforms", "__call__": lambda self, x: x})
    operation = kind()
    operation.__dict__.update(attributes)
    return operation


def operations(transform):
    return json.loads(compile_transform(transform))


def test_operations_cross_to_the_engine_with_its_field_names():
    assert operations([stoker.RandomResizedCrop(224), stoker.Resize(256), stoker.Resize((3, 5), "nearest")]) == [
        {"op": "RandomResizedCrop", "height": 224, "width": 224, "scale_min": 0.08, "scale_max": 1.0,
         "ratio_min": 0.75, "ratio_max": 4 / 3, "filter": "bilinear"},
        {"op": "Resize", "height": 256, "width": 0, "filter": "bilinear"},
        {"op": "Resize", "height": 3, "width": 5, "filter": "nearest"}]


def test_normalize_knows_imagenet():
    assert operations(stoker.Normalize("imagenet"))[0]["mean"] == [0.485, 0.456, 0.406]
    assert operations(stoker.Normalize(0.5, 0.25)) == [{"op": "Normalize", "mean": [0.5], "std": [0.25]}]


def test_a_window_is_fixed_or_a_range_and_leaves_the_offset_to_the_index():
    assert operations(stoker.Window(level=40, width=(300, 400))) == [
        {"op": "Window", "level_min": 40.0, "level_max": 40.0, "width_min": 300.0, "width_max": 400.0}]
    assert operations(stoker.Window(offset=32768))[0]["offset"] == 32768.0


def test_views_are_groups_in_the_order_given():
    views = stoker.Views(big=(2, [stoker.RandomResizedCrop(32)]), small=(8, stoker.RandomResizedCrop(16)))
    groups = operations(views)[0]["groups"]
    assert [(group["name"], group["count"], group["ops"][0]["height"]) for group in groups] == [("big", 2, 32), ("small", 8, 16)]


def test_the_engine_accepts_every_operation():
    from stoker import _engine

    pictures = [stoker.Resize(40), stoker.CenterCrop((30, 20)), stoker.HorizontalFlip(0.3), stoker.ToFloat()]
    for transform in (pictures, [stoker.Window(), stoker.RandomResizedCrop((8, 9), (0.2, 0.9), (1, 2), "bicubic")],
                      [stoker.Mono(), stoker.Resample(8000), stoker.PadOrTrim(100)], [stoker.Normalize("imagenet")],
                      [stoker.Views(a=(1, pictures), b=(3, [stoker.RandomResizedCrop(8)]))]):
        text = compile_transform(transform)
        short = _engine.transform_text(text)
        assert _engine.transform_text(short) == short


def test_a_torchvision_compose_is_translated():
    compose = fake("Compose", transforms=[
        fake("RandomResizedCrop", size=(224, 224), scale=(0.08, 1.0), ratio=(0.75, 4 / 3), interpolation=fake("Mode", value="bicubic")),
        fake("RandomHorizontalFlip", p=0.5), fake("ToTensor"), fake("Normalize", mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])])
    assert operations(compose) == operations([
        stoker.RandomResizedCrop(224, interpolation="bicubic"), stoker.HorizontalFlip(), stoker.Normalize("imagenet")])


def test_torchvision_itself_is_translated():
    try:
        from torchvision.transforms import v2
    except Exception as error:  # an unfitting build raises RuntimeError
        pytest.skip(f"torchvision: {error}")
    import torch

    compose = v2.Compose([v2.RandomResizedCrop(32), v2.RandomHorizontalFlip(0.3), v2.ToImage(), v2.ToDtype(torch.float32, scale=True),
                          v2.Normalize((0.5,), (0.5,))])
    assert operations(compose) == operations([stoker.RandomResizedCrop(32), stoker.HorizontalFlip(0.3), stoker.Normalize([0.5], [0.5])])


def test_an_unknown_torchvision_operation_is_refused_by_name():
    with pytest.raises(stoker.UsageError, match="ElasticTransform") as caught:
        compile_transform(fake("Compose", transforms=[fake("Resize", size=9), fake("ElasticTransform", alpha=50.0)]))
    assert "RandomResizedCrop" in caught.value.hint
    assert "elastictransform" not in caught.value.hint, "a hint names no function that nobody has written"
    with pytest.raises(stoker.UsageError, match="max_size"):
        compile_transform(fake("Resize", size=9, max_size=20))


def test_operations_of_torchaudio_are_refused_with_ours():
    for name, words in (("MelSpectrogram", "write stoker.MelSpectrogram"), ("PitchShift", "a function of your own")):
        operation = type(name, (), {"__module__": "torchaudio.transforms._transforms", "__call__": abs})()
        with pytest.raises(stoker.UsageError, match=f"torchaudio's {name} is not translated") as caught:
            compile_steps([stoker.Mono(), operation])
        assert words in caught.value.hint


def test_callables_stand_next_to_each_other():
    def brighten(data):
        return data

    before, callables, after = compile_steps([stoker.Resize(9), brighten, stoker.Normalize("imagenet")])
    assert json.loads(before)[0]["op"] == "Resize" and callables == [brighten] and json.loads(after)[0]["op"] == "Normalize"
    assert compile_steps(brighten) == ("[]", [brighten], "[]")
    with pytest.raises(stoker.UsageError, match="brighten stands behind operations"):
        compile_steps([brighten, stoker.Resize(9), brighten])


@pytest.mark.parametrize("make, words", [
    (lambda: stoker.RandomResizedCrop(0), "size is a whole number"),
    (lambda: stoker.RandomResizedCrop((1, 2, 3)), "height, width"),
    (lambda: stoker.RandomResizedCrop(9, scale=(1, 0.1)), "scale is"),
    (lambda: stoker.Resize(9, interpolation="cubic"), "bilinear, bicubic, nearest, box, lanczos"),
    (lambda: stoker.HorizontalFlip(2), "probability"),
    (lambda: stoker.Normalize("imagnet"), "imagenet"),
    (lambda: stoker.Normalize(0.5), "std is missing"),
    (lambda: stoker.Normalize((1, 2), (1,)), "2 channels and std has 1"),
    (lambda: stoker.Normalize(0.5, 0), "above 0"),
    (lambda: stoker.Window(width=0), "above 0"),
    (lambda: stoker.Window(level="soft"), "numbers|number"),
    (lambda: stoker.PadOrTrim(1.5), "whole number"),
    (lambda: stoker.Views(), "no group"),
    (lambda: stoker.Views(big=[stoker.Resize(4)]), "count"),
    (lambda: stoker.Views(big=(2, [len])), "not an operation"),
    (lambda: compile_transform([stoker.Resize]), "write Resize"),
    (lambda: compile_transform(["CentreCrop"]), "text inside a list"),
    (lambda: compile_transform(7), "not an operation"),
])
def test_a_wrong_argument_is_refused_with_the_right_form(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_operations_compare_and_print():
    assert stoker.Resize(9) == stoker.Resize(9) != stoker.Resize(8)
    assert len({stoker.Resize(9), stoker.Resize(9), stoker.CenterCrop(9)}) == 2
    assert repr(stoker.HorizontalFlip(0.25)) == "HorizontalFlip(p=0.25)"
