"""python_workers=: per-sample callables in processes, on shared memory. The callables are in per_sample.py, which workers import."""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import textwrap
import time

import numpy
import per_sample
import pytest

import stoker

HERE = pathlib.Path(__file__).parent


def load(path, **options):
    return stoker.Loader(path, **{"output": "numpy", "batch_size": 4, "cache_dir": False, **options})


@pytest.fixture
def rows(tmp_path):
    """30 rows of 6 numbers; row i holds i."""
    numpy.save(tmp_path / "rows.npy", numpy.repeat(numpy.arange(30, dtype=numpy.float32)[:, None], 6, 1))
    return tmp_path / "rows.npy"


@pytest.fixture
def records(tmp_path):
    for number in range(10):
        (tmp_path / f"{number}.rec").write_bytes(bytes([number, number * 2]) + b"x" * number)
    return [(path, int(path.stem)) for path in sorted(tmp_path.glob("*.rec"))]


def batches(loader):
    return [(batch.data.tolist(), batch.labels.tolist(), batch.ids.tolist(), batch.valid.tolist()) for batch in loader]


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(question):
    until = time.monotonic() + 30
    while not question():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("function", [per_sample.same, per_sample.doubled_in_place, per_sample.noisy, per_sample.as_bytes])
def test_batches_are_the_same_with_any_number_of_workers(rows, function):
    seen = []
    for workers in (0, 3) if function is per_sample.noisy else (0, 1):
        with load(rows, transform=[function], python_workers=workers, shuffle=True, seed=5) as loader:
            seen.append([batches(loader), batches(loader)])
            assert len(loader.errors) == 0
    assert seen[0] == seen[1]
    assert seen[0][0] != seen[0][1]
    if function is per_sample.noisy:
        flat = [value for data, *_ in seen[0][0] for value in data]
        assert len({tuple(row) for row in flat}) == 30, "each sample has its own seed"


def test_what_callables_draw_leaves_the_generators_of_the_program_alone(rows):
    random.seed(1)
    expected = random.random()
    random.seed(1)
    with load(rows, transform=[per_sample.noisy], python_workers=0) as loader:
        next(iter(loader))
    assert random.random() == expected


def test_a_row_that_keeps_its_shape_stays_in_the_slab_and_others_get_memory_of_their_own(rows):
    with load(rows, transform=[per_sample.doubled_in_place], python_workers=2) as loader:
        kept = next(iter(loader))
        assert kept.data.tolist() == [[2.0 * row] * 6 for row in range(4)]
        assert loader._calls.stage.blocks_bytes == 0
    with load(rows, transform=[per_sample.as_bytes], python_workers=2) as loader:
        held = [next(iterator) for iterator in [iter(loader)] for _ in range(3)]
        assert [batch.data.shape for batch in held] == [(4, 2, 3)] * 3 and held[0].data.dtype == numpy.uint8
        blocks = loader._calls.stage.blocks_bytes
        first = held[0].data.copy()
        for _ in loader:
            pass
        assert (held[0].data == first).all(), "memory of a batch that is held is not used again"
        assert loader._calls.stage.blocks_bytes < 4 * blocks, "that of others is"


@pytest.mark.parametrize("workers", [0, 1])
def test_a_batch_that_skips_all_its_samples_has_no_rows_of_the_shape_of_results(tmp_path, workers):
    for number in range(4):
        numpy.save(tmp_path / f"{number}.npy", numpy.full(6, number, numpy.float32))
    (tmp_path / "2.npy").write_bytes((tmp_path / "2.npy").read_bytes()[:-8])
    with load(tmp_path, transform=[per_sample.as_bytes], python_workers=workers, batch_size=1, on_error="skip") as loader:
        found = [(batch.data.shape, batch.data.dtype, batch.labels.shape) for batch in loader]
    assert found == [((rows, 2, 3), numpy.uint8, (rows,)) for rows in (1, 1, 0, 1)]


@pytest.mark.parametrize("workers", [0, 1])
def test_an_exception_whose_text_cannot_be_shown_makes_a_bad_sample(rows, workers):
    with load(rows, transform=[per_sample.unprintable_at_five], python_workers=workers, on_error="skip") as loader:
        assert sum(batch.size for batch in loader) == 29
        assert "Unprintable: (its text cannot be shown: RuntimeError in __str__)" in str(loader.errors[0])


