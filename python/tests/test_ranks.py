"""Which rank a loader takes, and when. Stand-ins for launchers: the variables they set, and processes that meet later."""

import re
import subprocess
import sys
import textwrap
import warnings

import pytest
from conftest import rows

import stoker

ALL = ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_JOB_ID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
       "PMI_RANK", "PMI_SIZE")


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    """``variables(RANK=1, ...)``: what a launcher sets, and nothing else."""

    def set_to(**values):
        for name in ALL:
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, str(value))

    set_to()
    return set_to


def load(path, **options):
    return stoker.Loader(path, output="numpy", **{"batch_size": 3, "num_workers": 1, **options})


def quietly(call, loader):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stoker.Note)
        return call(loader)


TORCHRUN = ("RANK", "WORLD_SIZE", "torchrun")
SLURM = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "a Slurm step")
OPEN_MPI = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI")
MPICH = ("PMI_RANK", "PMI_SIZE", "MPICH or Intel MPI")


@pytest.mark.parametrize("rank_name, size_name, launcher", [TORCHRUN, SLURM, OPEN_MPI, MPICH])
def test_a_launchers_variables_share_out_the_samples(array, variables, rank_name, size_name, launcher):
    seen = []
    for rank in range(2):
        variables(**{rank_name: rank, size_name: 2})
        with load(array(20)) as loader, pytest.warns(stoker.Note) as said:
            seen += rows(loader)
            assert len(loader) == 4
            rows(loader)
            text = f"rank={rank}, world_size=2 were taken from {rank_name} and {size_name} ({launcher})"
            assert [str(note.message) for note in said] == [text] and said[0].filename.endswith("conftest.py")
            assert text in loader.notes and (loader.options["rank"], loader.options["world_size"]) == (rank, 2)
    assert sorted(seen) == list(range(20))


def test_a_slurm_job_outside_of_a_step_is_one_process(array, variables):
    variables(SLURM_JOB_ID=7, SLURM_NTASKS=4, SLURM_PROCID=0)
    with load(array(20)) as loader, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(rows(loader)) == 20


def test_torchrun_inside_a_slurm_step_decides(array, variables):
    variables(RANK=3, WORLD_SIZE=4, SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=2)
    with load(array(20)) as loader:
        assert quietly(len, loader) == 2
        assert (loader.options["rank"], loader.options["world_size"]) == (3, 4)


def test_the_rank_is_taken_when_it_is_first_needed(array, variables):
    with load(array(20)) as loader:
        variables(RANK=1, WORLD_SIZE=2)
        assert loader.options["rank"] is None and loader.options["world_size"] is None and "rank=" not in repr(loader)
        assert loader.num_samples == 20 and loader.epoch == 0 and loader.state_dict()["position"] == 0
        assert quietly(len, loader) == 4
        assert "rank=1 of 2" in repr(loader)
        variables(RANK=0, WORLD_SIZE=1)
        assert len(rows(loader)) == 10  # what was taken stays


def test_what_was_set_before_the_rank_was_known_is_kept(array, variables):
    with load(array(24), rank=0, world_size=1) as loader:
        next(iter(loader))
        state = loader.state_dict()
    seen = []
    for rank in range(2):
        variables()
        with load(array(24)) as loader:
            loader.load_state_dict(state)
            loader.set_num_workers(2)
            variables(RANK=rank, WORLD_SIZE=2)
            seen += quietly(rows, loader)
            assert loader.options["num_workers"] == 2
    assert sorted(seen) == list(range(3, 24))


def test_arguments_decide_and_one_of_one_opts_out(array, variables):
    variables(RANK=1, WORLD_SIZE=2)
    with load(array(20), rank=0, world_size=1) as loader, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(rows(loader)) == 20


@pytest.mark.parametrize("values, words", [
    (dict(RANK="one", WORLD_SIZE=2), "RANK=one, which is not a whole number"),
    (dict(RANK="-1", WORLD_SIZE=2), "RANK=-1, which is not a whole number"),
    (dict(RANK=2, WORLD_SIZE=2), "RANK=2 does not fit WORLD_SIZE=2"),
    (dict(SLURM_PROCID=0, SLURM_STEP_NUM_TASKS=0), "SLURM_PROCID=0 does not fit SLURM_STEP_NUM_TASKS=0")])
def test_variables_that_make_no_sense_are_refused_by_name(array, variables, values, words):
    variables(**values)
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        len(load(array(20)))
    assert "rank= and world_size=" in caught.value.hint


def test_a_world_size_without_a_rank_is_mentioned(array, variables):
    variables(WORLD_SIZE=4)
    with load(array(20)) as loader, pytest.warns(stoker.Note, match="WORLD_SIZE=4 is set, but RANK is not"):
        assert len(rows(loader)) == 20
    variables(RANK=1)
    with load(array(20)) as loader, pytest.warns(stoker.Note, match="RANK=1 is set, but WORLD_SIZE is not"):
        assert len(rows(loader)) == 20


@pytest.mark.parametrize("options, empty", [({}, 3), ({"last_batch": "drop"}, 0), ({"last_batch": "pad"}, 0), ({"batch_size": 3}, 0)])
def test_a_rank_that_gets_no_row_in_the_last_step_is_told_so(array, options, empty):
    sizes, notes = [], []
    for rank in range(4):
        with load(array(17), rank=rank, world_size=4, **{"batch_size": 4, **options}) as loader:
            sizes.append([len(batch.ids) for batch in loader][-1])
            notes.append([note for note in loader.notes if "a batch of no rows" in note])
    assert sizes.count(0) == empty
    assert notes == 4 * [[f"the last step of an epoch has 1 sample for 4 ranks: {empty} of them get a batch of no rows, and a mean over it is not a number; "
                          "last_batch=\"drop\" or last_batch=\"pad\" avoids that"] if empty else []]


