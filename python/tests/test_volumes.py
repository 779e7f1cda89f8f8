"""Patches of volumes against numpy slices of the same arrays."""

import itertools
import json
import os

import numpy
import pytest

import stoker

SHAPES = [(30, 41, 53), (25, 60, 44)]


@pytest.fixture
def volumes(tmp_path):
    """Two volumes with masks: (arrays, masks, pairs of paths)."""
    random = numpy.random.default_rng(1)
    arrays = [random.integers(0, 256, shape, dtype=numpy.uint8) for shape in SHAPES]
    masks = [numpy.zeros(shape, numpy.uint8) for shape in SHAPES]
    for mask in masks:
        mask[10:14, 20:25, 30:33] = 2
    pairs = []
    for number, (array, mask) in enumerate(zip(arrays, masks, strict=True)):
        numpy.save(tmp_path / f"{number}.npy", array)
        numpy.save(tmp_path / f"{number}_mask.npy", mask)
        pairs.append((str(tmp_path / f"{number}.npy"), str(tmp_path / f"{number}_mask.npy")))
    return arrays, masks, pairs


def cut(array, corner, patch):
    return array[tuple(slice(at, at + edge) for at, edge in zip(corner, patch, strict=True))]


def loaded(source, **options):
    return stoker.Loader(source, **{"batch_size": 4, "output": "numpy", "memory_limit": "64MB", **options})


def rows(loader):
    for batch in loader:
        for row in range(batch.size):
            yield batch, row


@pytest.mark.parametrize("storage", ["buffered", "direct", "mmap", "ram", "auto"])
@pytest.mark.parametrize("num_workers", [0, 2])
def test_patches_are_slices_of_their_volumes(volumes, storage, num_workers):
    arrays, masks, pairs = volumes
    patch = (6, 17, 24)
    source = stoker.Volumes(pairs, patch=patch, samples=50)
    with loaded(source, shuffle=True, storage=storage, num_workers=num_workers) as loader:
        count = 0
        for batch, row in rows(loader):
            volume, corner = int(batch.volumes[row]), batch.coords[row]
            assert batch.image.dtype == numpy.uint8 and batch.coords.dtype == numpy.int64
            assert (batch.image[row] == cut(arrays[volume], corner, patch)).all()
            assert (batch.mask[row] == cut(masks[volume], corner, patch)).all()
            count += 1
        assert count == 50


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32", "float32", "float64", "float16", "bool"])
def test_z_scores_are_numpys(tmp_path, dtype):
    random = numpy.random.default_rng(2)
    array = (random.normal(1000 if numpy.dtype(dtype).itemsize > 1 else 60, 30, (20, 40, 50)) > 60 if dtype == "bool"
             else random.normal(1000 if numpy.dtype(dtype).itemsize > 1 else 60, 20, (20, 40, 50))).astype(dtype)
    numpy.save(tmp_path / "v.npy", array)
    with loaded(stoker.Volumes([tmp_path / "v.npy"], patch=(5, 13, 16), samples=9, normalize="zscore")) as loader:
        for batch, row in rows(loader):
            exact = cut(array, batch.coords[row], (5, 13, 16)).astype(numpy.float64)
            assert batch.image.dtype == numpy.float32
            numpy.testing.assert_allclose(batch.image[row], (exact - exact.mean()) / exact.std(), atol=1e-5, rtol=1e-5)


def test_a_patch_of_one_value_is_zero_when_z_scored(tmp_path):
    numpy.save(tmp_path / "v.npy", numpy.full((8, 8, 8), 7, numpy.int16))
    with loaded(stoker.Volumes([tmp_path / "v.npy"], patch=4, samples=4, normalize="zscore")) as loader:
        assert all((batch.image == 0).all() for batch in loader)


def test_windows_and_scales_are_arithmetic(volumes):
    arrays, _, pairs = volumes
    for normalize, expected in [(("window", 50, 200), lambda values: ((values - 50) / 150).clip(0, 1)),
                                (("scale", 0.5, -3), lambda values: values * 0.5 - 3)]:
        with loaded(stoker.Volumes([pairs[0][0]], patch=8, samples=6, normalize=normalize)) as loader:
            for batch, row in rows(loader):
                exact = expected(cut(arrays[0], batch.coords[row], (8, 8, 8)).astype(numpy.float64))
                numpy.testing.assert_allclose(batch.image[row], exact, atol=1e-5)


