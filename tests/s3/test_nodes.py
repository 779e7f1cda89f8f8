"""Two nodes with caches of their own on one S3 server, each over a link with latency and a bounded rate."""

import os
import shutil

import nodes
import numpy
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not nodes.can_make_nodes(), reason="only root can make network namespaces, with `ip` of iproute2")]

COUNT, BYTES = 240, 8 << 10


@pytest.fixture
def job(store, s3, tmp_path):
    """``job([0, 1], epochs, ...)`` trains on these of two nodes; ``job.links`` are their links."""
    body = numpy.random.default_rng(1).integers(0, 255, BYTES - 128, numpy.uint8)
    bodies = {}
    for number in range(COUNT):
        body[:4] = numpy.frombuffer(number.to_bytes(4, "little"), numpy.uint8)
        numpy.save(tmp_path / "one.npy", body)
        bodies[f"set/{number:03}.npy"] = (tmp_path / "one.npy").read_bytes()
    store.put_all(bodies)
    environment = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    with nodes.nodes(2, s3.port, tmp_path, latency_s=0.02, bytes_per_s=4e6) as made:

        def run(which, epochs, **options):
            options = {"batch_size": 8, "shuffle": True, "seed": 3, "cache_limit": "1GB", **options}
            return nodes.train([made[number] for number in which], environment, store.address("set"), epochs, **options)

        run.links = [node.link for node in made]
        run.forget = lambda: [shutil.rmtree(node.cache) for node in made]
        yield run


def ids(epoch):
    return sorted(one for rank in epoch for one in rank["ids"])


def misses(epochs):
    """Of each rank, over these epochs."""
    return [sum(rank["store"]["cache_misses"] for rank in of_rank) for of_rank in zip(*epochs)]


def test_a_node_fetches_each_object_once(job):
    epochs = job([0, 1], 4)
    assert all(ids(epoch) == list(range(COUNT)) for epoch in epochs)
    seen = [set(sum((rank["ids"] for rank in of_rank), [])) for of_rank in zip(*epochs)]
    assert misses(epochs) == [len(one) for one in seen]  # whatever the order, nothing comes twice over a link
    assert min(link.received for link in job.links) > min(map(len, seen)) * BYTES


def test_samples_that_stay_on_their_node_come_from_its_cache_from_epoch_1_on(job):
    epochs = job([0, 1], 3, shuffle="nodes")
    assert all(ids(epoch) == list(range(COUNT)) for epoch in epochs)
    assert misses(epochs) == misses(epochs[:1]) == [COUNT // 2, COUNT // 2]
    again = job([0, 1], 3, shuffle="nodes")
    assert misses(again) == [0, 0]


def test_a_cache_that_holds_a_nodes_share_answers_all_of_it_only_with_the_order_of_nodes(job):
    small = COUNT // 2 * (BYTES + 4096) * 11 // 10  # the cache counts blocks of the disk
    whole = job([0, 1], 5, cache_limit=small)
    job.forget()
    by_node = job([0, 1], 5, cache_limit=small, shuffle="nodes")
    assert all(ids(epoch) == list(range(COUNT)) for epoch in whole + by_node)
    assert misses(by_node[2:]) == [0, 0]
    assert min(misses(whole[2:])) > COUNT // 8  # of three epochs of COUNT // 2 samples


def test_a_node_that_joins_late_fetches_its_share_and_no_sample_comes_twice(job):
    alone = job([0], 1, shuffle="nodes")
    begun = job([0], 2, shuffle="nodes", state=alone[-1][0]["state"], stop_after=5)
    state = begun[-1][0]["state"]
    assert (state["epoch"], state["position"], state["shuffle"]) == (1, 40, "nodes:1:8")
    both = job([0, 1], 4, shuffle="nodes", state=state)
    assert ids([begun[0][0], *both[0]]) == list(range(COUNT))
    assert all(ids(epoch) == list(range(COUNT)) for epoch in both[1:])
    assert any("epoch 1 goes on in the order of the saved state" in note for note in both[0][1]["notes"])
    first, late = misses(both)
    assert first == 0  # it has read everything in epoch 0
    seen = set(sum((epoch[1]["ids"] for epoch in both), []))
    assert late == len(seen) and misses(both[2:]) == [0, 0]