def test_a_callable_that_is_cancelled_costs_its_sample_and_no_worker(rows):
    with load(rows, transform=[per_sample.cancelled_at_five], python_workers=1, on_error="skip") as loader:
        assert sum(batch.size for batch in loader) == 29
        assert "CancelledError: five" in str(loader.errors[0])


def test_resuming_gives_the_rest(rows):
    with load(rows, transform=[per_sample.noisy], python_workers=2, shuffle=True, seed=3) as loader:
        whole = batches(loader)
    with load(rows, transform=[per_sample.noisy], python_workers=2, shuffle=True, seed=3) as loader:
        iterator = iter(loader)
        for _ in range(3):
            next(iterator)
        state = loader.state_dict()
        assert state["position"] == 12, "batches that are taken ahead do not count"
        assert len(list(iterator)) == 5 and loader.epoch == 1
    with load(rows, transform=[per_sample.noisy], python_workers=1, shuffle=True, seed=3) as loader:
        loader.load_state_dict(state)
        assert batches(loader) == whole[3:]


@pytest.mark.parametrize("function", [per_sample.wide_or_not, per_sample.bytes_or_not])
@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_resumed_run_judges_results_as_the_first_result_of_all_decided(rows, function, on_error):
    options = {"transform": [function], "batch_size": 4 if on_error == "skip" else 8, "on_error": on_error}
    with load(rows, python_workers=0, **options) as loader:
        iterator = iter(loader)
        straight, states = [], []
        for batch in iterator:
            straight.append((batch.data.tolist(), batch.data.dtype, batch.ids.tolist()))
            states.append(json.loads(json.dumps(loader.state_dict())))
    for number, state in enumerate(states[:-1]):
        with load(rows, python_workers=number % 2, **options) as loader:
            loader.load_state_dict(state)
            assert [(batch.data.tolist(), batch.data.dtype, batch.ids.tolist()) for batch in loader] == straight[number + 1 :]


def test_a_resumed_run_judges_what_decode_returns_as_the_first_result_decided(records):
    options = {"samples": records, "decode": per_sample.long_or_short, "python_workers": 0, "on_error": "skip", "batch_size": 2}
    with load(None, **options) as loader:
        iterator = iter(loader)
        assert next(iterator).data.shape == (2, 2)
        state = loader.state_dict()
        rest = [batch.data.tolist() for batch in iterator]
    assert [len(batch) for batch in rest] == [0, 2, 0, 2]
    with load(None, **options) as loader:
        loader.load_state_dict(state)
        assert [batch.data.tolist() for batch in loader] == rest
        with pytest.raises(ValueError, match="results is of callables in transform="):
            loader.load_state_dict({**state, "results": "in place"})


def test_a_break_and_a_sampler_keep_their_order(rows):
    with load(rows, transform=[per_sample.same], python_workers=2, sampler=list(range(29, -1, -1))) as loader:
        for _ in range(2):
            for batch in loader:
                assert batch.ids.tolist() == [29, 28, 27, 26]
                break
        assert [batch.ids.tolist()[0] for batch in loader] == list(range(29, 0, -4))


def test_decode_runs_in_workers(records):
    for workers in (0, 2):
        with load(None, samples=records, decode=per_sample.two_numbers, python_workers=workers) as loader:
            seen = list(loader)
            assert numpy.concatenate([batch.data for batch in seen]).tolist() == [[n, 2 * n, n + 2] for n in range(10)]
            assert [int(label) for batch in seen for label in batch.labels] == list(range(10)) and seen[2].names[1].endswith("9.rec")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sample_that_raises_obeys_on_error_and_has_its_traceback(rows, workers):
    with load(rows, transform=[per_sample.picky], python_workers=workers) as loader:
        iterator = iter(loader)
        next(iterator)
        with pytest.raises(stoker.Error, match=r"cannot transform `rows.npy\[5\]`: ValueError: five is bad") as caught:
            next(iterator)
        assert isinstance(caught.value.__cause__, ValueError) and "in picky" in str(caught.value.__cause__.__cause__)
        assert next(iterator).ids.tolist() == [8, 9, 10, 11]
    sizes = {"skip": [4, 3, 4], "zero": [4, 4, 4], "replace": [4, 4, 4]}
    for on_error, expected in sizes.items():
        with load(rows, transform=[per_sample.picky], python_workers=workers, on_error=on_error) as loader:
            seen = list(loader)
            assert [batch.size for batch in seen[:3]] == expected
            assert seen[1].ids.tolist() == {"skip": [4, 6, 7], "zero": [4, 5, 6, 7], "replace": [4, 6, 6, 7]}[on_error]
            assert seen[1].data[:, 0].tolist() == {"skip": [4, 6, 7], "zero": [4, 0, 6, 7], "replace": [4, 6, 6, 7]}[on_error]
            assert seen[1].valid.tolist() == [True, on_error != "zero", True, True][: seen[1].size]
            assert [(error.index, error.stage, error.position) for error in loader.errors] == [(5, "transform", 5)]
            assert loader.stats()["errors"] == 1


