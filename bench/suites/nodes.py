"""Two nodes on one S3 server, each over a slow link: epochs that were measured beside those that `stoker plan` predicts."""

import contextlib
import heapq
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import servers
from contest import ROOT, plain_table
from prepare import say

sys.path.append(os.path.join(ROOT, "tests", "s3"))

import nodes as cluster

COUNT, BYTES, BATCH, EPOCHS = 1200, 16 << 10, 16, 4
LATENCY_S, LINK_BYTES_PER_S, STEP_S = 0.02, 4e6, 0.01
IO_DEPTH, PREFETCH = 32, 2
OPTIONS = {"batch_size": BATCH, "seed": 1, "io_depth": IO_DEPTH, "prefetch_factor": PREFETCH}


def make_objects(folder):
    """Arrays of noise, so that nothing is smaller on the way."""
    os.makedirs(folder)
    header = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + str({"descr": "|u1", "fortran_order": False, "shape": (BYTES - 128,)}).encode().ljust(117) + b"\n"
    for number in range(COUNT):
        with open(os.path.join(folder, f"{number:04}.npy"), "wb") as file:
            file.write(header + os.urandom(BYTES - 128))


def simulate(epochs, step_s, link_bytes_per_s, caches):
    """How long the epochs take, from what each rank read in each step: `epochs[e][rank]` lists sample numbers. Each rank keeps IO_DEPTH requests in flight and
    reads at most so many batches ahead as the loader does. The link answers one request after the other. Ranks wait for each other at each step."""
    ranks = len(epochs[0])
    rows = [[epoch[rank] for epoch in epochs] for rank in range(ranks)]
    ahead = PREFETCH + 1 + -(-IO_DEPTH // BATCH)
    steps = [(number, at) for number, epoch in enumerate(epochs) for at in range(0, max(map(len, epoch)), BATCH)]
    ends, link_free, flying, kept = [], [0.0] * ranks, [[] for _ in range(ranks)], [set() for _ in range(ranks)]
    for number, (epoch, at) in enumerate(steps):
        opened = ends[number - ahead] if number >= ahead else 0.0  # the loader may read this batch from here on
        ready = ends[-1] if ends else 0.0
        for rank in range(ranks):
            for sample in rows[rank][epoch][at:at + BATCH]:
                if caches and sample in kept[rank]:
                    ready = max(ready, opened)
                    continue
                kept[rank].add(sample)
                asked = opened if len(flying[rank]) < IO_DEPTH else max(opened, heapq.heappop(flying[rank]))
                link_free[rank] = max(asked + LATENCY_S / 2, link_free[rank]) + BYTES / link_bytes_per_s[rank]
                arrived = link_free[rank] + LATENCY_S / 2
                heapq.heappush(flying[rank], arrived)
                ready = max(ready, arrived)
        ends.append(ready + step_s)
    last = [max(end for end, step in zip(ends, steps) if step[0] == epoch) for epoch in range(len(epochs))]
    return [end - before for end, before in zip(last, [0.0, *last])]


def planned(node_rate, link_bytes_per_s, access, cache_bytes=None):
    """Seconds of each epoch and the share that the caches answer, as `stoker plan` says."""
    found = []
    for epochs in range(1, EPOCHS + 1):
        words = [os.path.join(ROOT, "build", "release", "stoker"), "plan", "--nodes", "2", "--node-rate", repr(node_rate), "--dataset-samples", str(COUNT),
                 "--dataset-bytes", str(COUNT * BYTES), "--nic-rate", str(int(link_bytes_per_s)), "--epochs", str(epochs), "--json"]
        if cache_bytes is not None:
            words += ["--cache-limit", str(cache_bytes)]
        rows = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["runs"][0]["fleet"]["rows"]
        last = next(row for row in rows if row["access"] == access)["last_epoch"]
        found.append((last["seconds"], 1 - last["requests"] / COUNT))
    return found


def run(args):
    if not cluster.can_make_nodes():
        say("note: only root can make network namespaces: nothing was measured")
        return
    with contextlib.ExitStack() as stack:
        work = stack.enter_context(tempfile.TemporaryDirectory(prefix="stoker-nodes-", dir=args.work))
        make_objects(os.path.join(work, "set"))
        environment = stack.enter_context(servers.seaweedfs({"set": os.path.join(work, "set")}))
        if environment is None:
            return
        port = int(environment["AWS_ENDPOINT_URL_S3"].rpartition(":")[2])
        made = stack.enter_context(cluster.nodes(2, port, pathlib.Path(work), LATENCY_S, LINK_BYTES_PER_S))
        source = f"s3://{servers.BUCKET}/set"

        def train(on, epochs, **options):
            for node in made:
                shutil.rmtree(node.cache, ignore_errors=True)
            options = {"shuffle": True, "cache_limit": "1GB", **OPTIONS, **options}
            return cluster.train(on, environment, source, epochs, step_s=STEP_S, **options)

        # What a node takes when it has the data at hand: one node alone, whose cache holds all.
        node_rate = COUNT / train(made[:1], 2)[1][0]["seconds"]
        step_s = BATCH / node_rate
        small = COUNT // 2 * (BYTES + 4096)  # a node's share, in blocks of the disk
        cases = [("no cache", "from the store", {"cache_limit": None, "cache_dir": False}, None),
                 ("caches of all", "disk cache", {}, None),
                 ("caches of all, shuffle=nodes", "disk cache, shuffle=nodes", {"shuffle": "nodes"}, None),
                 ("caches of half", "disk cache", {"cache_limit": small}, COUNT * BYTES // 2),
                 ("caches of half, shuffle=nodes", "disk cache, shuffle=nodes", {"shuffle": "nodes", "cache_limit": small}, COUNT * BYTES // 2),
                 ("no cache, a link half as fast", "from the store", {"cache_limit": None, "cache_dir": False}, None)]
        rows = []
        for name, access, options, cache_bytes in cases:
            rates = [LINK_BYTES_PER_S, LINK_BYTES_PER_S / 2 if "half as fast" in name else LINK_BYTES_PER_S]
            for node, rate in zip(made, rates):
                node.link.bytes_per_s = rate
            told = train(made, EPOCHS, **options)
            simulated = simulate([[rank["ids"] for rank in epoch] for epoch in told], step_s, rates, caches="cache" in name and "no cache" not in name)
            says = planned(node_rate, LINK_BYTES_PER_S, access, cache_bytes)
            for number, epoch in enumerate(told):
                seconds = max(rank["seconds"] for rank in epoch)
                hits = sum(rank["store"]["cache_hits"] for rank in epoch) / COUNT
                predicted, hit_share = says[number]
                can_simulate = cache_bytes is None
                rows.append([name, str(number), f"{seconds:.2f} s", f"{predicted:.2f} s", f"{100 * (predicted / seconds - 1):+.0f} %",
                             f"{simulated[number]:.2f} s" if can_simulate else "-", f"{100 * (simulated[number] / seconds - 1):+.0f} %" if can_simulate else "-",
                             f"{100 * hits:.0f} %", f"{100 * hit_share:.0f} %"])
            whole = sum(max(rank["seconds"] for rank in epoch) for epoch in told)
            all_of = sum(seconds for seconds, _ in says)
            rows.append([name, "all", f"{whole:.2f} s", f"{all_of:.2f} s", f"{100 * (all_of / whole - 1):+.0f} %",
                         f"{sum(simulated):.2f} s" if cache_bytes is None else "-", f"{100 * (sum(simulated) / whole - 1):+.0f} %" if cache_bytes is None else "-", "", ""])
        note = (f"{COUNT:,} objects of {BYTES >> 10} KiB on SeaweedFS; two network namespaces, each with a link of {1000 * LATENCY_S:.0f} ms and {LINK_BYTES_PER_S / 1e6:.0f} MB/s; "
                f"batches of {BATCH}, {1000 * STEP_S:.0f} ms of emulated compute per step, ranks in step. One node alone, with the data in its cache, takes {node_rate:.0f} samples/s: "
                "with the rate of the link that is all that `stoker plan --nodes 2` was told. The simulation follows every request and step; it is told the order too.")
        yield plain_table("two nodes and one store", note,
                          ["run", "epoch", "measured", "planned", "off by", "simulated", "off by", "cache hits", "planned"], rows)
