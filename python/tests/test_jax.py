"""jax arrays over the slabs."""

import numpy
import pytest

import stoker

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.slow  # jax is large: `./dev test --slow` installs it


def test_batches_are_jax_arrays_with_the_same_values(photos):
    with stoker.Loader(photos, batch_size=4, output="jax") as loader, stoker.Loader(photos, batch_size=4, output="numpy") as plain:
        for (images, labels), (expected, expected_labels) in zip(loader, plain, strict=True):
            assert isinstance(images, jax.Array) and isinstance(labels, jax.Array)
            numpy.testing.assert_array_equal(images, expected)
            numpy.testing.assert_array_equal(labels, expected_labels)


def test_the_data_is_in_place_and_keeps_the_slab(photos):
    with stoker.Loader(photos, batch_size=4, output="jax") as loader:
        batch = next(iter(loader))
        address = batch._slab.numpy(0).ctypes.data
        images = batch.data
        assert images.unsafe_buffer_pointer() == address
        del batch
        assert loader.stats()["slabs_held"] == 1
        del images
        assert loader.stats()["slabs_held"] == 0


def test_bfloat16_has_a_type(photos):
    with stoker.Loader(photos, batch_size=4, output="jax", dtype="bfloat16", transform=[stoker.ToFloat()]) as loader:
        assert next(iter(loader)).data.dtype == jax.numpy.bfloat16