def test_flips_and_turns_are_those_of_numpy_and_all_occur(volumes):
    arrays, masks, pairs = volumes
    source = stoker.Volumes(pairs[:1], patch=(5, 12, 12), samples=120, flip=True, turn=True, foreground=1)
    seen = set()
    with loaded(source) as loader:
        for batch, row in rows(loader):
            corner = batch.coords[row]
            image, mask = cut(arrays[0], corner, (5, 12, 12)), cut(masks[0], corner, (5, 12, 12))
            assert mask.any(), "every patch was to contain label"
            found = []
            for z, y, x, turns in itertools.product((1, -1), (1, -1), (1, -1), range(4)):
                if (numpy.rot90(image[::z, ::y, ::x], turns, axes=(1, 2)) == batch.image[row]).all():
                    found.append((z, y, x, turns))
                    assert (numpy.rot90(mask[::z, ::y, ::x], turns, axes=(1, 2)) == batch.mask[row]).all()
            assert found
            seen.add(found[0])
    assert len(seen) == 16, "there are 2 mirrored depths and 8 orientations of the plane"


def test_channels_come_first(tmp_path):
    array = numpy.random.default_rng(3).integers(0, 9999, (9, 20, 21, 3), dtype=numpy.uint16)
    numpy.save(tmp_path / "v.npy", array)
    with loaded(stoker.Volumes([tmp_path / "v.npy"], patch=(4, 8, 8), samples=5)) as loader:
        for batch, row in rows(loader):
            assert (batch.image[row] == numpy.moveaxis(cut(array, batch.coords[row], (4, 8, 8)), -1, 0)).all()
    with loaded(stoker.Volumes([tmp_path / "v.npy"], patch=(4, 8, 8), samples=5, normalize="zscore")) as loader:
        for batch, row in rows(loader):
            exact = numpy.moveaxis(cut(array, batch.coords[row], (4, 8, 8)), -1, 0).astype(numpy.float64)
            exact = (exact - exact.mean(axis=(1, 2, 3), keepdims=True)) / exact.std(axis=(1, 2, 3), keepdims=True)
            numpy.testing.assert_allclose(batch.image[row], exact, atol=1e-5)


def test_a_share_of_the_patches_contains_label(volumes):
    _, _, pairs = volumes
    with loaded(stoker.Volumes(pairs, patch=8, samples=80, foreground=0.5), shuffle=True) as loader:
        labelled = sum(bool(batch.mask[row].any()) for batch, row in rows(loader))
    assert labelled >= 40


def test_weights_share_the_samples(volumes):
    _, _, pairs = volumes
    with loaded(stoker.Volumes(pairs, patch=8, samples=40, weights=[3, 1])) as loader:
        numbers = [int(batch.volumes[row]) for batch, row in rows(loader)]
    assert (numbers.count(0), numbers.count(1)) == (30, 10)


def test_the_same_patches_for_any_workers_and_ranks_and_resumes(volumes):
    _, _, pairs = volumes
    source = stoker.Volumes(pairs, patch=(4, 8, 8), samples=48, normalize="zscore", flip=True, turn=True)
    def taken(**options):
        with loaded(source, shuffle=True, seed=4, **options) as loader:
            return [batch.image.copy() for batch in loader]
    once = taken(num_workers=1)
    assert all((a == b).all() for a, b in zip(once, taken(num_workers=3), strict=True))
    ranks = [taken(rank=rank, world_size=2, batch_size=2) for rank in range(2)]
    assert all((numpy.concatenate(parts) == whole).all() for *parts, whole in zip(*ranks, once, strict=True))
    with loaded(source, shuffle=True, seed=4) as first, loaded(source, shuffle=True, seed=4, num_workers=1) as second:
        iteration = iter(first)
        head = [next(iteration).image.copy() for _ in range(5)]
        second.load_state_dict(first.state_dict())
        resumed = [*head, *(batch.image.copy() for batch in second)]
    assert all((a == b).all() for a, b in zip(once, resumed, strict=True))


def test_batches_unpack_and_have_the_names_of_monai(volumes):
    _, _, pairs = volumes
    with loaded(stoker.Volumes(pairs, patch=8, samples=4)) as loader:
        batch = next(iter(loader))
        image, mask = batch
        assert (image == batch.image).all() and (mask == batch.mask).all()
        assert set(batch.as_dict()) == {"image", "label", "coords", "volume"}
        assert batch.names[0].startswith("0.npy[")
    with loaded(stoker.Volumes([pairs[0][0]], patch=8, samples=4)) as loader:
        image, numbers = next(iter(loader))
        assert image.shape == (4, 8, 8, 8) and numbers.tolist() == [0] * 4


def test_a_csv_is_a_list_of_volumes(volumes, tmp_path):
    _, _, pairs = volumes
    with open(tmp_path / "volumes.csv", "w") as file:
        file.write("image,mask,weight\n0.npy,0_mask.npy,1\n1.npy,1_mask.npy,3\n")
    source = stoker.Volumes(tmp_path / "volumes.csv", patch=8, samples=20)
    assert len(source) == 2 and source.images[1] == pairs[1][0] and source.weights == [1, 3]
    with loaded(source) as loader:
        assert sum(int(batch.volumes[row]) for batch, row in rows(loader)) == 15


