"""Operations on audio, through the loader, against torchaudio where it is installed and against its formulas in numpy elsewhere."""

import numpy
import pytest
import soundfile

import stoker

RATE = 16000


@pytest.fixture(scope="module")
def sounds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sounds")
    random = numpy.random.default_rng(3)
    for number in range(8):
        time = numpy.arange(RATE + 777 * number) / RATE
        sound = 0.4 * numpy.sin(2 * numpy.pi * (200 + 90 * number) * time * (1 + time)) + random.normal(0, 0.05, len(time))
        soundfile.write(folder / f"{number}.wav", sound, RATE, subtype="PCM_16")
        soundfile.write(folder / f"{number}.flac", sound, RATE, subtype="PCM_16")
    return folder


def load(path, transform, **options):
    with stoker.Loader(path, output="numpy", copy=True, transform=transform, **{"batch_size": 16, **options}) as loader:
        return next(iter(loader))



def sample(folder, name, *transform, **options):
    with stoker.Loader(samples=[folder / name], output="numpy", copy=True, transform=list(transform), batch_size=1, **options) as loader:
        return next(iter(loader)).data[0]


def wave(folder, name):
    return soundfile.read(folder / name, dtype="float32")[0]


# ---- the reference: torchaudio's formulas, in double precision


def bands(n_fft, sample_rate, n_mels, f_min=0.0, f_max=None, norm=None, mel_scale="htk"):
    def to_mel(hz):
        if mel_scale == "htk":
            return 2595 * numpy.log10(1 + hz / 700)
        return hz * 3 / 200 if hz < 1000 else 15 + numpy.log(hz / 1000) / (numpy.log(6.4) / 27)

    def to_hz(mel):
        if mel_scale == "htk":
            return 700 * (10 ** (mel / 2595) - 1)
        return numpy.where(mel < 15, mel * 200 / 3, 1000 * numpy.exp(numpy.log(6.4) / 27 * (mel - 15)))

    bins = numpy.linspace(0, sample_rate // 2, n_fft // 2 + 1)
    points = to_hz(numpy.linspace(to_mel(f_min), to_mel(f_max or sample_rate // 2), n_mels + 2))
    up = (bins[None] - points[:-2, None]) / numpy.diff(points)[:-1, None]
    down = (points[2:, None] - bins[None]) / numpy.diff(points)[1:, None]
    weights = numpy.maximum(0, numpy.minimum(up, down))
    return weights * (2 / (points[2:] - points[:-2]))[:, None] if norm == "slaney" else weights


def mel_of(samples, sample_rate=RATE, n_fft=400, win_length=None, hop_length=None, pad=0, n_mels=128, power=2.0, normalized=False, center=True,
           pad_mode="reflect", **of_bands):
    win_length = win_length or n_fft
    hop_length = hop_length or win_length // 2
    window = numpy.zeros(n_fft)
    left = (n_fft - win_length) // 2
    window[left:left + win_length] = 0.5 - 0.5 * numpy.cos(2 * numpy.pi * numpy.arange(win_length) / win_length)
    samples = numpy.pad(samples.astype(numpy.float64), pad)
    if center:
        samples = numpy.pad(samples, n_fft // 2, mode={"replicate": "edge"}.get(pad_mode, pad_mode))
    frames = numpy.stack([samples[at:at + n_fft] * window for at in range(0, len(samples) - n_fft + 1, hop_length)])
    spectrum = numpy.abs(numpy.fft.rfft(frames)).T / (numpy.sqrt((window ** 2).sum()) if normalized else 1)
    return bands(n_fft, sample_rate, n_mels, **of_bands) @ spectrum ** power


MELS = [
    {}, dict(n_fft=512, hop_length=160, n_mels=80), dict(n_fft=400, hop_length=160, n_mels=80, f_min=20.0, f_max=7600.0),
    dict(n_fft=1024, win_length=600, hop_length=256, n_mels=64, norm="slaney", mel_scale="slaney"), dict(n_fft=480, n_mels=40, power=1.0),
    dict(n_fft=401, hop_length=150, n_mels=40), dict(n_fft=320, n_mels=40, center=False), dict(n_fft=400, n_mels=40, normalized=True, pad=100),
    dict(n_fft=400, n_mels=40, pad_mode="constant"), dict(n_fft=400, n_mels=40, pad_mode="replicate", power=3.0), dict(n_fft=14, n_mels=4, hop_length=7),
]


def close(mine, theirs):
    """Within 1e-4 of the value, or of a millionth of the largest: float32 spectra are no better than that."""
    assert mine.shape == theirs.shape and mine.dtype == numpy.float32
    numpy.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6 * numpy.abs(theirs).max())


@pytest.mark.parametrize("arguments", MELS)
def test_mel_spectrograms_have_the_values_of_the_formula(sounds, arguments):
    close(sample(sounds, "1.wav", stoker.MelSpectrogram(RATE, **arguments)), mel_of(wave(sounds, "1.wav"), **arguments))


@pytest.mark.parametrize("arguments", MELS)
def test_mel_spectrograms_are_torchaudios(sounds, arguments):
    torch, torchaudio = pytest.importorskip("torch"), pytest.importorskip("torchaudio")
    theirs = torchaudio.transforms.MelSpectrogram(RATE, **arguments)(torch.from_numpy(wave(sounds, "2.wav"))).numpy()
    close(sample(sounds, "2.wav", stoker.MelSpectrogram(RATE, **arguments)), theirs)


NARROW = [dict(n_fft=400, n_mels=1000), dict(n_fft=4096, n_mels=1000), dict(f_min=4000.0), dict(n_fft=512, n_mels=80, f_min=4000.0),
          dict(n_fft=1024, n_mels=1000, mel_scale="slaney"), dict(n_fft=2048, n_mels=256, f_min=4000.0, f_max=4500.0)]


@pytest.mark.filterwarnings("ignore:At least one mel filterbank")
@pytest.mark.parametrize("arguments", NARROW)
def test_narrow_bands_are_torchaudios(tmp_path, arguments):
    """Their edges lie few units in the last place apart: float32, rounded where torch rounds. Noise, since a tone leaves rounding errors alone in most bands."""
    torch, torchaudio = pytest.importorskip("torch"), pytest.importorskip("torchaudio")
    soundfile.write(tmp_path / "a.wav", numpy.random.default_rng(8).uniform(-0.9, 0.9, 12_000), RATE, subtype="FLOAT")
    theirs = torchaudio.transforms.MelSpectrogram(RATE, **arguments)(torch.from_numpy(wave(tmp_path, "a.wav"))).numpy()
    mine = sample(tmp_path, "a.wav", stoker.MelSpectrogram(RATE, **arguments))
    assert (numpy.abs(mine - theirs) / theirs.max(axis=0)).max() < 1e-4
    theirs = torchaudio.transforms.MFCC(RATE, melkwargs=arguments)(torch.from_numpy(wave(tmp_path, "a.wav"))).numpy()
    mine = sample(tmp_path, "a.wav", stoker.MFCC(RATE, melkwargs=arguments))
    assert numpy.abs(mine - theirs).max() < 1e-4 * numpy.abs(theirs).max()


@pytest.mark.parametrize("arguments", [dict(f_min=4000.0), dict(n_fft=512, n_mels=80, f_min=4000.0)])
def test_every_value_of_narrow_bands_is_torchaudios(tmp_path, arguments):
    torch, torchaudio = pytest.importorskip("torch"), pytest.importorskip("torchaudio")
    soundfile.write(tmp_path / "a.wav", numpy.random.default_rng(8).uniform(-0.9, 0.9, 12_000), RATE, subtype="FLOAT")
    theirs = torchaudio.transforms.MelSpectrogram(RATE, **arguments)(torch.from_numpy(wave(tmp_path, "a.wav"))).numpy()
    numpy.testing.assert_allclose(sample(tmp_path, "a.wav", stoker.MelSpectrogram(RATE, **arguments)), theirs, rtol=5e-5, atol=1e-6 * theirs.max())


@pytest.mark.parametrize("stype, top_db", [("power", None), ("power", 80.0), ("magnitude", 30.0)])
def test_decibels_are_torchaudios(sounds, stype, top_db):
    torch, torchaudio = pytest.importorskip("torch"), pytest.importorskip("torchaudio")
    mel = dict(n_fft=400, hop_length=160, n_mels=80)
    theirs = torchaudio.transforms.AmplitudeToDB(stype, top_db)(torchaudio.transforms.MelSpectrogram(RATE, **mel)(torch.from_numpy(wave(sounds, "0.wav"))))
    mine = sample(sounds, "0.wav", stoker.MelSpectrogram(RATE, **mel), stoker.AmplitudeToDB(stype, top_db))
    numpy.testing.assert_allclose(mine, theirs.numpy(), rtol=1e-4, atol=1e-4)


def test_decibels_have_the_values_of_the_formula(sounds):
    mel = mel_of(wave(sounds, "0.wav"), n_mels=80, hop_length=160)
    expected = 10 * numpy.log10(numpy.maximum(mel, 1e-10))
    numpy.testing.assert_allclose(sample(sounds, "0.wav", stoker.MelSpectrogram(RATE, n_mels=80, hop_length=160), stoker.AmplitudeToDB()), expected, atol=5e-4)
    top = sample(sounds, "0.wav", stoker.MelSpectrogram(RATE, n_mels=80, hop_length=160), stoker.AmplitudeToDB(top_db=20))
    numpy.testing.assert_allclose(top, numpy.maximum(expected, expected.max() - 20), atol=5e-4)


@pytest.mark.parametrize("arguments", [{}, dict(n_mfcc=13, log_mels=True, melkwargs=dict(n_fft=400, hop_length=160, n_mels=23, norm="slaney")),
                                       dict(n_mfcc=20, norm=None, melkwargs=dict(n_mels=40))])
def test_mfcc_is_torchaudios(sounds, arguments):
    torch, torchaudio = pytest.importorskip("torch"), pytest.importorskip("torchaudio")
    theirs = torchaudio.transforms.MFCC(RATE, **arguments)(torch.from_numpy(wave(sounds, "3.wav"))).numpy()
    mine = sample(sounds, "3.wav", stoker.MFCC(RATE, **arguments))
    assert mine.shape == theirs.shape
    numpy.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-3)   # sums of up to 128 values of up to 100 decibels


def test_mfcc_has_the_values_of_the_formula(sounds):
    mel = mel_of(wave(sounds, "3.wav"), n_mels=40)
    decibels = 10 * numpy.log10(numpy.maximum(mel, 1e-10))
    decibels = numpy.maximum(decibels, decibels.max() - 80)
    n = numpy.arange(40)
    cosines = numpy.cos(numpy.pi / 40 * (n + 0.5) * numpy.arange(13)[:, None]) * numpy.sqrt(2 / 40)
    cosines[0] /= numpy.sqrt(2)
    numpy.testing.assert_allclose(sample(sounds, "3.wav", stoker.MFCC(RATE, 13, melkwargs=dict(n_mels=40))), cosines @ decibels, atol=1e-3)


@pytest.mark.parametrize("gain, kind", [(0.5, "amplitude"), (3.0, "amplitude"), (2.0, "power"), (-6.0, "db")])
def test_vol_is_torchaudios(sounds, gain, kind):
    factor = {"amplitude": gain, "power": numpy.sqrt(max(gain, 0)), "db": 10 ** (gain / 20)}[kind]
    mine = sample(sounds, "0.wav", stoker.Vol(gain, kind))
    numpy.testing.assert_allclose(mine, numpy.clip(wave(sounds, "0.wav") * factor, -1, 1), atol=1e-6)


# ---- what is drawn


RECIPE = [stoker.RandomTrim(8000), stoker.Gain(p=0.8), stoker.PolarityInversion(), stoker.Shift(), stoker.MelSpectrogram(RATE, n_mels=40),
          stoker.AmplitudeToDB(top_db=80), stoker.FrequencyMasking(10), stoker.TimeMasking(20)]


def epoch(folder, workers, seed=5, rank=0, world_size=1, batch_size=4, state=None, transform=RECIPE):
    with stoker.Loader(folder, output="numpy", copy=True, transform=transform, batch_size=batch_size, shuffle=True, seed=seed, num_workers=workers, rank=rank,
                       world_size=world_size) as loader:
        if state is not None:
            loader.load_state_dict(state)
        return [(batch.ids.tolist(), batch.data.copy(), loader.state_dict()) for batch in loader]


def test_the_same_batches_for_any_number_of_workers_ranks_and_resumes(sounds):
    alone = epoch(sounds, 1)
    for other in (epoch(sounds, 0), epoch(sounds, 3)):
        for (ids, data, _), (other_ids, other_data, _) in zip(alone, other, strict=True):
            assert ids == other_ids
            numpy.testing.assert_array_equal(data, other_data)
    ranks = [epoch(sounds, 2, rank=rank, world_size=2, batch_size=2) for rank in range(2)]
    for step, (ids, data, _) in enumerate(alone):
        assert ids == ranks[0][step][0] + ranks[1][step][0]
        numpy.testing.assert_array_equal(data, numpy.concatenate([ranks[0][step][1], ranks[1][step][1]]))
    for (ids, data, _), (other_ids, other_data, _) in zip(alone[2:], epoch(sounds, 2, state=alone[1][2]), strict=True):
        assert ids == other_ids
        numpy.testing.assert_array_equal(data, other_data)
    assert any((data != other_data).any() for (_, data, _), (_, other_data, _) in zip(alone, epoch(sounds, 1, seed=6)))


@pytest.mark.parametrize("name", ["7.wav", "7.flac"])
def test_a_random_part_is_a_part_of_the_file(sounds, name):
    whole = wave(sounds, name)
    starts = set()
    with stoker.Loader(samples=[sounds / name] * 40, output="numpy", copy=True, transform=[stoker.RandomTrim(4000)], batch_size=40, seed=1) as loader:
        for part in next(iter(loader)).data:
            starts.add(int(next(at for at in numpy.flatnonzero(whole[:-3999] == part[0]) if (whole[at:at + 4000] == part).all())))
    assert len(starts) > 35


def test_lengths_count_steps_and_short_audio_is_padded(sounds):
    batch = load(sounds, [stoker.MelSpectrogram(RATE, hop_length=160, n_mels=40)])
    frames = [RATE + 777 * (number // 2) for number in range(16)]
    assert batch.lengths.tolist() == [1 + count // 160 for count in frames]
    assert batch.data.shape == (16, 40, 1 + frames[-1] // 160) and not batch.data[0, :, batch.lengths[0]:].any()
    padded = load(sounds, [stoker.PadOrTrim(20_000), stoker.MelSpectrogram(RATE, hop_length=160, n_mels=40)])
    assert padded.data.shape == (16, 40, 126) and padded.lengths.tolist() == [min(126, 1 + count // 160) for count in frames]


def test_channels_and_half_precision(tmp_path):
    stereo = numpy.random.default_rng(1).uniform(-0.5, 0.5, (4000, 2))
    soundfile.write(tmp_path / "a.wav", stereo, RATE, subtype="FLOAT")
    both = sample(tmp_path, "a.wav", stoker.MelSpectrogram(RATE, n_mels=20), stoker.AmplitudeToDB())
    assert both.shape == (2, 20, 21)
    halves = sample(tmp_path, "a.wav", stoker.MelSpectrogram(RATE, n_mels=20), stoker.AmplitudeToDB(), dtype="float16")
    numpy.testing.assert_array_equal(halves, both.astype(numpy.float16))
    mixed = sample(tmp_path, "a.wav", stoker.Mono(), stoker.Resample(8000), stoker.MelSpectrogram(8000, n_mels=20))
    assert mixed.shape == (20, 11)


# ---- what cannot be


@pytest.mark.parametrize("transform, words", [
    ([stoker.MelSpectrogram(8000)], ["sample_rate is 8000", "16000 Hz", "Resample(8000)"]),
    ([stoker.PadOrTrim(150), stoker.MelSpectrogram(RATE)], ["n_fft = 400", "201 frames", "PadOrTrim leaves 150"]),
    ([stoker.MelSpectrogram(RATE, 65536)], ["n_fft = 65536", "32769", "the first audio has 16000"]),
    ([stoker.TimeMasking(10)], ["TimeMasking", "takes a spectrogram", "MelSpectrogram or MFCC"]),
    ([stoker.MelSpectrogram(RATE), stoker.Gain()], ["Gain", "takes a waveform", "before MelSpectrogram"]),
    ([stoker.Gain(), stoker.Resample(8000)], ["Resample", "cannot come after Gain"]),
    ([stoker.RandomTrim(10), stoker.PadOrTrim(10)], ["PadOrTrim", "RandomTrim says the length already"]),
])
def test_an_impossible_list_is_refused_before_anything_runs(sounds, transform, words):
    with pytest.raises(ValueError) as refused:
        load(sounds, transform)
    assert all(word in str(refused.value) for word in words), str(refused.value)


@pytest.mark.parametrize("make, words", [
    (lambda: stoker.MelSpectrogram(RATE, n_fft=1), ["n_fft = 1 is not between 2 and 65536"]),
    (lambda: stoker.MelSpectrogram(RATE, win_length=500), ["win_length = 500", "n_fft = 400"]),
    (lambda: stoker.MelSpectrogram(RATE, f_max=9000), ["f_max = 9000", "8000"]),
    (lambda: stoker.MelSpectrogram(RATE, win_length=0), ["win_length = 0 is not between 1 and 65536", "None", "n_fft"]),
    (lambda: stoker.MelSpectrogram(RATE, hop_length=0), ["hop_length = 0 is not between 1 and 1048576", "None", "half of win_length"]),
    (lambda: stoker.MFCC(RATE, melkwargs={"hop_length": 0}), ["hop_length = 0 is not between 1 and 1048576"]),
    (lambda: stoker.MelSpectrogram(RATE, f_max=0), ["f_max = 0 is not above 0", "half the sample rate"]),
    (lambda: stoker.MelSpectrogram(RATE, power=None), ["power=None would give complex values", "power=2"]),
    (lambda: stoker.MelSpectrogram(RATE, normalized="window"), ["normalized is True or False, not 'window'", "True is torchaudio's"]),
    (lambda: stoker.MelSpectrogram(RATE, pad_mode="circular"), ["pad_mode", "circular", "reflect, constant, replicate"]),
    (lambda: stoker.MelSpectrogram(RATE, pad_mode="wrap"), ["pad_mode", "reflect, constant, replicate"]),
    (lambda: stoker.MFCC(RATE, 200), ["n_mfcc = 200", "n_mels = 128"]),
    (lambda: stoker.MFCC(RATE, dct_type=3), ["dct_type is 2"]),
    (lambda: stoker.AmplitudeToDB(top_db=-1), ["top_db"]),
    (lambda: stoker.TimeMasking(10, p=2), ["p = 2 is not between 0 and 1"]),
    (lambda: stoker.Vol(-1), ["gain = -1", "above 0"]),
    (lambda: stoker.Gain(6, -6), ["min_gain_in_db = 6"]),
    (lambda: stoker.RandomTrim(0), ["frames = 0 is not between 1"]),
    (lambda: stoker.Shift(0.5, -0.5), ["min_shift = 0.5"]),
])
def test_arguments_out_of_range_are_named_with_the_range(make, words):
    with pytest.raises(ValueError) as refused:
        make()
    assert all(word in str(refused.value) for word in words), str(refused.value)


def test_images_refuse_operations_on_audio(tmp_path):
    from PIL import Image

    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    for operation in (stoker.MelSpectrogram(RATE), stoker.Gain(), stoker.TimeMasking(3)):
        with pytest.raises(ValueError, match="it is for audio, and these are images"):
            load(tmp_path, [operation])


def test_audio_that_is_too_short_is_named(sounds, tmp_path):
    soundfile.write(tmp_path / "a.wav", numpy.ones(1000) / 2, RATE)
    soundfile.write(tmp_path / "b.wav", numpy.ones(100) / 2, RATE)
    with stoker.Loader(tmp_path, output="numpy", batch_size=2, on_error="skip", transform=[stoker.MelSpectrogram(RATE)]) as loader:
        assert next(iter(loader)).size == 1
        assert "shorter than its spectrogram needs" in loader.errors[0].cause and "PadOrTrim" in loader.errors[0].cause


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("on_error", ["skip", "replace", "zero"])
def test_audio_that_is_too_short_may_come_first(tmp_path, batch_size, on_error):
    for name, frames in (("a", 100), ("b", 1000), ("c", 2000)):
        soundfile.write(tmp_path / f"{name}.wav", numpy.ones(frames) / 2, RATE)
    with stoker.Loader(tmp_path, output="numpy", batch_size=batch_size, on_error=on_error, transform=[stoker.MFCC(RATE)]) as loader:
        lengths = [int(length) for batch in loader for length in batch.lengths]
        assert lengths[-2:] == [6, 11] and len(lengths) == {"skip": 2, "replace": 3, "zero": 3}[on_error]
        assert [error.name for error in loader.errors] == ["a.wav"]
    with stoker.Loader(tmp_path, output="numpy", batch_size=1, transform=[stoker.MFCC(RATE)]) as loader, pytest.raises(stoker.Error, match="a.wav.*shorter than its"):
        next(iter(loader))


@pytest.mark.parametrize("count", [0, 1, 2])
def test_flac_behind_id3_tags_is_read(sounds, tmp_path, count):
    plain = (sounds / "3.flac").read_bytes()
    tag = b"ID3\x04\x00\x00\x00\x00\x02\x05" + b"\x00" * 261
    (tmp_path / "a.flac").write_bytes(tag * count + plain)
    numpy.testing.assert_array_equal(soundfile.read(tmp_path / "a.flac", dtype="float32")[0], wave(sounds, "3.flac"))
    numpy.testing.assert_array_equal(sample(tmp_path, "a.flac"), wave(sounds, "3.flac"))
    numpy.testing.assert_array_equal(sample(tmp_path, "a.flac", stoker.PadOrTrim(100)), wave(sounds, "3.flac")[:100])


def test_an_id3_tag_without_flac_is_named(tmp_path):
    for name, data in (("a", b"ID3\x04\x00\x00\x7f\x7f\x7f\x7f"), ("b", b"ID3\x03\x00\x00\x00\x00\x00\x02xx\xff\xfb\x90\x64")):
        (tmp_path / f"{name}.flac").write_bytes(data)
    for name, cause in (("a", "an ID3 tag goes beyond the end"), ("b", "no FLAC stream behind it: MP3 files are not read")):
        with pytest.raises(stoker.Error, match=cause):
            sample(tmp_path, f"{name}.flac")
