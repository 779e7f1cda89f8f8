"""The measure of growth that the benchmarks use. tests/faults measures the loader."""

import numpy
from memory import Growth


def test_the_measure_sees_what_is_allocated():
    with Growth() as growth:
        kept = numpy.ones(100 << 17)
    assert growth.peak_bytes >= 95 << 20
    del kept