@pytest.mark.parametrize("blend", ["linear", "gaussian", "mean"])
@pytest.mark.parametrize("overlap", [0, 0.5, (2, 5, 3)])
def test_stitching_a_grid_gives_the_volume_back(volumes, blend, overlap, tmp_path):
    arrays, _, pairs = volumes
    source = stoker.Volumes([pairs[0][0]], patch=(8, 16, 12), sampling="grid", overlap=overlap, normalize=("scale", 1, 0))
    with loaded(source, batch_size=3) as loader:
        batches = [(batch.image.copy(), batch.coords.copy()) for batch in loader]
    whole = stoker.stitch(iter(batches), None, SHAPES[0], blend=blend)
    numpy.testing.assert_allclose(whole, arrays[0], atol=1e-3)
    images, coords = (numpy.concatenate(part) for part in zip(*batches, strict=True))
    order = numpy.random.default_rng(1).permutation(len(images))
    path = tmp_path / "out.npy"
    mapped = stoker.stitch(images[order], coords[order], SHAPES[0], blend=blend, out=path)
    numpy.testing.assert_allclose(numpy.load(path), arrays[0], atol=1e-3)
    assert isinstance(mapped, numpy.memmap)


def test_stitching_keeps_channels_and_drops_padding():
    coords = numpy.array([[0, 0, 0], [0, 0, 3]])
    predictions = numpy.arange(2 * 2 * 2 * 4 * 4, dtype=numpy.float32).reshape(2, 2, 2, 4, 4)
    whole = stoker.stitch(predictions, coords, (1, 4, 6), blend="mean")
    assert whole.shape == (2, 1, 4, 6)
    assert (whole[:, :, :, :3] == predictions[0, :, :1, :, :3]).all()
    assert (whole[:, :, :, 4:] == predictions[1, :, :1, :, 1:3]).all()
    numpy.testing.assert_allclose(whole[:, 0, :, 3], (predictions[0, :, 0, :, 3] + predictions[1, :, 0, :, 0]) / 2)


def test_stitching_refuses_what_does_not_fit():
    ones = numpy.ones((2, 4, 4, 4), numpy.float32)
    for match, arguments in [("lies outside", (ones, numpy.array([[0, 0, 0], [9, 0, 0]]), (8, 8, 8))),
                             ("2 predictions and 1 coords", (ones, numpy.array([[0, 0, 0]]), (8, 8, 8))),
                             ("coords is an array", (ones, numpy.zeros((2, 3)), (8, 8, 8))),
                             ("no predictions", (iter([]), None, (8, 8, 8))),
                             ("comes after patches that begin deeper", (iter([(ones[:1], numpy.array([[4, 0, 0]])), (ones[:1], numpy.array([[0, 0, 0]]))]), None, (8, 8, 8))),
                             ("shape is depth", (ones, numpy.zeros((2, 3), int), (8, 8)))]:
        with pytest.raises(stoker.UsageError, match=match):
            stoker.stitch(*arguments)


@pytest.mark.parametrize("match, change", [
    ("samples is missing", {"samples": None}),
    ("samples is a whole number of at least 1, not 0", {"samples": 0}),
    ("patch is depth, height and width", {"patch": (4, 4)}),
    ("patch is depth, height and width", {"patch": 0}),
    ("normalize is None, \"zscore\"", {"normalize": "z"}),
    ("normalize is a number", {"normalize": ("window", "a", 3)}),
    ("flip is True, False or axes", {"flip": "ab"}),
    ("sampling is one of uniform, grid", {"sampling": "random"}),
    ("weights has 1 numbers for 2 volumes", {"weights": [1]}),
    ("foreground is a number", {"foreground": "half"}),
])
def test_wrong_arguments_are_refused_in_one_sentence(volumes, match, change):
    with pytest.raises(stoker.UsageError, match=match):
        stoker.Volumes(volumes[2], **{"patch": 8, "samples": 10, **change})


@pytest.mark.parametrize("match, change", [
    ("the patch 64x8x8 is larger than", {"patch": (64, 8, 8)}),
    ("turn needs a patch as high as it is wide", {"patch": (8, 8, 9), "turn": True}),
    ("foreground is 2", {"foreground": 2}),
    ("the overlap along z is 8", {"overlap": 8, "sampling": "grid", "samples": None}),
    ("its end is not above its start", {"normalize": ("window", 5, 5)}),
    ("every volume has weight 0", {"weights": [0, 0]}),
])
def test_what_does_not_fit_the_volumes_is_refused_when_they_are_opened(volumes, match, change):
    with pytest.raises(stoker.Error, match=match):
        loaded(stoker.Volumes(volumes[2], **{"patch": 8, "samples": 10, **change}))


