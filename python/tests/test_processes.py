"""Life and death: close, fork, Ctrl-C, interpreter exit, pickling, threads."""

import copy
import fcntl
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from conftest import picture

import stoker


def load(path, **options):
    return stoker.Loader(path, **{"output": "numpy", "batch_size": 4, **options})


def threads():
    return len(os.listdir("/proc/self/task"))


def ended(count):
    """Whether no more than ``count`` threads are left. The kernel lists a joined thread for a moment longer."""
    deadline = time.monotonic() + 10
    while threads() > count and time.monotonic() < deadline:
        time.sleep(0.001)
    return threads() <= count


def test_closing_joins_every_thread(photos):
    before = threads()
    with load(photos, num_workers=3) as loader:
        next(iter(loader))
        assert threads() > before
    assert ended(before)


def test_dropping_a_loader_joins_every_thread(photos):
    before = threads()
    loader = load(photos, num_workers=3)
    iterator = iter(loader)
    next(iterator)
    del loader, iterator
    assert ended(before)


def test_use_after_close_raises(photos):
    loader = load(photos)
    iterator = iter(loader)
    next(iterator)
    loader.close()
    loader.close()
    for use in (lambda: next(iterator), lambda: iter(loader), lambda: len(loader), lambda: loader.set_num_workers(1), loader.__enter__):
        with pytest.raises(stoker.Error, match="closed"):
            use()
    assert loader.stats()["batches"] == 1 and loader.state_dict()["position"] == 4 and loader.errors == []


def test_a_loader_is_not_pickled_or_copied(photos):
    with load(photos) as loader:
        for way in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(ValueError, match="threads of this process") as caught:
                way(loader)
            assert "DataLoader" in caught.value.hint
        with pytest.raises(ValueError, match="cannot pickle a Batch"):
            pickle.dumps(next(iter(loader)))


def test_use_after_fork_raises_at_once_with_the_remedy(run_python, photos):
    done = run_python("""
        import os, sys, stoker
        loader = stoker.Loader(sys.argv[1], batch_size=4, output="numpy", num_workers=2)
        iterator = iter(loader)
        kept = next(iterator)
        state = loader.state_dict()
        child = os.fork()
        if child == 0:
            for use in (lambda: next(iterator), lambda: iter(loader), lambda: len(loader), loader.stats, loader.state_dict,
                        lambda: loader.set_epoch(1), lambda: loader.epoch, lambda: loader.load_state_dict(state), loader.__enter__,
                        loader.reset_stats, lambda: loader.set_num_workers(1), lambda: loader.options, lambda: loader.errors, lambda: loader.notes):
                try:
                    use()
                    os._exit(3)
                except stoker.Error as error:
                    if "fork" not in str(error) or not error.hint: os._exit(4)
            loader.close()
            repr(loader)
            del kept, iterator, loader     # nothing may hang
            import gc; gc.collect()
            sys.exit(0)                    # runs exit handlers too
        assert os.waitpid(child, 0)[1] == 0
        assert sum(1 for _ in iterator) == 5
        print(sum(1 for _ in loader))
    """, photos, timeout=60)
    assert done.stdout.split() == ["6"]


def test_a_loader_made_in_the_child_works(run_python, photos):
    run_python("""
        import os, sys, stoker
        parent = stoker.Loader(sys.argv[1], batch_size=4, output="numpy")
        next(iter(parent))
        child = os.fork()
        if child == 0:
            with stoker.Loader(sys.argv[1], batch_size=4, output="numpy") as loader:
                os._exit(0 if sum(1 for _ in loader) == 6 else 1)
        assert os.waitpid(child, 0)[1] == 0
    """, photos, timeout=60)


