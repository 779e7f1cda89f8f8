"""Runs the program in a temporary directory. The binary is named by STOKER_BIN."""

import os
import struct
import subprocess
import wave
import zlib

import numpy as np
import pytest


@pytest.fixture
def environment(tmp_path_factory):
    """No terminal, no cache of the user's, a plain locale."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("STOKER_", "LC_", "NO_COLOR"))}
    env.update(LANG="C", XDG_CACHE_HOME=str(tmp_path_factory.mktemp("cache")))
    return env


@pytest.fixture
def stoker(binary, environment, tmp_path, monkeypatch):
    """stoker("load", "data", ...) -> CompletedProcess with text."""
    monkeypatch.chdir(tmp_path)

    def run(*words, env=None, timeout=120, **options):
        return subprocess.run([binary, *map(str, words)], capture_output=True, text=True, timeout=timeout,
                              env={**environment, **(env or {})}, cwd=tmp_path, **options)

    return run


def write_wav(path, frames=800, rate=16000, channels=1, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = np.random.default_rng(seed).integers(-20000, 20000, size=(frames, channels), dtype=np.int16)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())


def write_png(path, width=8, height=6, seed=0, bits=8):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png_bytes(width, height, seed, bits))


def png_bytes(width=8, height=6, seed=0, bits=8):
    """An RGB (8 bits) or gray (16 bits) PNG, by hand."""
    random = np.random.default_rng(seed)
    if bits == 8:
        rows, color = random.integers(0, 256, size=(height, width * 3), dtype=np.uint8), 2
    else:
        rows, color = random.integers(0, 65536, size=(height, width), dtype=np.uint16).astype(">u2"), 0
    raw = b"".join(b"\0" + row.tobytes() for row in rows)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


@pytest.fixture
def sounds(tmp_path):
    """40 sounds in two classes, at data/."""
    for i in range(40):
        write_wav(tmp_path / "data" / ("cat" if i < 30 else "dog") / f"{i:03}.wav", frames=400 + 10 * i, seed=i)
    return tmp_path / "data"


@pytest.fixture
def pictures(tmp_path):
    """12 pictures of one size in three classes, at pictures/."""
    for i in range(12):
        write_png(tmp_path / "pictures" / "abc"[i % 3] / f"{i:02}.png", seed=i)
    return tmp_path / "pictures"
