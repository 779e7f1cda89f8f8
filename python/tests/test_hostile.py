"""Files that are cut, that lie, or that would fill the memory: each is named with its cause, and the rest is loaded."""

import io
import os
import struct
import zlib

import numpy
import pytest
import soundfile
from conftest import picture
from PIL import Image

import stoker


def encoded(save):
    out = io.BytesIO()
    save(out)
    return out.getvalue()


SMALL = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
FILES = {
    "jpg": encoded(lambda out: picture(1).save(out, "jpeg", quality=90)),
    "progressive.jpg": encoded(lambda out: picture(1).save(out, "jpeg", quality=90, progressive=True)),
    "png": encoded(lambda out: picture(1).save(out, "png")),
    "lossy.webp": encoded(lambda out: picture(1).save(out, "webp", quality=80)),
    "lossless.webp": encoded(lambda out: picture(1).save(out, "webp", lossless=True)),
    "wav": encoded(lambda out: soundfile.write(out, SMALL.ravel() / 12, 8000, format="WAV")),
    "flac": encoded(lambda out: soundfile.write(out, SMALL.ravel() / 12, 8000, format="FLAC")),
    "npy": encoded(lambda out: numpy.save(out, SMALL)),
    "stored.npz": encoded(lambda out: numpy.savez(out, SMALL)),
    "deflated.npz": encoded(lambda out: numpy.savez_compressed(out, SMALL)),
}


def load(files, **options):
    """What comes of the files, in order, and what is said of the bad ones."""
    options = {"output": "numpy", "copy": True, "batch_size": len(files), "on_error": "skip", **options}
    with stoker.Loader(samples=[(path, number) for number, path in enumerate(files)], **options) as loader:
        batch = next(iter(loader))
        return batch, {os.path.basename(error.name): error.cause for error in loader.errors}


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("decode", ["exact", "fast"])
@pytest.mark.parametrize("kind", FILES)
def test_a_file_cut_anywhere_is_named_and_the_whole_ones_are_loaded(tmp_path, kind, decode):
    content = FILES[kind]
    least = 40 if kind == "wav" else len(content)     # of a sound, as much as there is; see the header's 44 bytes
    cuts = [*range(min(20, least)), *range(20, min(least, len(content) - 12), 31)]
    whole = write(tmp_path, "0." + kind, content)
    files = [whole, *(write(tmp_path, f"cut-{size}.{kind}", content[:size]) for size in cuts), write(tmp_path, "1." + kind, content)]
    batch, causes = load(files, decode=decode)
    assert batch.labels.tolist() == [0, len(files) - 1]
    assert sorted(causes) == sorted(path.name for path in files[1:-1]) and all(causes.values())


def test_a_cut_sound_has_the_frames_that_are_there(tmp_path):
    files = [write(tmp_path, "0.wav", FILES["wav"]), write(tmp_path, "1.wav", FILES["wav"][:-7])]
    batch, causes = load(files)
    assert not causes and batch.lengths.tolist() == [12, 8]


def jpeg_claiming(width, height):
    """A picture of 48 x 40 that says it is larger."""
    content = bytearray(FILES["jpg"])
    at = content.index(b"\xff\xc0")
    content[at + 5:at + 9] = struct.pack(">HH", height, width)
    return bytes(content)


def png_of_zeros(side, rows):
    """A gray picture of side x side; `rows` of them are there, all black."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    squeezed = zlib.compressobj(9)
    data = b"".join(squeezed.compress(bytes(side + 1)) for _ in range(rows)) + squeezed.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize("decode", ["exact", "fast"])
def test_bombs_are_refused_and_named(tmp_path, decode):
    bombs = {
        "twenty-bytes.jpg": bytes.fromhex("ffd8ffc0000b08ea60ea6001011100ffdb004300"),
        "sixty-thousand.jpg": jpeg_claiming(60000, 60000),
        "little-data.jpg": jpeg_claiming(1500, 1500),
        "sixty-thousand.png": png_of_zeros(60000, 1),
        "little-data.png": png_of_zeros(1500, 1),
        "all-there.png": png_of_zeros(12000, 12000),   # 144 MB of zeros in 140 KB
    }
    assert len(bombs["twenty-bytes.jpg"]) == 20 and all(len(content) < 200_000 for content in bombs.values())
    files = [write(tmp_path, "good.jpg", FILES["jpg"]), *(write(tmp_path, name, content) for name, content in bombs.items())]
    batch, causes = load(files, decode=decode, transform=[stoker.Resize((32, 32))], memory_limit="64MB", num_workers=1)
    assert batch.labels.tolist() == [0]
    assert causes["twenty-bytes.jpg"] == "the data ends early"
    for name in ("sixty-thousand.jpg", "sixty-thousand.png"):
        assert causes[name] == "more than 2^30 pixels"
    for name in ("little-data.jpg", "little-data.png"):
        assert causes[name] == "less data than the image's size needs"
    assert "memory_limit" in causes["all-there.png"] or "no room" in causes["all-there.png"]


def test_an_npz_that_inflates_beyond_the_memory_limit_is_refused(tmp_path):
    numpy.savez_compressed(tmp_path / "a.npz", numpy.zeros(100_000_000, numpy.uint8))
    assert (tmp_path / "a.npz").stat().st_size < 200_000
    with pytest.raises(stoker.Error, match="memory_limit"):
        with stoker.Loader(samples=[(tmp_path / "a.npz", 0)], memory_limit="64MB", output="numpy") as loader:
            next(iter(loader))


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_file_that_shrinks_after_it_was_listed_is_named(tmp_path, size):
    for number in range(4):
        picture(number).save(tmp_path / f"{number}.jpg", quality=90)
    with stoker.Loader(tmp_path, batch_size=4, on_error="skip", output="numpy") as loader:
        os.truncate(tmp_path / "2.jpg", size)
        batch = next(iter(loader))
        assert batch.size == 3 and [error.name for error in loader.errors] == ["2.jpg"]


def test_a_file_that_grows_after_it_was_listed_is_loaded_or_named(tmp_path):
    for number in range(4):
        picture(number).save(tmp_path / f"{number}.jpg", quality=90)
    with stoker.Loader(tmp_path, batch_size=4, on_error="skip", output="numpy", layout="NHWC") as loader:
        picture(9, 200, 150).save(tmp_path / "2.jpg", quality=100)
        batch = next(iter(loader))
        assert [error.name for error in loader.errors] == ["2.jpg"] and batch.size == 3
    expected = numpy.asarray(Image.open(tmp_path / "1.jpg"))
    numpy.testing.assert_array_equal(batch.data[1], expected)