def test_volumes_that_do_not_go_together_are_refused(volumes, tmp_path):
    _, _, pairs = volumes
    numpy.save(tmp_path / "wide.npy", numpy.zeros(SHAPES[0], numpy.int16))
    for match, listed in [("is int16 and .* is uint8: all of a data set have one type", [pairs[0][0], str(tmp_path / "wide.npy")]),
                          ("both have one shape", [(pairs[0][0], pairs[1][0])]),
                          ("has no mask, and others have one", [pairs[0], pairs[1][0]])]:
        with pytest.raises(stoker.Error, match=match):
            loaded(stoker.Volumes(listed, patch=8, samples=10))
    with pytest.raises(stoker.NotFoundError):
        loaded(stoker.Volumes([os.fspath(tmp_path / "absent.npy")], patch=8, samples=10))
    with pytest.raises(stoker.Error, match="`Resize`: patches of volumes do not take it"):
        loaded(stoker.Volumes(pairs, patch=8, samples=10), transform=[stoker.Resize(8)])


def test_padded_patches_end_in_zeros(volumes):
    arrays, _, pairs = volumes
    with loaded(stoker.Volumes([pairs[0][0]], patch=(40, 16, 60), samples=5, pad=True, normalize="zscore")) as loader:
        for batch, row in rows(loader):
            corner = batch.coords[row]
            inside = cut(arrays[0], corner, (40, 16, 60)).astype(numpy.float64)
            assert corner[0] == 0 and corner[2] == 0 and inside.shape == (30, 16, 53)
            numpy.testing.assert_allclose(batch.image[row][:30, :, :53], (inside - inside.mean()) / inside.std(), atol=1e-5)
            assert (batch.image[row][30:] == 0).all() and (batch.image[row][:, :, 53:] == 0).all()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("memory_limit", ["24MB", "256MB"])
def test_patches_of_chunked_volumes_are_the_same_slices(tmp_path, version, memory_limit):
    zarr = pytest.importorskip("zarr")
    random = numpy.random.default_rng(5)
    array, labels = random.integers(-1000, 1000, (40, 90, 100), dtype=numpy.int16), random.integers(0, 3, (40, 90, 100), dtype=numpy.uint8)
    zarr.create_array(tmp_path / "v.zarr", data=array, zarr_format=version, chunks=(16, 32, 48))
    zarr.create_array(tmp_path / "m.zarr", data=labels, zarr_format=version, chunks=(40, 30, 100))
    source = stoker.Volumes([(tmp_path / "v.zarr", tmp_path / "m.zarr")], patch=(12, 40, 40), samples=60, foreground=0.3)
    for shuffle in (False, True, "blocks"):
        with loaded(source, shuffle=shuffle, memory_limit=memory_limit) as loader:
            count = 0
            for batch, row in rows(loader):
                assert (batch.image[row] == cut(array, batch.coords[row], (12, 40, 40))).all()
                assert (batch.mask[row] == cut(labels, batch.coords[row], (12, 40, 40))).all()
                count += 1
            assert count == 60 and loader.stats()["chunk_hits"] > 0


@pytest.mark.parametrize("packing", ["raw", "blosc"])
def test_patches_of_a_volume_that_memory_does_not_hold_take_pieces_of_its_chunks(tmp_path, packing):
    zarr = pytest.importorskip("zarr")
    array = numpy.random.default_rng(5).integers(0, 16, (128, 512, 512), dtype=numpy.uint8)
    array[64:, :256, :256] = 3  # this chunk is taken away
    packers = [zarr.codecs.BloscCodec(cname="zstd", shuffle="bitshuffle")] if packing == "blosc" else None
    zarr.create_array(tmp_path / "v.zarr", data=array, zarr_format=3, chunks=(64, 256, 256), compressors=packers, fill_value=3)
    (tmp_path / "v.zarr" / "c" / "1" / "0" / "0").unlink(missing_ok=True)
    patch = (24, 80, 80)
    source = stoker.Volumes([tmp_path / "v.zarr"], patch=patch, samples=60)
    for memory_limit in ("20MB", "36MB"):
        with loaded(source, shuffle=True, memory_limit=memory_limit) as loader:
            for batch, row in rows(loader):
                assert (batch.image[row] == cut(array, batch.coords[row], patch)).all()
            stats = loader.stats()
        assert stats["chunk_bytes"] < array.nbytes / 2 and (stats["chunk_misses"] > 60 or stats["chunk_bytes"] == 0), "chunks are not kept"
    chunk = tmp_path / "v.zarr" / "c" / "0" / "1" / "1"
    whole = chunk.read_bytes()
    for damaged in (whole[:-1], b"", whole[:4] + b"\xff" * 12 + whole[16:] if packing == "blosc" else whole + b"x"):
        chunk.write_bytes(damaged)
        with loaded(source, shuffle=True, memory_limit="36MB") as loader, pytest.raises(stoker.Error, match="chunk c/0/1/1 of"):
            list(loader)


