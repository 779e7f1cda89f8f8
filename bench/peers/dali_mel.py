"""NVIDIA DALI's log-mel spectrograms on the CPU."""

import contestant
import dali_stream
from nvidia.dali import fn, types


def batches(args):
    def graph():
        encoded, _ = fn.readers.file(file_root=args["data"], random_shuffle=True)
        audio, _ = fn.decoders.audio(encoded, dtype=types.FLOAT, downmix=True)
        spectrum = fn.spectrogram(audio, nfft=400, window_length=400, window_step=160, power=2)
        mel = fn.mel_filter_bank(spectrum, sample_rate=16000, nfilter=80, mel_formula="htk", normalize=False)
        return fn.to_decibels(mel, multiplier=10, reference=1, cutoff_db=-100)

    yield from dali_stream.stream(graph, args)


contestant.race(batches, ["nvidia-dali-cuda130"])
