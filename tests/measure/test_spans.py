"""Builders that have no loader: pipelines of threads with stages of known speed, measured by the stages that they name and by what the
kernel tells of their threads."""

import json
import signal
import subprocess
import sys
import time

import pytest

# Stages in threads with queues between them. A stage waits (sleep) or computes (thread time), so its truth is known.
BUILDER = """
import queue, sys, threading, time
import stoker

def wait(seconds): time.sleep(seconds)
def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass

def pipeline(count, *stages):  # (name, threads, work)
    queues = [queue.Queue(maxsize=64) for _ in stages]
    first = queue.Queue()
    for number in range(count): first.put(number)
    for _ in range(stages[0][1]): first.put(None)
    def run(index, name, work):
        source = first if index == 0 else queues[index - 1]
        while (item := source.get()) is not None:
            with stoker.span(name):
                work()
            queues[index].put(item)
        done[index].append(1)
        if len(done[index]) == stages[index][1] and index + 1 < len(stages):
            for _ in range(stages[index + 1][1]): queues[index].put(None)
    done = [[] for _ in stages]
    queues[-1] = queue.Queue()
    threads = [threading.Thread(target=run, args=(i, name, work)) for i, (name, many, work) in enumerate(stages) for _ in range(many)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

"""
BUILDERS = {
    # 51,000 small files: 8 threads read each in 5 ms, the device wants 121,000 a second.
    "reads": ('pipeline(1200, ("read", 8, lambda: wait(5e-3)), ("device", 1, lambda: compute(8e-6)))', "read", "fetch_bound"),
    "device": ('pipeline(150, ("read", 4, lambda: wait(2e-3)), ("device", 1, lambda: wait(8e-3)))', "device", "compute_bound"),
    "decode": ('pipeline(120, ("read", 4, lambda: wait(1e-3)), ("decode", 1, lambda: compute(8e-3)), ("device", 1, lambda: wait(5e-4)))', "decode", "prep_bound"),
    "one": ('pipeline(150, ("read", 8, lambda: wait(4e-3)), ("collate", 1, lambda: wait(6e-3)), ("device", 1, lambda: wait(1e-3)))', "collate", "fetch_bound"),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_the_limit_of_a_builder_is_named(script, name):
    run, limit, bound = BUILDERS[name]
    answer = script(BUILDER + run)
    stages = answer["stages"]
    assert (stages["limit"], stages["bound"]) == (limit, bound), json.dumps(stages, indent=1) + answer["stderr"]
    assert answer["headline"] in answer["stderr"] and f"`{limit}`" in answer["headline"]
    assert [stage["name"] for stage in stages["stages"]][0] == "read" and stages["stages"][-1]["name"] == "device"
    assert len(stages["queues"]) == len(stages["stages"]) - 1
    assert all(queue["over_time"] and 0 <= queue["mean"] <= 80 for queue in stages["queues"])


def test_case_d_is_told_that_threads_do_not_close_its_gap(script):
    answer = script(BUILDER + BUILDERS["reads"][0])
    read, device = answer["stages"]["stages"]
    assert read["threads"] == 8 and read["busy_share"] > 0.9 and device["busy_share"] < 0.2
    assert read["items_per_thread_per_s"] < 210, "5 ms each"
    assert answer["stages"]["gain"] > 5 and answer["stages"]["widen_to"] > 8
    assert any("read" in advice for advice in answer["advice"])
    assert "queue behind it" in answer["stderr"] and answer["threads"], "what the kernel tells of each thread"
    assert {"running_share", "ready_share", "blocked_share", "asleep_share", "read_bytes"} <= set(answer["threads"][0])


def test_a_stage_of_batches_counts_its_items(script):
    answer = script("""
import stoker, time
for _ in range(12):
    with stoker.span("read", items=1024): time.sleep(0.02)
    with stoker.span("device", items=1024): time.sleep(0.002)
""")
    assert [stage["items"] for stage in answer["stages"]["stages"]] == [12 * 1024] * 2
    assert answer["stages"]["limit"] == "read" and answer["stages"]["stages"][0]["shares_threads"]


def test_a_block_of_the_program_gives_the_same_ledger():
    import stoker

    @stoker.span("work")
    def work():
        with stoker.span("inner"):
            time.sleep(0.01)

    work()  # outside of the block: not measured
    with stoker.measure() as m:
        for _ in range(10):
            work()
            with stoker.span("device"):
                time.sleep(0.002)
        assert m.report()["stages"]["stages"], "also inside the block"
    report = m.report()
    stages = {stage["name"]: stage for stage in report["stages"]["stages"]}
    assert stages["work"]["items"] == stages["inner"]["items"] == 10, "decorated functions count too, and only inside"
    assert stages["inner"]["busy_share"] > 0.5 > stages["work"]["busy_share"], "what is inside a span is not its own"
    assert m.verdict == report["headline"] and "inner" in m.verdict
    with pytest.raises(stoker.UsageError, match="no loader to iterate over"):
        iter(m)


def test_an_interrupted_builder_gets_its_verdict(binary, environment, tmp_path):
    (tmp_path / "builder.py").write_text("""
import stoker, time
for number in range(100000):
    with stoker.span("read"): time.sleep(0.02)
    with stoker.span("device"): time.sleep(0.001)
    if number == 30: print("going", flush=True)
""")
    job = subprocess.Popen([binary, "measure", "--", sys.executable, "builder.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env=environment, cwd=tmp_path)
    assert job.stdout.readline() == "going\n"
    job.send_signal(signal.SIGINT)
    _, said = job.communicate(timeout=60)
    assert "`read`" in said and "fetch_bound" in said, said
    assert "this is what was measured until then" in said and "let the job run without" not in said


def test_names_of_spans_stand_on_one_line(script):
    answer = script("""
import stoker, time
for name in ("read\\nfiles", "x" * 5000, "lone \\ud800 half", "\\x1b[31mred"):
    for _ in range(10):
        with stoker.span(name): time.sleep(0.005)
""")
    names = [stage["name"] for stage in answer["stages"]["stages"]]
    assert names == ["read\\nfiles", "x" * 40 + "..." + "x" * 17, "lone \\ud800 half", "\\x1b[31mred"], names


def test_spans_that_nobody_measures_do_nothing_and_wrong_ones_are_named():
    import stoker
    from stoker import spans

    with stoker.span("read"):
        pass
    assert not spans._recorders and not any(thread.sums for thread in spans._threads)
    assert stoker.span("read") is stoker.span("read")
    for name, items in (("", 1), (3, 1), ("read", 0), ("read", 1.5)):
        with pytest.raises(stoker.UsageError, match="span: "):
            stoker.span(name, items)

    def numbers():
        yield 1

    async def later():
        pass

    for function, what in ((numbers, "a generator"), (later, "asynchronous")):
        with pytest.raises(stoker.UsageError, match=f"it is {what}, and calling it does no work yet") as caught:
            stoker.span("read")(function)
        assert "with stoker.span('read'):" in str(caught.value)


def test_a_pool_without_spans_is_seen_by_its_threads(script):
    answer = script("""
import threading, time
def burn():
    end = time.monotonic() + 2.5
    while time.monotonic() < end: pass
threads = [threading.Thread(target=burn) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""")
    assert answer["stages"] is None and answer["headline"] == "no loader was seen"
    assert "threads" in answer["stderr"] and "at work" in answer["stderr"]
    assert sum(thread["running_share"] for thread in answer["threads"]) > 0.3
    assert any("stoker.span" in advice for advice in answer["advice"])
