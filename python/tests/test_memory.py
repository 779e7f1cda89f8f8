"""memory_limit is a hard bound: growth of anonymous memory stays below it (plus code, stacks and interpreter)."""

import numpy
import pytest

SLACK = 64 << 20

PROGRAM = """
    import sys, time
    sys.path.insert(0, sys.argv[1])
    import stoker
    from memory import Growth
    limit, pause, path = sys.argv[2], float(sys.argv[3]), sys.argv[4]
    options = eval(sys.argv[5])
    with stoker.Loader(path, output="numpy", memory_limit="1GB", **{**options, "batch_size": 1}) as loader:
        next(iter(loader))                    # code and tables are in memory before the measurement
    with Growth() as growth:
        with stoker.Loader(path, output="numpy", memory_limit=limit, **options) as loader:
            for _ in range(2):
                for data, labels in loader:
                    data[0].sum()
                    time.sleep(pause)
            assert loader.stats()["memory_peak"] <= loader.stats()["memory_limit"]
            print(growth.peak_bytes, loader.stats()["memory_limit"], loader.stats()["memory_peak"])
"""


def grown(run_python, path, limit, pause, **options):
    import pathlib

    done = run_python(PROGRAM, pathlib.Path(__file__).parent, limit, pause, path, repr(options), timeout=300)
    peak, limit_bytes, _ = map(int, done.stdout.split())
    return peak, limit_bytes


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0, 0.01])
@pytest.mark.parametrize("limit", ["64MB", "256MB", "1GB"])
def test_growth_stays_below_the_limit_for_arrays(run_python, big_array, limit, pause):
    peak, limit_bytes = grown(run_python, big_array, limit, pause, batch_size=64, prefetch_factor=50)
    assert peak <= limit_bytes + SLACK


@pytest.mark.slow
@pytest.mark.parametrize("limit, options", [("64MB", "rrc:224"), ("256MB", "rrc:224,normalize:imagenet")])
def test_growth_stays_below_the_limit_for_pictures(run_python, tmp_path, limit, options):
    from conftest import picture

    for number in range(16):
        picture(number, 500, 400).save(tmp_path / f"{number}.jpg")
    peak, limit_bytes = grown(run_python, tmp_path, limit, 0, batch_size=32, transform=options, inflate=40, prefetch_factor=50)
    assert peak <= limit_bytes + SLACK


def test_the_measure_sees_what_is_allocated():
    from memory import Growth

    with Growth() as growth:
        kept = numpy.ones(100 << 17)
    assert growth.peak_bytes >= 95 << 20
    del kept
