"""Jobs whose number of ranks changes while they run: kills, checkpoints and resumes with other world sizes."""

import collections
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time

import pytest

EPOCHS, SAMPLES, BATCH = 3, 103, 3

WORKER = """
import json, os, sys, warnings
import stoker
warnings.simplefilter("ignore", stoker.Note)
path, checkpoint, epochs, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
loader = stoker.Loader(path, batch_size=batch, shuffle=True, seed=7, num_workers=1, output="numpy")
if os.path.exists(checkpoint):
    loader.load_state_dict(json.load(open(checkpoint)))
def tell(**what):
    print(json.dumps(what), flush=True)
    if not sys.stdin.readline():
        sys.exit(3)
for epoch in range(loader.epoch, epochs):
    for found in loader:
        tell(epoch=epoch, ids=[int(one) for one in found.ids], state=loader.state_dict())
    tell(epoch=epoch, ids=None, state=loader.state_dict())
"""


class World:
    """The ranks of one launch. They go step by step: each tells its batch and waits, as for an all-reduce."""

    def __init__(self, path, checkpoint, size, epochs):
        self.ranks = [subprocess.Popen([sys.executable, "-c", WORKER, str(path), str(checkpoint), str(epochs), str(BATCH)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank),
                                            "LOCAL_WORLD_SIZE": str(size)}) for rank in range(size)]

    def step(self):
        """What each rank tells next; None when all have ended."""
        told = []
        for rank in self.ranks:
            assert select.select([rank.stdout], [], [], 60)[0], "a rank hangs"
            told.append(rank.stdout.readline())
        if not any(told):
            assert [rank.wait(60) for rank in self.ranks] == [0] * len(self.ranks), self.ranks[0].stderr.read()
            return None
        assert all(told), [rank.communicate()[1] for rank in self.ranks if rank.poll() is not None]
        return [json.loads(line) for line in told]

    def go_on(self):
        for rank in self.ranks:
            rank.stdin.write("\n")
            rank.stdin.flush()

    def end(self, how):
        for rank in self.ranks:
            rank.send_signal(how)
        for rank in self.ranks:
            rank.communicate(timeout=60)


def every_sample_once(path, checkpoint, seed, sizes, epochs=EPOCHS, most_steps=20):
    """Launches worlds of these sizes in turn; all but the last are killed at a random step. Returns how many were killed."""
    chance, kills = random.Random(seed), 0
    committed = [collections.Counter() for _ in range(epochs)]
    for number, size in enumerate(sizes):
        world, waiting = World(path, checkpoint, size, epochs), []
        last_step = chance.randrange(1, most_steps) if number + 1 < len(sizes) else 10**9
        for step in range(10**9):
            told = world.step()
            if told is None:
                break
            assert len({(one["epoch"], one["ids"] is None) for one in told}) == 1, "ranks have unequal steps"
            assert len({json.dumps(one["state"]) for one in told}) == 1, "ranks would save different states"
            waiting += [(one["epoch"], sample) for one in told for sample in one["ids"] or ()]
            if chance.random() < 0.5 or told[0]["ids"] is None:  # a checkpoint; what comes behind it is lost in a kill
                checkpoint.with_suffix(".new").write_text(json.dumps(told[0]["state"]))
                checkpoint.with_suffix(".new").replace(checkpoint)
                for epoch, sample in waiting:
                    committed[epoch][sample] += 1
                waiting = []
            if step == last_step:
                kills += 1
                world.end(signal.SIGKILL)
                break
            world.go_on()
        else:
            world.end(signal.SIGKILL)
    for epoch, seen in enumerate(committed):
        assert len(seen) == SAMPLES and set(seen.values()) == {1}, f"epoch {epoch}: {seen.most_common(3)} of {len(seen)} samples"
    return kills


def test_worlds_of_4_2_and_4_ranks_see_every_sample_once(array, tmp_path):
    assert every_sample_once(array(SAMPLES), tmp_path / "state.json", 1, (4, 2, 4)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 21))
def test_worlds_of_any_size_see_every_sample_once(array, tmp_path, seed):
    sizes = random.Random(seed).choices((1, 2, 3, 4, 5), k=5)
    assert every_sample_once(array(SAMPLES), tmp_path / "state.json", seed, sizes) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_4_and_2_ranks_in_turn_with_10_kills_see_every_sample_once(array, tmp_path, seed):
    assert every_sample_once(array(SAMPLES), tmp_path / "state.json", seed, (4, 2) * 5 + (4,), epochs=8, most_steps=10) == 10