def test_a_damaged_chunk_is_named_and_a_missing_one_is_filled(tmp_path):
    zarr = pytest.importorskip("zarr")
    array = numpy.random.default_rng(6).integers(1, 255, (16, 16, 16), dtype=numpy.uint8)
    zarr.create_array(tmp_path / "v.zarr", data=array, zarr_format=3, chunks=(8, 16, 16))
    chunks = sorted(path for path in (tmp_path / "v.zarr" / "c").rglob("*") if path.is_file())
    source = stoker.Volumes([tmp_path / "v.zarr"], patch=(8, 16, 16), sampling="grid")
    chunks[0].unlink()
    with loaded(source, batch_size=2) as loader:
        batch = next(iter(loader))
        assert (batch.image[0] == 0).all() and (batch.image[1] == array[8:]).all()
    chunks[1].write_bytes(b"no chunk")
    with loaded(source, batch_size=2) as loader, pytest.raises(stoker.Error, match="chunk c/1/0/0 of"):
        list(loader)
    with loaded(source, batch_size=2, on_error="skip") as loader:
        assert [batch.size for batch in loader] == [1] and len(loader.errors) == 1


def test_real_units_of_nifti_reach_windows_and_scales(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    stored = numpy.random.default_rng(7).integers(0, 2000, (12, 14, 16)).astype(numpy.int16)  # x, y, z
    image = nibabel.Nifti1Image(stored, numpy.eye(4))
    image.header.set_slope_inter(0.5, -100)
    image.header.set_data_dtype(numpy.int16)
    nibabel.save(image, tmp_path / "v.nii")
    values = numpy.asanyarray(nibabel.load(tmp_path / "v.nii").dataobj).transpose()
    with loaded(stoker.Volumes([tmp_path / "v.nii"], patch=8, samples=6, normalize=("scale", 1, 0))) as loader:
        for batch, row in rows(loader):
            numpy.testing.assert_allclose(batch.image[row], cut(values, batch.coords[row], (8, 8, 8)), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "f8"])
def test_values_that_a_float_cannot_hold_are_normalized_in_double_precision(tmp_path, dtype):
    values = (numpy.arange(256) + 20_000_000).reshape(4, 8, 8).astype(dtype)
    numpy.save(tmp_path / "wide.npy", values)

    def patch(normalize):
        return next(iter(stoker.Loader(stoker.Volumes([tmp_path / "wide.npy"], patch=(4, 8, 8), samples=1, normalize=normalize), output="numpy", copy=True))).image[0]

    assert numpy.array_equal(patch(("scale", 1, -20_000_000)).ravel(), numpy.arange(256))
    assert numpy.allclose(patch("zscore"), (values - values.mean()) / values.std(), atol=1e-6)
    assert numpy.allclose(patch(("window", 20_000_000, 20_000_255)).ravel(), numpy.arange(256) / 255, atol=1e-6)


@pytest.mark.parametrize("how", [{"flip": True}, {"turn": True}])
def test_a_grid_is_not_flipped_or_turned(tmp_path, how):
    numpy.save(tmp_path / "g.npy", numpy.zeros((8, 8, 8), numpy.uint8))
    with pytest.raises(stoker.UsageError, match="does not go with"):
        stoker.Loader(stoker.Volumes([tmp_path / "g.npy"], patch=4, sampling="grid", **how))


def test_stitch_counts_what_no_patch_covers_and_takes_bfloat16():
    with pytest.warns(stoker.Note, match="no patch covers 512 of 1,024 elements"):
        half = stoker.stitch(numpy.ones((1, 8, 8, 8), numpy.float32), numpy.zeros((1, 3), int), (16, 8, 8))
    assert half[:8].min() == 1 and half[8:].max() == 0
    torch = pytest.importorskip("torch")
    whole = stoker.stitch(torch.full((1, 8, 8, 8), 1.5, dtype=torch.bfloat16), torch.zeros(1, 3, dtype=torch.int64), (8, 8, 8))
    assert (whole == 1.5).all()
    rounded = stoker.stitch(numpy.full((1, 4, 4, 4), 2.7), numpy.zeros((1, 3), int), (4, 4, 4), out=numpy.zeros((4, 4, 4), numpy.int64))
    assert (rounded == 3).all()


def test_an_inflated_volume_is_kept_in_the_usual_cache_folder(tmp_path, monkeypatch):
    nibabel = pytest.importorskip("nibabel")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    values = numpy.random.default_rng(0).integers(0, 100, (60, 300, 300)).astype(numpy.int16)
    nibabel.Nifti1Image(values, numpy.eye(4)).to_filename(tmp_path / "big.nii.gz")
    with stoker.Loader(stoker.Volumes([tmp_path / "big.nii.gz"], patch=8, samples=2)) as loader:
        next(iter(loader))
    assert list((tmp_path / "cache" / "stoker").glob("volume-*.bin"))