@pytest.mark.parametrize("workers", [0, 1])
def test_a_callable_that_leaves_the_program_makes_a_bad_sample(rows, workers):
    with load(rows, transform=[per_sample.leaves_at_zero_and_five], python_workers=workers, on_error="skip") as loader:
        assert [number for batch in loader for number in batch.ids.tolist()] == [number for number in range(30) if number not in (0, 5)]
        assert [error.cause for error in loader.errors] == ["SystemExit: enough"] * 2
    with load(rows, transform=[per_sample.leaves_at_zero_and_five], python_workers=workers) as loader, pytest.raises(stoker.Error, match="SystemExit: enough"):
        next(iter(loader))


def test_too_many_bad_samples_end_the_run(rows):
    with load(rows, transform=[per_sample.mostly_bad], python_workers=2, on_error="skip", max_errors=3) as loader, pytest.raises(stoker.Error, match="max_errors=3"):
        list(loader)


def test_a_result_of_another_shape_is_a_bad_sample(rows):
    with load(rows, transform=[per_sample.uneven], python_workers=2, on_error="skip") as loader:
        assert sum(batch.size for batch in loader) == 29
        assert "float32 [3]" in loader.errors[0].cause and "float32 [2]" in loader.errors[0].cause


@pytest.mark.parametrize("function, words", [(per_sample.as_pair, "it returned a tuple: return one array, or a dict of arrays"),
                                              (per_sample.as_masked, "masked array")])
def test_results_that_would_lose_something_are_refused(rows, function, words):
    for workers in (0, 1):
        with load(rows, transform=[function], python_workers=workers) as loader, pytest.raises(stoker.Error, match=words):
            next(iter(loader))


def test_a_callable_may_return_bfloat16(rows):
    torch = pytest.importorskip("torch")
    with load(rows, transform=[per_sample.as_bfloat16], python_workers=0, output="torch") as loader:
        batch = next(iter(loader))
        assert batch.data.dtype == torch.bfloat16 and batch.data[:, 0].tolist() == [0, 1, 2, 3]


def test_a_worker_that_is_killed_costs_its_sample_and_says_why(rows):
    with load(rows, transform=[per_sample.killed_at_nine], python_workers=2, on_error="skip") as loader:
        seen = [number for batch in loader for number in batch.ids.tolist()]
        assert seen == [number for number in range(30) if number != 9]
        assert "signal 9 (SIGKILL)" in loader.errors[0].cause and "memory" in loader.errors[0].cause
        wait_until(lambda: len([pid for pid in loader._calls.stage.pids if is_alive(pid)]) == 3)  # another takes its place
    with load(rows, transform=[per_sample.killed_at_nine], python_workers=2) as loader, pytest.raises(stoker.Error, match="SIGKILL"):
        list(loader)


