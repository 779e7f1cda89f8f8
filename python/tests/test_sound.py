"""Sound: shapes, lengths, mixed files."""

import numpy
import pytest
import soundfile

import stoker


@pytest.fixture
def sounds(tmp_path):
    for number, frames in enumerate((100, 250, 175)):
        soundfile.write(tmp_path / f"{number}.wav", numpy.sin(numpy.arange(frames) / 7) * 0.5, 8000, subtype="PCM_16")
    return tmp_path


def first(path, **options):
    with stoker.Loader(path, output="numpy", batch_size=8, copy=True, **options) as loader:
        return next(iter(loader))


def test_unequal_lengths_are_padded_to_the_longest_of_the_batch(sounds):
    batch = first(sounds)
    assert batch.data.shape == (3, 250) and batch.data.dtype == numpy.float32
    assert batch.lengths.tolist() == [100, 250, 175]
    assert not batch.data[0, 100:].any() and batch.data[0, :100].any()
    numpy.testing.assert_array_equal(batch.data[2, :175], soundfile.read(sounds / "2.wav", dtype="float32")[0])


def test_pad_or_trim_gives_one_length(sounds):
    batch = first(sounds, transform=[stoker.PadOrTrim(200)])
    assert batch.data.shape == (3, 200) and batch.lengths.tolist() == [100, 200, 175]


def test_channels_have_a_dimension_of_their_own(tmp_path):
    stereo = numpy.random.default_rng(1).uniform(-0.9, 0.9, (120, 2))
    soundfile.write(tmp_path / "a.wav", stereo, 8000, subtype="FLOAT")
    numpy.testing.assert_array_equal(first(tmp_path).data[0], stereo.astype(numpy.float32).T)
    numpy.testing.assert_allclose(first(tmp_path, transform=[stoker.Mono()]).data[0], stereo.mean(1), atol=1e-6)


def test_mixed_rates_are_refused_with_the_remedy(sounds):
    soundfile.write(sounds / "9.wav", numpy.zeros(50), 16000)
    with pytest.raises(stoker.Error, match="(?s)9.wav.*Resample"):
        first(sounds)
    assert first(sounds, transform=[stoker.Resample(8000)]).lengths.tolist()[:3] == [100, 250, 175]


def test_one_transform_list_serves_the_files_and_their_pack(sounds, tmp_path_factory):
    """The rows of a pack are int16: ToFloat gives the values that decoding gives."""
    pack = tmp_path_factory.mktemp("packs") / "x.pack"
    with stoker.Loader(sounds, output="numpy", batch_size=8, copy=True, dtype="int16", transform=[stoker.PadOrTrim(200)]) as loader:
        whole = next(iter(loader))
    with stoker.PackWriter(pack) as writer:
        writer.append(whole.data, [0, 1, 2])
    for transform in ([stoker.PadOrTrim(200), stoker.ToFloat()], [stoker.Mono(), stoker.PadOrTrim(200), stoker.ToFloat()]):
        loose, packed = first(sounds, transform=transform).data, first(pack, transform=transform).data
        assert loose.dtype == packed.dtype == numpy.float32
        numpy.testing.assert_array_equal(loose, packed)
    numpy.testing.assert_array_equal(first(sounds, transform=[stoker.ToFloat()]).data, first(sounds).data)
    with pytest.raises(ValueError, match="ToFloat makes it float"):
        first(sounds, transform=[stoker.ToFloat()], dtype="int16")