def test_a_stitch_that_fails_leaves_the_file_of_the_last_one(tmp_path):
    path, corners = tmp_path / "out.npy", numpy.zeros((1, 3), int)
    stoker.stitch(numpy.ones((1, 4, 4, 4), numpy.float32), corners, (4, 4, 4), out=path)

    def failing():
        yield numpy.full((1, 4, 4, 4), 2.0), corners
        raise RuntimeError("the model failed")

    with pytest.raises(RuntimeError, match="the model failed"):
        stoker.stitch(failing(), None, (4, 4, 4), out=path)
    assert (numpy.load(path) == 1).all() and [file.name for file in tmp_path.iterdir()] == ["out.npy"]


def test_a_mask_is_read_past_the_page_cache_beside_an_image_in_memory(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    values = numpy.random.default_rng(0).integers(0, 100, (30, 20, 17)).astype(numpy.uint8)  # x, y, z
    nibabel.Nifti1Image(values, numpy.eye(4)).to_filename(tmp_path / "v.nii.gz")
    numpy.save(tmp_path / "m.npy", numpy.ascontiguousarray(values.transpose()))
    source = stoker.Volumes([(tmp_path / "v.nii.gz", tmp_path / "m.npy")], patch=(5, 3, 23), samples=20)
    with loaded(source, storage="direct", cache_dir=False) as loader:
        for batch, row in rows(loader):
            assert (batch.image[row] == batch.mask[row]).all()


def test_every_labelled_element_can_be_the_centre(tmp_path):
    mask = numpy.zeros((16, 16, 16), numpy.uint8)
    mask[8:12, 8:12, 8:12] = 1  # inside one cell of 8 x 8 x 8
    numpy.save(tmp_path / "v.npy", mask)
    source = stoker.Volumes([(tmp_path / "v.npy", tmp_path / "v.npy")], patch=1, samples=640, foreground=1)
    with loaded(source, batch_size=64) as loader:
        corners = {tuple(batch.coords[row]) for batch, row in rows(loader)}
    assert corners == {tuple(place) for place in numpy.argwhere(mask)}


@pytest.mark.parametrize("name", ["v.nii.gz", "v.npz"])
def test_what_memory_cannot_hold_inflated_is_refused_before_it_is_inflated(tmp_path, name):
    values = numpy.zeros((64, 1024, 1024), numpy.uint8)  # 64 MiB, 64 KiB compressed
    if name.endswith(".npz"):
        numpy.savez_compressed(tmp_path / name, values)
    else:
        pytest.importorskip("nibabel").Nifti1Image(values, numpy.eye(4)).to_filename(tmp_path / name)
    source = stoker.Volumes([tmp_path / name], patch=8, samples=2)
    with pytest.raises(stoker.Error, match="it has 64.0 MiB inflated") as raised:
        loaded(source, cache_dir=False, memory_limit="64MB")
    assert "cache_dir" in str(raised.value)
    with loaded(source, cache_dir=tmp_path / "cache", memory_limit="64MB") as loader:
        assert len(list(loader)) == 1


def test_a_mapped_volume_that_is_cut_short_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "v.npy"
    numpy.save(path, numpy.zeros((64, 128, 128), numpy.uint8))
    with loaded(stoker.Volumes([path], patch=8, samples=400), num_workers=1, batch_size=1, memory_limit="16MB") as loader:
        iteration = iter(loader)
        next(iteration)
        os.truncate(path, 4096)
        with pytest.raises(stoker.Error, match="v.npy` became shorter since it was opened"):
            list(iteration)


def test_a_stored_array_whose_sum_differs_is_refused(tmp_path):
    numpy.savez(tmp_path / "v.npz", numpy.zeros((8, 8, 8), numpy.uint8))
    content = bytearray((tmp_path / "v.npz").read_bytes())
    content[300] ^= 1
    (tmp_path / "v.npz").write_bytes(content)
    with pytest.raises(stoker.Error, match="the CRC of the array at byte"):
        loaded(stoker.Volumes([tmp_path / "v.npz"], patch=4, samples=2), cache_dir=False)


def test_hyperstacks_are_refused_by_name(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    values = numpy.zeros((2, 3, 2, 16, 16), numpy.uint16)  # times, slices, channels
    tifffile.imwrite(tmp_path / "a.tif", values, imagej=True, metadata={"axes": "TZCYX"})
    tifffile.imwrite(tmp_path / "b.ome.tif", values, metadata={"axes": "TZCYX"})
    tifffile.imwrite(tmp_path / "c.tif", values[0, :, 0], imagej=True, metadata={"axes": "ZYX"})
    for name, said in (("a.tif", "ImageJ"), ("b.ome.tif", "OME-TIFF")):
        with pytest.raises(stoker.Error, match=f"{said} says that it is a hyperstack of 2 channels and 2 times"):
            loaded(stoker.Volumes([tmp_path / name], patch=(1, 4, 4), samples=2))
    with loaded(stoker.Volumes([tmp_path / "c.tif"], patch=(3, 4, 4), samples=2)) as loader:
        assert next(iter(loader)).image.shape == (2, 3, 4, 4)


def test_gaps_in_the_numbers_of_slices_are_noted(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for number in (1, 2, 5, 6):
        image.fromarray(numpy.zeros((8, 8), numpy.uint8)).save(tmp_path / f"s{number:03}.png")
    with loaded(stoker.Volumes([tmp_path], patch=(2, 4, 4), samples=2)) as loader:
        assert any("2 missing, the first is 3" in note for note in loader.notes)


@pytest.mark.parametrize("match, change, options", [
    ("level=1 does not go with", {"level": 1}, {}),
    ("member=.* does not go with", {"member": "x"}, {}),
    ("layout does not go with volumes", {}, {"layout": "NHWC"}),
])
def test_options_without_effect_are_refused(volumes, match, change, options):
    with pytest.raises(stoker.UsageError, match=match):
        loaded(stoker.Volumes(volumes[2], patch=8, samples=4, **change), **options)


def test_nifti_with_a_slope_that_is_no_number_is_refused(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    nibabel.Nifti1Image(numpy.zeros((8, 8, 8), numpy.int16), numpy.eye(4)).to_filename(tmp_path / "v.nii")
    content = bytearray((tmp_path / "v.nii").read_bytes())
    content[112:116] = numpy.float32(numpy.nan).tobytes()
    (tmp_path / "v.nii").write_bytes(content)
    with pytest.raises(stoker.Error, match="scl_slope or scl_inter is not a finite number"):
        loaded(stoker.Volumes([tmp_path / "v.nii"], patch=4, samples=2))


def test_a_csv_of_volumes_is_not_an_index(volumes, tmp_path):
    (tmp_path / "volumes.csv").write_text("image,mask\n0.npy,0_mask.npy\n")
    with pytest.raises(stoker.UsageError, match="names volumes, such as `0.npy`: they are loaded as patches"):
        stoker.Loader(tmp_path / "volumes.csv")
    (tmp_path / "odd.csv").write_text("image,maks\n0.npy,0_mask.npy\n")
    with pytest.raises(stoker.UsageError, match="line 1 has the column `maks`, and none is `mask`"):
        stoker.Volumes(tmp_path / "odd.csv", patch=8, samples=2)


def test_numbers_of_numpy_are_numbers(volumes):
    source = stoker.Volumes(volumes[2], patch=numpy.array([4, 8, 8]), samples=numpy.int64(4), weights=numpy.array([1, 3]))
    assert source.patch == (4, 8, 8) and source.weights == [1, 3]
    assert stoker.Volumes(volumes[2], patch=numpy.int32(8), samples=4).patch == (8, 8, 8)
    with pytest.raises(stoker.UsageError, match="weights is a list with one number for each volume, not 1"):
        stoker.Volumes(volumes[2], patch=8, samples=4, weights=1)


def test_what_is_no_volume_is_refused_in_one_sentence(tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "empty").mkdir()
    for name, said in (("pipe.npy", "neither a file nor a folder"), ("empty", "cannot find slices in")):
        with pytest.raises(stoker.Error, match=said):
            loaded(stoker.Volumes([tmp_path / name], patch=4, samples=2))


@pytest.mark.parametrize("change", [{"patch": (4, 8, 9)}, {"flip": True}, {"samples": 30}, {"foreground": 0.5}])
def test_a_state_of_other_patches_is_refused(volumes, change):
    _, _, pairs = volumes
    with loaded(stoker.Volumes(pairs, patch=(4, 8, 8), samples=20)) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with loaded(stoker.Volumes(pairs, **{"patch": (4, 8, 8), "samples": 20, **change})) as other, pytest.raises(stoker.Error, match="data set|samples"):
        other.load_state_dict(state)


def test_uint64_reaches_torch_or_is_refused_before_the_first_batch(tmp_path):
    torch = pytest.importorskip("torch")
    values = numpy.arange(512, dtype=numpy.uint64).reshape(8, 8, 8)
    numpy.save(tmp_path / "v.npy", values)
    with loaded(stoker.Volumes([tmp_path / "v.npy"], patch=8, samples=1), output="torch", batch_size=1) as loader:
        image = next(iter(loader)).image
    assert image.dtype == torch.uint64 and (image[0].numpy() == values).all()


def test_info_says_what_each_volume_is(volumes, tmp_path):
    _, _, pairs = volumes
    found = stoker.Volumes(pairs, patch=8, samples=4).info()
    assert [one["shape"] for one in found] == SHAPES and found[0]["mask"] == pairs[0][1]
    assert found[0]["dtype"] == "uint8" and found[0]["chunk"] is None and found[0]["spacing"] == (None, None, None)
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "v.zarr", data=numpy.zeros((40, 90, 100), numpy.int16), chunks=(16, 32, 48))
    assert stoker.Volumes([tmp_path / "v.zarr"], patch=8, samples=4).info()[0]["chunk"] == (16, 32, 48)


def test_where_takes_rows_of_a_volumes_csv_by_columns_of_its_own(volumes, tmp_path):
    (tmp_path / "volumes.csv").write_text("image,mask,split\n0.npy,0_mask.npy,train\n1.npy,1_mask.npy,test\n")
    chosen = stoker.Volumes(tmp_path / "volumes.csv", patch=8, samples=6, where='split == "test"')
    assert [info["shape"] for info in chosen.info()] == [SHAPES[1]]
    with loaded(chosen) as loader:
        assert sum(batch.size for batch in loader) == 6
    with pytest.raises(stoker.UsageError, match="the columns of .* are `image`, `mask`, `split`"):
        stoker.Volumes(tmp_path / "volumes.csv", patch=8, samples=6, where="splt == 1")
    with pytest.raises(stoker.UsageError, match="it selects rows of a volumes.csv"):
        stoker.Volumes([volumes[2][0]], patch=8, samples=6, where="weight == 1")
    with pytest.raises(stoker.UsageError, match="it selects rows of a volumes.csv") as refused:
        loaded(stoker.Volumes(tmp_path / "volumes.csv", patch=8, samples=6), where='split == "test"')
    assert "stoker.Volumes(\"volumes.csv\", where=...)" in refused.value.hint


@pytest.mark.parametrize("change, said", [
    (dict(patch=(4, 16, 16)), "patch was 8x16x16 and is 4x16x16"),
    (dict(samples=30), "samples was 20 and is 30"),
    (dict(sampling="grid", samples=None), "sampling was uniform and is grid"),
    (dict(foreground=0.5), "foreground was 0 and is 0.5"),
    (dict(flip="yx"), "flip was no axis and is yx"),
    (dict(turn=True), "turn was no and is yes"),
    (dict(weights=[1, 3]), "weights was 1, 1 and is 1, 3"),
    (dict(volumes=slice(0, 1)), "volumes was 0.npy 30x41x53 uint8, 1.npy 25x60x44 uint8 and is 0.npy 30x41x53 uint8"),
])
def test_a_state_of_other_patches_says_what_differs(volumes, change, said):
    pairs = volumes[2]
    options = dict(patch=(8, 16, 16), samples=20)
    with loaded(stoker.Volumes(pairs, **options)) as loader:
        next(iter(loader))
        state = json.loads(json.dumps(loader.state_dict()))
    change = dict(change)
    chosen = pairs[change.pop("volumes", slice(None))]
    with loaded(stoker.Volumes(chosen, **{**options, **change})) as loader:
        with pytest.raises(stoker.UsageError, match="the saved state belongs to another data set") as refused:
            loader.load_state_dict(state)
        assert said in str(refused.value)
        state.pop("settings")  # as an earlier version wrote it
        with pytest.raises(stoker.UsageError, match="the saved state belongs to another data set"):
            loader.load_state_dict(state)


def test_a_state_of_other_overlap_or_seed_says_what_differs(volumes):
    grid = dict(patch=8, sampling="grid")
    with loaded(stoker.Volumes(volumes[2], overlap=2, **grid), seed=1) as loader:
        state = loader.state_dict()
    with loaded(stoker.Volumes(volumes[2], overlap=4, **grid), seed=1) as loader, pytest.raises(stoker.UsageError, match="overlap was 2x2x2 and is 4x4x4"):
        loader.load_state_dict(state)
    with loaded(stoker.Volumes(volumes[2], overlap=2, **grid), seed=2) as loader, pytest.raises(stoker.UsageError, match="seed 1 .* this loader seed 2"):
        loader.load_state_dict(state)
    with loaded(stoker.Volumes(volumes[2], overlap=2, **grid), seed=1) as loader:
        loader.load_state_dict(state)


def test_stored_bytes_that_nobody_counted_are_none(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "q.zarr", shape=(6, 8, 8), chunks=(4, 4, 4), dtype="int16")[:] = 1
    numpy.save(tmp_path / "q.npy", numpy.zeros((6, 8, 8), numpy.int16))
    known = [stoker.Volumes([str(tmp_path / name)], patch=4, samples=1).info()[0]["stored_bytes"] for name in ("q.zarr", "q.npy")]
    assert known[0] is None and known[1] >= 768