def interrupt_when_ready(program, *arguments, ready=lambda pid: True):
    """Runs a program that prints a line when it is about to block; sends SIGINT then, and when ``ready``."""
    process = subprocess.Popen([sys.executable, "-u", "-c", textwrap.dedent(program), *map(str, arguments)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        line = process.stdout.readline()
        deadline = time.monotonic() + 30
        while not ready(process.pid) and time.monotonic() < deadline:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    return line + out, err, process.returncode


def waits_for_a_lock(pid):
    """Whether a thread of the process waits for a lock on a file."""
    with open("/proc/locks") as locks:
        return any(words[1] == "->" and str(pid) in words for words in map(str.split, locks))


def test_ctrl_c_ends_a_loop_that_runs(big_array):
    out, err, code = interrupt_when_ready("""
        import sys, stoker
        loader = stoker.Loader(sys.argv[1], batch_size=2, output="numpy", num_workers=1)
        try:
            print("running")
            while True:
                for _ in loader: pass
        except KeyboardInterrupt:
            print("caught")
            loader.close()
    """, big_array)
    assert out.split() == ["running", "caught"] and code == 0, err


def test_ctrl_c_ends_a_long_wait_for_a_batch(tmp_path):
    """One batch of 4,000 large pictures on one worker takes minutes; the signal must not wait for it."""
    picture(1, 3000, 3000).save(tmp_path / "large.jpg", quality=95)
    out, err, code = interrupt_when_ready("""
        import sys, stoker
        loader = stoker.Loader(sys.argv[1], batch_size=4000, inflate=4000, transform="resize:8x8", output="numpy", num_workers=1)
        iterator = iter(loader)
        try:
            print("waiting")
            next(iterator)
        except KeyboardInterrupt:
            print("caught", loader.state_dict()["position"])
            loader.close()
    """, tmp_path)
    assert out.split() == ["waiting", "caught", "0"] and code == 0, err


@pytest.mark.parametrize("workers", [0, 2])
def test_ctrl_c_ends_the_wait_for_the_next_epoch(tmp_path, workers):
    """Some files become pipes without a writer after they were listed: reading them never ends."""
    for number in range(20):
        picture(number).save(tmp_path / f"{number:02}.png")
    out, err, code = interrupt_when_ready("""
        import os, sys, stoker
        loader = stoker.Loader(sys.argv[1], batch_size=2, output="numpy", num_workers=int(sys.argv[2]), cache_dir=False)
        for number in range(2, 20):
            os.remove(f"{sys.argv[1]}/{number:02}.png")
            os.mkfifo(f"{sys.argv[1]}/{number:02}.png")
        iterator = iter(loader)
        next(iterator)
        if any("io_uring is not available" in note for note in loader.notes):
            print("not here")
            sys.exit()
        before = loader.state_dict()
        try:
            print("waiting")
            iter(loader)
        except KeyboardInterrupt:
            assert loader.state_dict() == before and before["position"] == 2
            loader.close()
            print("caught")
    """, tmp_path, workers)
    if out.startswith("not here"):
        pytest.skip("plain system calls do not wait for a pipe")
    assert out.split() == ["waiting", "caught"] and code == 0, err


@pytest.fixture
def somebody_saves(photos, tmp_path, run_python):
    """A program that has a loader; closing it waits, because another process is saving the same seek index."""
    program = f"""
        import sys, time, stoker
        loader = stoker.Loader({str(photos)!r}, batch_size=4, output="numpy", num_workers=2, cache_dir={str(tmp_path)!r}, transform=[stoker.RandomResizedCrop(8)])
        iterator = iter(loader)
        for _ in iterator: pass
    """
    run_python(program)
    lock, = tmp_path.rglob("*.lock")
    lock.with_suffix("").unlink()
    with open(lock) as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield program


@pytest.mark.parametrize("end", ["loader.close()", "loader = iterator = None"])
def test_ctrl_c_ends_the_wait_for_the_end_of_a_loader(somebody_saves, end):
    out, err, code = interrupt_when_ready(somebody_saves + f"""
        try:
            print("waiting")
            {end}
            while True: time.sleep(0.01)
        except KeyboardInterrupt:
            print("caught")
    """, ready=waits_for_a_lock)
    assert out.split() == ["waiting", "caught"] and code == 0, err  # nobody waits for that loader again


def test_ctrl_c_ends_the_wait_at_the_interpreter_s_end(somebody_saves):
    out, err, _ = interrupt_when_ready(somebody_saves + """
        import atexit
        atexit.register(print, "waiting")  # runs before the loaders are closed
    """, ready=waits_for_a_lock)
    assert out.split() == ["waiting"] and "KeyboardInterrupt" in err


def test_ctrl_c_without_a_handler_ends_the_program(big_array):
    _, err, code = interrupt_when_ready("""
        import sys, stoker
        print("running")
        while True:
            for _ in stoker.Loader(sys.argv[1], batch_size=2, output="numpy"): pass
    """, big_array)
    assert "KeyboardInterrupt" in err and code == -signal.SIGINT


@pytest.mark.parametrize("ending", [
    "pass", "loader = None", "sys.exit(0)", "iterator = None; keep = batch.data", "raise SystemExit(0)",
    "import threading; threading.Thread(target=lambda: [None for _ in iterator], daemon=True).start()"])
def test_the_interpreter_exits_cleanly_with_everything_alive(run_python, photos, ending):
    done = run_python(f"""
        import sys, stoker
        loader = stoker.Loader(sys.argv[1], batch_size=4, output="numpy", num_workers=2)
        iterator = iter(loader)
        batch = next(iterator)
        cycle = [loader, iterator, batch]; cycle.append(cycle)
        {ending}
    """, photos, timeout=60)
    assert done.stderr == ""


def test_a_loader_works_outside_the_main_thread(photos):
    """As in a notebook's worker thread, where signal handlers cannot run."""
    counts = []

    def work():
        with load(photos) as loader:
            counts.append(sum(1 for _ in loader))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert counts == [6]


def test_two_threads_may_use_two_loaders_at_once(photos):
    results = []

    def work():
        with load(photos, shuffle=True, transform=[stoker.RandomResizedCrop(8)]) as loader:
            results.append([int(data.sum()) for data, _ in loader])

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert len(results) == 4 and all(result == results[0] for result in results)


def test_a_stopped_consumer_leaves_nothing_behind(photos):
    before = threads()
    for _ in range(20):
        loader = load(photos)
        for _ in loader:
            break
        loader.close()
    assert ended(before)