def test_descriptors_beyond_those_of_select_do(rows):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 4096:
        pytest.skip("this machine allows too few files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, before[1]))
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        with load(rows, transform=[per_sample.picky], python_workers=1, on_error="skip") as loader:
            assert sum(batch.size for batch in loader) == 29
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_close_and_the_end_of_a_loader_leave_no_process(rows):
    with load(rows, transform=[per_sample.same], python_workers=2) as loader:
        next(iter(loader))
        pids = loader._calls.stage.pids
        assert len(pids) == 3 and all(map(is_alive, pids))
    assert not any(map(is_alive, pids))
    loader = load(rows, transform=[per_sample.slow], python_workers=2)
    next(iter(loader))
    pids = loader._calls.stage.pids
    del loader
    wait_until(lambda: not any(map(is_alive, pids)))


def script(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(text))
    return [sys.executable, str(path)], {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}


def test_no_worker_outlives_a_program_that_is_killed(rows, tmp_path):
    command, environment = script(tmp_path, f"""
        import per_sample, stoker
        loader = stoker.Loader({str(rows)!r}, batch_size=4, transform=[per_sample.slow], python_workers=2, output="numpy")
        next(iter(loader))
        print(*loader._calls.stage.pids, flush=True)
        while True:
            next(iter(loader))
        """)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as program:
        pids = [int(pid) for pid in program.stdout.readline().split()]
        assert len(pids) == 3
        program.kill()
    wait_until(lambda: not any(map(is_alive, pids)))


def test_ctrl_c_ends_a_wait_for_workers_at_once_and_quietly(rows, tmp_path):
    command, environment = script(tmp_path, f"""
        import per_sample, stoker
        loader = stoker.Loader({str(rows)!r}, batch_size=4, transform=[per_sample.stuck_after_four], python_workers=2, output="numpy")
        iterator = iter(loader)
        next(iterator)
        try:
            print("waiting", flush=True)
            next(iterator)
        except KeyboardInterrupt:
            print("interrupted")
        """)
    program = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a job in the background starts with it ignored
    assert program.stdout.readline() == "waiting\n"
    os.killpg(program.pid, signal.SIGINT)
    out, err = program.communicate(timeout=30)
    assert (out, err, program.returncode) == ("interrupted\n", "", 0)


def test_what_workers_cannot_import_is_refused_in_one_sentence(rows):
    with pytest.raises(ValueError, match="<lambda>.*cannot be sent to a worker process") as caught:
        load(rows, transform=[lambda row: row], python_workers=1)
    assert "top level of a module" in caught.value.hint and "python_workers=0" in caught.value.hint

    def local(row):
        return row

    with pytest.raises(ValueError, match="local"):
        load(rows, transform=[local], python_workers=1)
    with load(rows, transform=[local], python_workers=0) as loader:
        next(iter(loader))


def test_a_script_without_a_guard_is_told_so(rows, tmp_path):
    text = f"""
        import stoker
        def mine(row):
            return row + 1
        loader = stoker.Loader({str(rows)!r}, batch_size=4, transform=[mine], python_workers=2, output="numpy")
        print(next(iter(loader)).data[1, 0])
        """
    command, environment = script(tmp_path, text)
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1 and ended.stderr.count("if __name__ ==") == 1 and ended.stderr.count("Traceback") == 1
    lines = textwrap.dedent(text).strip().splitlines()
    guarded = "\n".join([*lines[:3], 'if __name__ == "__main__":', *("    " + line for line in lines[3:])])
    command, environment = script(tmp_path, guarded)
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "2.0\n", "")


def test_a_callable_below_the_guard_is_told_to_move(rows, tmp_path):
    command, environment = script(tmp_path, f"""
        import stoker
        if __name__ == "__main__":
            def mine(row):
                return row + 1
            stoker.Loader({str(rows)!r}, batch_size=4, transform=[mine], python_workers=1, output="numpy")
        """)
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert "mine is defined below `if __name__ ==" in ended.stderr and "hint: move its definition above that line or into a module" in ended.stderr


def test_a_script_from_stdin_is_told_like_an_interactive_session(rows, tmp_path):
    command, environment = script(tmp_path, f"""
        import stoker
        def mine(row):
            return row + 1
        if __name__ == "__main__":
            stoker.Loader({str(rows)!r}, batch_size=4, transform=[mine], python_workers=1, output="numpy")
        """)
    text = pathlib.Path(command[1]).read_text()
    ended = subprocess.run([command[0], "-"], env=environment, input=text, capture_output=True, text=True, timeout=60)
    assert "an interactive session, a notebook or a script from stdin" in ended.stderr and "hint: put it into a module" in ended.stderr


def test_too_few_open_files_name_the_remedy(rows, tmp_path):
    pytest.importorskip("resource")
    command, environment = script(tmp_path, f"""
        import resource, per_sample, stoker
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        stoker.Loader({str(rows)!r}, batch_size=4, transform=[per_sample.same], python_workers=64, output="numpy", cache_dir=False)
        """)
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert "python_workers=64 cannot start: Too many open files; this process may have 64 open" in ended.stderr, ended.stderr
    assert "`ulimit -n 200`" in ended.stderr


