"""Ranks that share a machine: their cores, their memory, and data that they hold once."""

import itertools
import json
import os
import subprocess
import sys

import numpy
import pytest

import stoker

LAUNCHERS = ("LOCAL_WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID",
             "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE", "SLURM_LOCALID", "SLURM_NODEID", "RANK", "WORLD_SIZE")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for name in LAUNCHERS:
        monkeypatch.delenv(name, raising=False)


def notes_of(path, **options):
    with stoker.Loader(path, batch_size=2, output="numpy", rank=0, world_size=1, **options) as loader:
        return [note for note in loader.notes if "share the machine" in note], loader.options


@pytest.mark.parametrize("size, rank", [("LOCAL_WORLD_SIZE", "LOCAL_RANK"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
                                        ("MPI_LOCALNRANKS", "MPI_LOCALRANKID")])
def test_ranks_divide_cores_and_memory_and_say_so(array, monkeypatch, size, rank):
    said, whole = notes_of(array(8))
    assert said == []
    monkeypatch.setenv(size, "1000")
    monkeypatch.setenv(rank, "7")
    said, share = notes_of(array(8))
    assert len(said) == 1 and said[0].startswith(f"1000 processes of this job share the machine ({size}=1000): this one has num_workers=1 and memory_limit")
    assert share["num_workers"] == 1 and share["memory_limit"] <= whole["memory_limit"]


def test_what_is_given_is_not_divided(array, monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_RANK", "0")
    said, options = notes_of(array(8), num_workers=3, memory_limit="64MB")
    assert said == [] and (options["num_workers"], options["memory_limit"]) == (3, 64_000_000)


RANK = """
import json, re, sys, warnings
import stoker
warnings.simplefilter("ignore", stoker.Note)
def memory():
    text = open("/proc/self/smaps").read()
    found = dict(shared=0, own=0)
    for block in re.split(r"\\n(?=[0-9a-f]+-[0-9a-f]+ )", text):
        pss = int(re.search(r"^Pss: +(\\d+) kB", block, re.M)[1]) * 1024
        found["shared" if "/memfd:stoker-ram-" in block.splitlines()[0] else "own"] += pss
    return found
loader = stoker.Loader(sys.argv[1], batch_size=4, shuffle=True, seed=1, num_workers=1, memory_limit="100MB", storage="ram", output="numpy",
                       transform=[stoker.PadOrTrim(1000)])
before = memory()
total = 0
for epoch in range(2):
    for data, _ in loader:
        total += int((data * 32768).astype("int64").sum())
print(json.dumps(dict(total=total, notes=list(loader.notes))), flush=True)
sys.stdin.readline()
print(json.dumps(dict(memory(), before=before)), flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def sounds(tmp_path_factory):
    """80 WAV files of 400 KB: 32 MB."""
    import wave

    folder = tmp_path_factory.mktemp("sounds")
    for number in range(80):
        with wave.open(str(folder / f"{number:02}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16000)
            file.writeframes(numpy.random.default_rng(number).integers(-20000, 20000, 200_000, numpy.int16).tobytes())
    return folder


def start_rank(program, folder, rank, ranks, job):
    return subprocess.Popen([sys.executable, "-c", program, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(ranks),
                                 "MASTER_PORT": f"{os.getpid()} {job}"})


def go_on(process):
    process.stdin.write("\n")
    process.stdin.flush()


def lists_left():
    """Files through which ranks of this user find the memory that they share. They are a few bytes each."""
    return {name: os.stat(f"/dev/shm/{name}").st_size for name in os.listdir("/dev/shm") if name.startswith(f"stoker-ram-{os.getuid()}-")}


def memory_of_ranks(folder, ranks):
    """What each rank tells when all of them have read everything twice."""
    started = [start_rank(RANK, folder, rank, ranks, "memory") for rank in range(ranks)]
    told = [json.loads(process.stdout.readline()) for process in started]
    for process in started:
        go_on(process)
    found = [json.loads(process.stdout.readline()) for process in started]
    for process in started:
        process.communicate("\n", timeout=60)
    return told, found


def test_four_ranks_hold_loose_files_once(sounds):
    data = sum(path.stat().st_size for path in sounds.iterdir())
    alone, one = memory_of_ranks(sounds, 1)
    before = set(lists_left())
    told, four = memory_of_ranks(sounds, 4)
    assert sum(rank["total"] for rank in told) == alone[0]["total"], "the ranks read other bytes"
    assert one[0]["shared"] == 0 and one[0]["own"] - one[0]["before"]["own"] > 0.8 * data
    assert 0.9 * data < sum(rank["shared"] for rank in four) < 1.1 * data
    assert max(rank["own"] - rank["before"]["own"] for rank in four) < 0.5 * data, "a rank holds a copy of its own"
    assert set(lists_left()) <= before, "nothing is left when all ranks have ended"
    assert not any("copy of its own" in note for rank in told for note in rank["notes"])


ONE_BY_ONE = """
import json, sys, warnings
import stoker
warnings.simplefilter("ignore", stoker.Note)
loader = stoker.Loader(sys.argv[1], batch_size=1, shuffle=True, seed=1, num_workers=1, memory_limit="100MB", storage="ram", output="numpy",
                       transform=[stoker.PadOrTrim(1000)])
for epoch in range(3):
    for found in loader:
        print(json.dumps([(int(found.ids[0]), int((found[0] * 32768).astype("int64").sum()))]), flush=True)
        if epoch == 0:
            sys.stdin.readline()
"""


def test_ranks_that_are_killed_while_they_fill_leave_the_rest_right(sounds):
    """Rank 1 fills and is killed; a new rank 1 comes late and is killed too; rank 0 reads the right bytes throughout."""
    with stoker.Loader(sounds, batch_size=1, output="numpy", rank=0, world_size=1, transform=[stoker.PadOrTrim(1000)]) as loader:
        right = {int(found.ids[0]): int((found[0] * 32768).astype("int64").sum()) for found in loader}
    first = start_rank(ONE_BY_ONE, sounds, 0, 2, "killed")
    seen = json.loads(first.stdout.readline())
    for steps in (1, 5, 17):
        other = start_rank(ONE_BY_ONE, sounds, 1, 2, "killed")
        for _ in range(steps):
            seen += json.loads(other.stdout.readline())
            go_on(other)
        other.kill()
        other.communicate()
    answer, _ = first.communicate("\n" * 100, timeout=60)
    assert first.returncode == 0
    seen += sum(map(json.loads, answer.splitlines()), [])
    assert len(seen) == 3 * 40 + 1 + 5 + 17 and all(right[sample] == total for sample, total in seen)


def test_what_a_killed_job_leaves_is_a_few_bytes_and_the_next_job_removes_them(sounds):
    before = set(lists_left())
    rank = start_rank(ONE_BY_ONE, sounds, 0, 2, "left")
    rank.stdout.readline()
    rank.kill()
    rank.communicate()
    left = {name: size for name, size in lists_left().items() if name not in before}
    assert len(left) == 1 and sum(left.values()) < 100
    start_rank(ONE_BY_ONE, sounds, 0, 2, "next").communicate("\n" * 100, timeout=60)
    assert not left.keys() & lists_left().keys()


@pytest.fixture
def two_ranks(monkeypatch):
    for name, value in dict(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_WORLD_SIZE="2", MASTER_PORT=f"{os.getpid()} one").items():
        monkeypatch.setenv(name, value)


def values_of(loader):
    return sorted(float(value) for data, _ in loader for value in data[:, 0])


def test_files_of_other_folders_or_times_are_not_mistaken_for_these(tmp_path, two_ranks):
    """Same names, sizes and job; in one process, as when a rank opens two folders before the other rank comes."""
    def write(name, value):
        (tmp_path / name).mkdir(exist_ok=True)
        for number in range(6):
            numpy.save(tmp_path / name / f"{number}.npy", numpy.full(2000, value + number, numpy.float32))
        return tmp_path / name

    def open_loader(path):
        return stoker.Loader(path, batch_size=2, num_workers=1, storage="ram", memory_limit="64MB", output="numpy")

    with open_loader(write("a", 0)) as a, open_loader(write("b", 100)) as b:
        for _ in range(2):
            assert values_of(a) == [0, 1, 2, 3, 4, 5] and values_of(b) == [100, 101, 102, 103, 104, 105]
        with open_loader(write("a", 200)) as changed:
            for _ in range(2):
                assert values_of(changed) == [200, 201, 202, 203, 204, 205]


def test_a_rank_whose_neighbours_never_come_holds_everything_if_it_has_room(sounds, two_ranks):
    data = sum(path.stat().st_size for path in sounds.iterdir())
    options = dict(batch_size=4, num_workers=1, storage="ram", output="numpy", transform=[stoker.PadOrTrim(1000)])
    for limit, least, most in (("200MB", data, data), ("20MB", 0, 20_000_000)):
        with stoker.Loader(sounds, memory_limit=limit, **options) as loader:
            for _ in range(2):
                for _ in loader:
                    pass
            assert least <= loader.stats()["ram_bytes"] <= most


def ids_of_ranks(path, ranks, local, state=None, steps=10**9, epochs=1, monkeypatch=None, shuffle="nodes"):
    """What each rank sees in each epoch, and the state after that. `local` ranks share a node."""
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(local))
    seen, states = [], []
    for rank in range(ranks):
        monkeypatch.setenv("LOCAL_RANK", str(rank % local))
        with stoker.Loader(path, batch_size=3, shuffle=shuffle, seed=5, num_workers=1, output="numpy", rank=rank, world_size=ranks) as loader:
            if state is not None:
                loader.load_state_dict(state)
            seen.append([[int(one) for found in itertools.islice(loader, steps) for one in found.ids] for _ in range(epochs)])
            states.append(json.dumps(loader.state_dict()))
            notes = list(loader.notes)
    assert len(set(states)) == 1
    return seen, json.loads(states[0]), notes


def test_samples_stay_on_their_node_in_every_epoch(array, monkeypatch):
    seen, state, notes = ids_of_ranks(array(120), 4, 2, epochs=4, monkeypatch=monkeypatch)
    nodes = [{one for rank in node for epoch in rank for one in epoch} for node in (seen[:2], seen[2:])]
    assert len(nodes[0]) == len(nodes[1]) == 60 and not nodes[0] & nodes[1]
    assert seen[0][0] != seen[0][1], "each epoch mixes them anew"
    assert any("each of 2 nodes (LOCAL_WORLD_SIZE=2) mixes samples of its own, 6 of each step" in note for note in notes)
    assert state["shuffle"] == "nodes:2:6" and state["epoch"] == 4


def test_nodes_that_come_and_go_see_every_sample_once(array, monkeypatch):
    """An epoch that another number of nodes continues keeps its order; the next one has that of the nodes there are."""
    begun, state, _ = ids_of_ranks(array(121), 4, 2, steps=3, monkeypatch=monkeypatch)
    rest, after, notes = ids_of_ranks(array(121), 3, 1, state, monkeypatch=monkeypatch)
    assert sorted(one for rank in begun + rest for one in rank[0]) == list(range(121))
    assert any("epoch 0 goes on in the order of the saved state, shuffle='nodes:2:6'" in note for note in notes)
    assert (after["shuffle"], after["epoch"]) == ("nodes:3:3", 1)
    following, _, notes = ids_of_ranks(array(121), 3, 1, after, monkeypatch=monkeypatch)
    assert following == ids_of_ranks(array(121), 3, 1, {**after, "shuffle": "nodes:2:6"}, monkeypatch=monkeypatch)[0]
    assert not any("goes on" in note for note in notes)


def test_nodes_of_unequal_ranks_are_refused(array, monkeypatch):
    with pytest.raises(stoker.UsageError, match="6 ranks, of which 4 share this one \\(LOCAL_WORLD_SIZE=4\\)"):
        ids_of_ranks(array(40), 6, 4, monkeypatch=monkeypatch)
    with pytest.raises(stoker.UsageError, match="cannot share 6 ranks among 4 nodes"):
        ids_of_ranks(array(40), 6, 1, shuffle="nodes:4", monkeypatch=monkeypatch)