TORCHRUN = """
import json, os, signal, sys, warnings
import torch, stoker
warnings.simplefilter("ignore", stoker.Note)
path, folder = sys.argv[1:]
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
loader = stoker.Loader(path, batch_size=3, shuffle=True, seed=7, output="torch")
done = [[], [], []]
if os.path.exists(f"{folder}/state.json"):
    saved = json.load(open(f"{folder}/state.json"))
    done = saved["done"]
    loader.load_state_dict(saved["loader"])
for epoch in range(loader.epoch, 3):
    for step, found in enumerate(loader):
        parts = [None] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(parts, [int(one) for one in found.ids])
        done[epoch] += sum(parts, [])
        if rank == 0 and step % 3 == 2:
            with open(f"{folder}/state.new", "w") as file:
                json.dump({"done": done, "loader": loader.state_dict()}, file)
            os.replace(f"{folder}/state.new", f"{folder}/state.json")
        if torch.distributed.get_world_size() == 3 and step == 4:  # two steps behind the checkpoint
            open(f"{folder}/{os.getpid()}.pid", "w").close()
            signal.pause()
    torch.distributed.barrier()
if rank == 0:
    json.dump(done, open(f"{folder}/done.json", "w"))
torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_torchrun_with_other_numbers_of_ranks_sees_every_sample_once(array, tmp_path):
    pytest.importorskip("torch")
    path = array(SAMPLES)
    script = tmp_path / "train.py"
    script.write_text(TORCHRUN)
    # Importing torch is nearly all of the work, and each process does it: so one change of the number of ranks, from 3 to 2.
    for size in (3, 2):
        run = subprocess.Popen([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size), script, path, tmp_path],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if size == 3:  # all ranks wait, and one is killed
            while len(waiting := list(tmp_path.glob("*.pid"))) < size and run.poll() is None:
                time.sleep(0.01)
            if waiting:
                os.kill(int(waiting[0].stem), signal.SIGKILL)
        _, said = run.communicate(timeout=240)
        assert (run.returncode == 0) == (size == 2), said
    done = json.loads((tmp_path / "done.json").read_text())
    assert [sorted(epoch) for epoch in done] == [list(range(SAMPLES))] * 3


ELASTIC = """
import json, os, signal, sys, warnings
import torch, stoker
warnings.simplefilter("ignore", stoker.Note)
path, folder = sys.argv[1:]
torch.distributed.init_process_group("gloo")
rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
if rank == 0:
    with open(f"{folder}/worlds", "a") as file:
        print(size, file=file)
torch.distributed.barrier()
world = len(open(f"{folder}/worlds").readlines())
loader = stoker.Loader(path, batch_size=3, shuffle=True, seed=7, output="torch")
done = [[], [], []]
if os.path.exists(f"{folder}/state.json"):
    saved = json.load(open(f"{folder}/state.json"))
    done = saved["done"]
    loader.load_state_dict(saved["loader"])
steps = 0
for epoch in range(loader.epoch, 3):
    for found in loader:
        parts = [None] * size
        torch.distributed.all_gather_object(parts, [int(one) for one in found.ids])
        done[epoch] += sum(parts, [])
        steps += 1
        if rank == 0 and steps % 2 == 0:  # a kill behind an odd step loses that step
            with open(f"{folder}/state.new", "w") as file:
                json.dump({"done": done, "loader": loader.state_dict()}, file)
            os.replace(f"{folder}/state.new", f"{folder}/state.json")
        if world == 1 and steps == 5 and os.environ["AGENT"] == "B" or world == 2 and steps == 5:
            with open(f"{folder}/waits-{world}-{rank}.new", "w") as file:
                print(os.getpid(), file=file)
            os.rename(file.name, file.name[:-4])
            signal.pause()  # until the agent is killed with its ranks; those of the other one fail in their next step
torch.distributed.barrier()
if rank == 0:
    json.dump(done, open(f"{folder}/done.json", "w"))
torch.distributed.destroy_process_group()
"""


# Agents that share their store tell its address in the first round only: one that joins later waits for it until it gives up.
UNSHARED = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def ranks_that_wait(folder, world, count, agents):
    """Their process ids. torchrun gives each a session of its own, so that they outlive an agent that is killed."""
    end = time.monotonic() + 180
    while len(found := list(folder.glob(f"waits-{world}-?"))) < count:
        assert time.monotonic() < end and all(agent.poll() is None for agent in agents), [agent.poll() for agent in agents]
        time.sleep(0.05)
    return [int(one.read_text()) for one in found]


@pytest.mark.slow
def test_a_torchrun_that_loses_an_agent_and_gets_another_one_sees_every_sample_once(array, tmp_path):
    pytest.importorskip("torch")
    path, script = array(SAMPLES), tmp_path / "train.py"
    script.write_text(ELASTIC)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{found.getsockname()[1]}"

    def agent(name):
        conf = f"is_host={int(name == 'A')},last_call_timeout=3,keep_alive_interval=1,keep_alive_max_attempt=3,join_timeout=120"
        return subprocess.Popen([sys.executable, "-m", "torch.distributed.run", "--nnodes", "1:2", "--nproc-per-node", "2", "--rdzv-backend", "c10d",
                                 "--rdzv-endpoint", endpoint, "--rdzv-id", "test", "--rdzv-conf", conf, "--max-restarts", "5", "--monitor-interval", "0.2",
                                 script, path, tmp_path], env={**os.environ, "AGENT": name, **UNSHARED}, stdout=subprocess.DEVNULL, stderr=open(tmp_path / f"{name}.log", "a"))

    agents = [agent("A"), agent("B")]
    try:
        ranks = ranks_that_wait(tmp_path, 1, 2, agents)
        for process in (agents[1].pid, *ranks):
            os.kill(process, signal.SIGKILL)
        agents.pop().wait()
        ranks_that_wait(tmp_path, 2, 2, agents)
        agents.append(agent("B"))
        assert [one.wait(180) for one in agents] == [0, 0], (tmp_path / "A.log").read_text()[-3000:]
    finally:
        for one in agents:
            one.terminate()  # it ends its ranks
            one.wait()
    assert (tmp_path / "worlds").read_text().split() == ["4", "2", "4"]
    done = json.loads((tmp_path / "done.json").read_text())
    assert [sorted(epoch) for epoch in done] == [list(range(SAMPLES))] * 3