def test_no_room_for_a_batch_names_a_limit_that_is_enough(rows):
    options = {"transform": [per_sample.as_megabytes], "python_workers": 1, "num_workers": 1}
    with load(rows, memory_limit="60MB", **options) as loader, pytest.raises(ValueError, match="no room for a batch of what the callable returns") as caught:
        list(loader)
    enough = re.search(r'memory_limit="(\d+MiB)" is enough', caught.value.hint)
    with load(rows, memory_limit=enough[1], **options) as loader:
        assert [batch.data.shape for batch in loader][-1] == (2, 2, 2**20)


def test_workers_are_counted(rows):
    with load(rows, transform=[per_sample.slow], python_workers=2) as loader:
        for _ in loader:
            pass
        stats = loader.stats()
        assert stats["python_workers"] == 2 and stats["python_rows"] >= 29 and stats["python_s"] == 0
        assert stats["wait"]["prep_s"] > 0.05 and stats["verdict"]["bound"] == "prep_bound"
        assert stats["memory_used"] > stats["python_bytes"] > 1e6 and stats["samples"] == 30
        assert stats["memory_peak"] <= stats["memory_limit"]
    with pytest.raises(ValueError, match="python workers hold"):
        load(rows, transform=[per_sample.same], python_workers=2, memory_limit="2MB")


def test_what_makes_no_sense_is_refused(rows, records):
    for value in (-1, True, 1.5, "auto", 2000):
        with pytest.raises(ValueError, match="python_workers is a whole number from 0 to 1,024"):
            load(rows, python_workers=value)
    with pytest.raises(ValueError, match="inside decode"):
        load(None, samples=records, decode=per_sample.two_numbers, transform=[stoker.Resize(4)], python_workers=1)
    with pytest.warns(stoker.Note, match="changes nothing"):
        load(rows, python_workers=2).close()


def test_a_callable_that_never_returns_is_named_after_the_timeout(rows):
    with load(rows, transform=[per_sample.stuck_after_four], python_workers=1, timeout=2) as loader:
        iterator = iter(loader)
        next(iterator)
        with pytest.raises(stoker.Error, match=r"no Python callable has returned for 2 s.*row 0 \(`rows.npy\[4\]`, sample id 4\), in python worker 0"):
            next(iterator)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_operations_may_follow_callables(photos, layout):
    """A callable that undoes another changes nothing: what follows gives the pixels that the engine gives alone."""
    common = {"layout": layout, "shuffle": True, "seed": 2, "copy": True}
    with load(photos, transform=[stoker.Resize((20, 16)), stoker.CenterCrop(12), stoker.Normalize("imagenet")], **common) as loader:
        expected = [(batch.data, batch.ids.tolist()) for batch in loader]
    for workers in (0, 2):
        steps = [stoker.Resize((20, 16)), per_sample.brighter, per_sample.dimmer, stoker.CenterCrop(12), stoker.Normalize("imagenet")]
        with load(photos, transform=steps, python_workers=workers, **common) as loader:
            seen = [(batch.data, batch.ids.tolist()) for batch in loader]
        assert [ids for _, ids in seen] == [ids for _, ids in expected]
        for (mine, _), (engines, _) in zip(seen, expected, strict=True):
            assert mine.dtype == numpy.float32 and numpy.array_equal(mine, engines)


def test_what_cannot_follow_a_callable_is_refused(photos):
    with pytest.raises(ValueError, match="MixUp cannot stand behind a Python callable"):
        load(photos, transform=[per_sample.brighter, stoker.MixUp()], python_workers=1)
    with pytest.raises(ValueError, match="operations, callables, operations|next to each other"):
        load(photos, transform=[per_sample.brighter, stoker.Resize((8, 8)), per_sample.dimmer], python_workers=1)
    with pytest.raises(ValueError, match="channels_last"):
        load(photos, transform=[per_sample.brighter, stoker.ToFloat()], python_workers=1, layout="channels_last")
    with load(photos, transform=[stoker.Resize((8, 8)), per_sample.as_float, stoker.ToFloat()], python_workers=0) as loader:
        with pytest.raises(stoker.Error, match=r"float32 \[8, 8, 3\]: operations after a callable take images of uint8"):
            next(iter(loader))