# ---- a process group that is made later

GROUP = """
    import sys, warnings
    import stoker
    path, store, rank, world = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    def start(rank=rank, world=world):
        import torch
        torch.distributed.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=world)
    loader = stoker.Loader(path, batch_size=3, num_workers=1, output="numpy", shuffle=True, seed=5)
"""


@pytest.fixture
def run_group(tmp_path):
    """Runs a program in two processes at once; returns what each printed."""
    pytest.importorskip("torch")
    groups = iter(range(100))

    def run(program, path):
        store = tmp_path / f"store{next(groups)}"
        started = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(GROUP) + textwrap.dedent(program), path, store, str(rank), "2"],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(2)]
        try:
            said = [process.communicate(timeout=120) for process in started]
        finally:
            for process in started:
                process.kill()
        for process, (out, err) in zip(started, said):
            assert process.returncode == 0, out + err
        return [out for out, _ in said]

    return run


def test_a_group_made_after_the_loader_shares_out_the_samples(array, run_group):
    out = run_group("""
        state = loader.state_dict()
        loader.load_state_dict(state)
        start()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            steps = len(loader)
            ids = [int(i) for epoch in range(2) for batch in loader for i in batch.ids]
        assert [str(w.message) for w in caught] == [f"rank={rank}, world_size=2 were taken from torch.distributed"], caught
        print(steps, *ids)
    """, array(20))
    (steps, *first), (other_steps, *second) = ([int(word) for word in text.split()] for text in out)
    assert steps == other_steps == 4 and sorted(first + second) == sorted(2 * list(range(20)))


@pytest.mark.parametrize("early", ["len(loader)", "next(iter(loader))", "iter(loader)"])
def test_a_group_that_disagrees_with_what_was_taken_is_an_error(array, run_group, early):
    out = run_group(f"""
        {early}
        start()
        for attempt in (iter, len):
            try:
                attempt(loader)
            except stoker.Error as error:
                print(error.kind, error.message)
                assert "init_process_group" in error.hint
    """, array(20))
    for rank in range(2):
        assert out[rank].splitlines() == 2 * [
            f"usage this loader took rank 0 of 1, but torch.distributed now says rank {rank} of 2: ranks would train on the same samples"]


def test_a_group_that_agrees_with_torchruns_variables_changes_nothing(array, run_group):
    out = run_group("""
        import os
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(world))
        warnings.simplefilter("ignore")
        first = [int(i) for batch in loader for i in batch.ids]
        start()
        print(*first, *(int(i) for batch in loader for i in batch.ids))
    """, array(20))
    assert sorted(int(word) for text in out for word in text.split()) == sorted(2 * list(range(20)))


def test_arguments_are_not_checked_against_the_group(array, run_group):
    out = run_group("""
        own = stoker.Loader(path, batch_size=3, num_workers=1, output="numpy", rank=0, world_size=1)
        len(own)
        start()
        print(sum(len(batch.ids) for batch in own))
    """, array(20))
    assert out == ["20\n", "20\n"]


# ---- ranks that were started with different settings

@pytest.mark.parametrize("differs, words", [
    ("seed=rank", "seed is {} here and {} there"),
    ("batch_size=3 + rank", "batch_size is {} here and {} there"),
    ("subset=20 - rank", "the number of samples is {} here and {} there")])
def test_ranks_that_do_not_agree_are_told_so_by_name(array, run_group, differs, words):
    out = run_group(f"""
        warnings.simplefilter("ignore")
        start()
        other = stoker.Loader(path, output="numpy", num_workers=1, shuffle=True, **{{"batch_size": 3, **dict({differs})}})
        try:
            print(sum(1 for _ in other) and "ran")
        except stoker.Error as error:
            print(error.message)
            assert "same data, seed, batch_size and state" in error.hint
        torch = sys.modules["torch"]
        torch.distributed.barrier()
    """, array(20))
    ran, refused = sorted(out, key=lambda text: text != "ran\n")  # the one that came first found nothing to compare with
    assert ran == "ran\n"
    assert refused.startswith(("rank 0 and rank 1 do not agree", "rank 1 and rank 0 do not agree")) and words.split("{}")[0] in refused


def test_a_rank_that_did_not_load_the_state_is_found(array, run_group):
    out = run_group("""
        warnings.simplefilter("ignore")
        start()
        if rank == 1:
            loader.load_state_dict({**loader.state_dict(), "epoch": 2})
        try:
            print(len(list(loader)) and "ran")
        except stoker.Error as error:
            print(error.message)
        sys.modules["torch"].distributed.barrier()
    """, array(20))
    assert sorted(text == "ran\n" for text in out) == [False, True]
    assert any("the epoch is" in text for text in out)


def test_ranks_with_loaders_of_their_own_wait_for_nobody(array, run_group):
    out = run_group("""
        warnings.simplefilter("ignore")
        start()
        if rank == 0:
            extra = stoker.Loader(path, batch_size=7, num_workers=1, output="numpy")
            assert len(list(extra)) == 2
        own = stoker.Loader(path, batch_size=3 + rank, num_workers=1, output="numpy", rank=0, world_size=1)
        print(sum(len(batch.ids) for batch in own), sum(len(batch.ids) for batch in loader))
    """, array(20))
    assert out == ["20 11\n", "20 9\n"] or out == ["20 10\n", "20 10\n"]
