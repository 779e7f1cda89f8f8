"""Wrong words and wrong values: one sentence with the right ones."""

import re
import warnings

import pytest

import stoker


@pytest.mark.parametrize("options, words", [
    (dict(batch_size=0), "batch_size is a whole number from 1 to 100,000,000, not `0`"),
    (dict(batch_size=2.5), "batch_size"),
    (dict(seed=-1), "seed is a whole number from 0"),
    (dict(num_workers="all"), "auto or a whole number from 0 to 1,024, not `all`"),
    (dict(num_workers=-1), "from 0"),
    (dict(memory_limit="4 apples"), "apples"),
    (dict(memory_limit=-4), "such as 4GB"),
    (dict(color="rbg"), "rgb, gray, keep"),
    (dict(dtype="float"), "uint8, uint16, float16, bfloat16, float32"),
    (dict(layout="HWC"), "NCHW, NHWC, channels_last"),
    (dict(batch_size=2**70), "whole number"),
    (dict(prefetch_factor=2**70), "whole number"),
    (dict(output="tensorflow"), "auto, torch, numpy, jax, dlpack"),
    (dict(storage="directt"), "buffered, direct, mmap"),
    (dict(on_error="ignore"), "raise, skip, replace, zero"),
    (dict(decode="exactly"), "exact, fast, none"),
    (dict(last_batch="short"), "keep, drop, pad"),
    (dict(drop_last=True, last_batch="pad"), "contradict"),
    (dict(rank=0), "go together"),
    (dict(rank=2, world_size=2), "0 to world_size - 1"),
    (dict(timeout=-1), "timeout"),
    (dict(batch_size="4"), "batch_size is a whole number from 1 to 100,000,000, not the text `4`"),
    (dict(batch_size=4.0), "not `4.0`"),
    (dict(batch_size=True), "not `True`"),
    (dict(batch_size=None), "batch_size is a whole number"),
    (dict(shuffle="often"), "off, full, blocks, blocks:NEIGHBOURS:MIXED, nodes or nodes:COUNT"),
    (dict(max_errors=0), "a count from 1 or a share below 1"),
    (dict(max_errors=-2), "max_errors"),
    (dict(max_errors=1.5), "max_errors is a count from 1 or a share below 1, not `1.5`"),
    (dict(max_errors=float("inf")), "max_errors is a count"),
    (dict(max_errors="3"), "max_errors is a count"),
    (dict(io_depth=0), "io_depth"),
    (dict(inflate=0), "inflate"),
    (dict(batch_transform=3), "callable"),
    (dict(transform="rcc:224"), "rcc"),
    (dict(samples=[("a.jpg", 1)]), "not both"),
    (dict(device="cuda", output="numpy"), "torch tensors"),
])
def test_a_wrong_value_lists_the_right_ones(photos, options, words):
    with pytest.raises(ValueError, match=words) as caught:
        stoker.Loader(photos, **options)
    assert isinstance(caught.value, stoker.Error) and caught.value.kind == "usage"


def test_a_near_miss_is_offered(photos):
    with pytest.raises(ValueError) as caught:
        stoker.Loader(photos, storage="directt")
    assert caught.value.hint == "did you mean `direct`?" and caught.value.option == "storage"


@pytest.mark.parametrize("options", [dict(output="tensorflow"), dict(batch_transform=3), dict(batch_size="4"), dict(storage="ssd")])
def test_an_error_names_its_option(photos, options):
    with pytest.raises(ValueError) as caught:
        stoker.Loader(photos, **options)
    assert caught.value.option == next(iter(options))


def test_an_unknown_option_is_a_type_error_with_the_nearest_name(photos):
    with pytest.raises(TypeError, match="batchsize") as caught:
        stoker.Loader(photos, batchsize=4)
    assert "batch_size" in caught.value.hint


def test_options_are_keyword_only(photos):
    with pytest.raises(TypeError):
        stoker.Loader(photos, 4)


@pytest.mark.parametrize("word", ["collate_fn", "generator"])
def test_words_of_pytorch_that_would_change_batches_are_refused_with_the_remedy(photos, word):
    with pytest.raises(ValueError, match=word) as caught:
        stoker.Loader(photos, **{word: object()})
    assert caught.value.hint
    stoker.Loader(photos, **{word: None}).close()


@pytest.mark.parametrize("option", [dict(worker_init_fn=print), dict(multiprocessing_context="fork"), dict(in_order=False),
                                    dict(pin_memory_device="cuda"), dict(persistent_workers=False)])
def test_words_of_pytorch_without_meaning_are_noted_once(photos, option):
    with pytest.warns(stoker.Note, match=next(iter(option))) as caught:
        loader = stoker.Loader(photos, **option)
    assert len(caught) == 1 and len(caught[0].message.args[0].splitlines()) == 1
    assert caught[0].filename == __file__
    assert any(next(iter(option)) in note for note in loader.notes)


def test_values_that_say_what_happens_anyway_are_quiet(photos):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stoker.Loader(photos, in_order=True, persistent_workers=True, worker_init_fn=None, multiprocessing_context=None)


@pytest.mark.parametrize("source, words", [(None, "no source"), ([("a", 1)], "samples="), (7, "path")])
def test_a_source_of_the_wrong_kind_is_refused_with_the_remedy(source, words):
    with pytest.raises(ValueError) as caught:
        stoker.Loader(source)
    assert words in str(caught.value)


def test_a_missing_folder_is_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        stoker.Loader(tmp_path / "nowhere")
    assert isinstance(caught.value, stoker.Error) and caught.value.kind == "not_found"
    assert "nowhere" in str(caught.value) and isinstance(caught.value.hint, str)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(stoker.Error, match="(?s)" + str(tmp_path.name)):
        stoker.Loader(tmp_path)


def test_a_memory_limit_that_cannot_work_names_the_least_that_does(photos):
    asked = {"batch_size": 24, "transform": [stoker.Resize((224, 224)), stoker.ToFloat()]}
    with pytest.raises(stoker.Error, match=r"memory_limit .* is too small: .* at least .* \(\d+ bytes\)") as refused:
        stoker.Loader(photos, memory_limit=1000, **asked)
    least = int(re.search(r"\((\d+) bytes\)", str(refused.value))[1])
    with stoker.Loader(photos, memory_limit=least, **asked) as loader:
        next(iter(loader))


@pytest.mark.parametrize("label", [2**63, -2**63 - 1])
def test_an_integer_label_beyond_64_bits_is_refused_by_name(photos, label):
    with pytest.raises(ValueError, match=f"the label of sample 1 of samples=, {label}, is beyond the integers that fit 64 bits"):
        stoker.Loader(samples=[("a.jpg", 1), ("b.jpg", label)])
