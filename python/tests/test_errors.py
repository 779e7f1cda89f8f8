"""Bad samples: policies, the list, what is raised; and what can be read off a loader."""

import csv
import json
import os
import pickle

import pytest
from conftest import picture

import stoker


@pytest.fixture
def damaged(tmp_path):
    """Twelve pictures; 3 is empty, 7 is garbage."""
    for number in range(12):
        picture(number).save(tmp_path / f"{number:02}.jpg")
    (tmp_path / "03.jpg").write_bytes(b"")
    (tmp_path / "07.jpg").write_bytes(b"not a picture at all" * 20)
    return tmp_path


def load(path, **options):
    return stoker.Loader(path, **{"output": "numpy", "batch_size": 4, "copy": True, **options})


def test_raise_names_the_file_and_the_cause(damaged):
    with load(damaged) as loader, pytest.raises(stoker.Error, match="03.jpg") as caught:
        list(loader)
    assert caught.value.kind == "corrupt" and not isinstance(caught.value, ValueError)


def test_skip_shortens_the_batch(damaged):
    with load(damaged, on_error="skip") as loader:
        batches = list(loader)
        assert [batch.size for batch in batches] == [3, 3, 4] and [len(batch.data) for batch in batches] == [3, 3, 4]
        assert [error.name for error in loader.errors] == ["03.jpg", "07.jpg"]
        assert all(error.stage in ("read", "decode") and error.cause and error.action == "skip" for error in loader.errors)
        assert "07.jpg" in str(loader.errors[1])


def test_a_batch_of_bad_samples_alone_is_empty(tmp_path, damaged):
    samples = [(damaged / "00.jpg", 0), (damaged / "03.jpg", 1), (damaged / "07.jpg", 2)]
    with load(None, samples=samples, on_error="skip", batch_size=1) as loader:
        assert [batch.data.shape for batch in loader] == [(1, 3, 40, 48), (0, 3, 40, 48), (0, 3, 40, 48)]


def test_zero_keeps_the_row_and_marks_it(damaged):
    with load(damaged, on_error="zero") as loader:
        batch = next(iter(loader))
        assert batch.valid.tolist() == [True, True, True, False] and not batch.data[3].any()


def test_replace_takes_the_same_sample_each_time(damaged):
    def names():
        with load(damaged, on_error="replace", shuffle=True, seed=5) as loader:
            return [name for batch in loader for name in batch.names]

    assert names() == names() and len(names()) == 12 and not {"03.jpg", "07.jpg"} & set(names())


def test_too_many_errors_end_the_run(damaged):
    with load(damaged, on_error="skip", max_errors=1) as loader, pytest.raises(stoker.Error, match="max_errors|errors"):
        list(loader)
    with load(damaged, on_error="skip", max_errors=2) as loader:
        assert len(list(loader)) == 3


def test_errors_are_saved_whole_and_not_overwritten(damaged, tmp_path):
    with load(damaged, on_error="skip") as loader:
        list(loader)
        errors = loader.errors
    errors.to_csv(tmp_path / "errors.csv")
    with open(tmp_path / "errors.csv", newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["03.jpg", "07.jpg"]
    with pytest.raises(ValueError, match="it exists"):
        errors.to_csv(tmp_path / "errors.csv")
    errors.save(tmp_path / "errors.csv", force=True)
    errors.save(tmp_path / "errors.json")
    assert [error["name"] for error in json.loads((tmp_path / "errors.json").read_text())] == ["03.jpg", "07.jpg"]
    with pytest.raises(ValueError, match="ends in"):
        errors.save(tmp_path / "errors.txt")
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


def test_errors_are_also_the_builtins_and_carry_kind_and_hint():
    from stoker.errors import from_engine

    for kind, builtin in [("usage", ValueError), ("not_found", FileNotFoundError), ("permission", PermissionError), ("corrupt", Exception)]:
        error = from_engine(kind, "cannot do it", "do something else", "on_error")
        assert isinstance(error, (builtin,)) and isinstance(error, stoker.Error)
        assert (error.kind, error.hint, error.message) == (kind, "do something else", "cannot do it")
        assert str(error) == "cannot do it\n  hint: do something else"
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error) and (again.kind, again.option) == (kind, "on_error")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_folder_is_a_permission_error(tmp_path):
    (tmp_path / "shut").mkdir(mode=0)
    with pytest.raises(PermissionError):
        stoker.Loader(tmp_path / "shut")


def test_a_vanished_file_is_named(damaged):
    with load(damaged, on_error="skip", prefetch_factor=1) as loader:
        os.unlink(damaged / "11.jpg")
        list(loader)
        assert [error.name for error in loader.errors] == ["03.jpg", "07.jpg", "11.jpg"]
        assert loader.errors[2].stage == "read"


def test_stats_and_summary_speak_plain_words(photos):
    with stoker.Loader(photos, batch_size=4, output="numpy") as loader:
        assert loader.summary() == "no batch was taken yet"
        for _ in loader:
            pass
        stats = loader.stats()
        assert stats["samples"] == 24 and stats["batches"] == 6 and stats["errors"] == 0
        assert set(stats["wait"]) == {"fetch_s", "prep_s", "handoff_s"} and stats["python_s"] == 0
        assert 0 < stats["memory_peak"] <= stats["memory_limit"] and stats["first_batch_s"] > 0
        first, second = loader.summary().splitlines()
        assert stats["verdict"]["bound"] in first and "%" in first and "prep" in first and "python" not in first
        assert "samples/s" in second and "memory peak" in second and second.endswith("0 errors")
    assert json.dumps(loader.stats())
    assert "24 samples" in repr(loader) and "closed" in repr(loader)


def test_the_summary_counts_one_worker_in_the_singular(photos):
    with stoker.Loader(photos, batch_size=4, num_workers=1, output="numpy") as loader:
        next(iter(loader))
        assert " 1 worker; " in loader.summary()


def test_bound_words_agree_with_the_general_ones(photos):
    from stoker.summary import judged as judged_counters

    def judged(compute, python, **wait):
        return judged_counters({"compute_s": compute, "python_s": python, "wait_s": sum(wait.values()), "wait": wait})

    assert judged(6, 0, fetch_s=0, prep_s=4, handoff_s=0)["bound"] == "prep_bound"
    assert judged(6, 0, fetch_s=0, prep_s=4, handoff_s=0)["general"] == "io_bound"
    assert judged(6, 4, fetch_s=0, prep_s=0, handoff_s=0)["bound"] == "python_bound"
    assert judged(9, 0.1, fetch_s=0, prep_s=0, handoff_s=0)["bound"] == "compute_bound"
