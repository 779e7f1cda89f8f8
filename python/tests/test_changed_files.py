"""JPEG files that change under the seek index: random damage, valid changes and near copies give the same pixels and errors as without it.

Each test prints the seed of its damage. STOKER_TEST_SEED=N repeats it.
"""

import io
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import subprocess

import numpy
import pytest
from PIL import Image

import stoker

SHARE_OF_NEAR_COPIES = 0.25
HAS_AVX2 = " avx2 " in pathlib.Path("/proc/cpuinfo").read_text()  # without it there is no seek index


def chance_for(fixed):
    seed = int(os.environ.get("STOKER_TEST_SEED", fixed))
    print(f"STOKER_TEST_SEED={seed}")
    return random.Random(seed)


def originals(chance, count=24):
    """JPEG files of 20 to 60 KB: baseline with and without restart markers, gray, and a few progressive ones."""
    files = []
    for number in range(count):
        noise = numpy.random.default_rng(chance.randrange(1 << 30))
        coarse = noise.integers(0, 256, (30 + number % 7, 40, 3), numpy.uint8)
        image = Image.fromarray(coarse).resize((320 + chance.randrange(80), 240 + chance.randrange(60)), Image.BICUBIC)
        pixels = numpy.asarray(image, numpy.int16) + noise.integers(-12, 13, (image.height, image.width, 3))
        image = Image.fromarray(numpy.clip(pixels, 0, 255).astype(numpy.uint8))
        if number % 8 == 5:
            image = image.convert("L")
        out = io.BytesIO()
        image.save(out, "JPEG", quality=70 + chance.randrange(25), subsampling=number % 3, progressive=number % 12 == 11,
                   restart_marker_blocks=chance.choice([0, 0, 1, 4, 30]))
        files.append(out.getvalue())
    return files


def scan_of(data):
    """Where the first scan's data begins and ends."""
    at = 2
    while data[at + 1] != 0xDA:
        at += 2 + int.from_bytes(data[at + 2:at + 4], "big")
    return at + 2 + int.from_bytes(data[at + 2:at + 4], "big"), data.rfind(b"\xff\xd9")


def flipped(data, chance, begin=0, end=None):
    """Some bits of `data` between two places."""
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 5])):
        changed[chance.randrange(begin, end or len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def flipped_in_scan(data, chance):
    return flipped(data, chance, *scan_of(data))


def with_segments_exchanged(data, chance):
    """Two stretches of entropy-coded data change places: between restart markers where there are some, which stay in order."""
    begin, end = scan_of(data)
    cuts = [begin, *(found.end() for found in re.compile(rb"\xff[\xd0-\xd7]").finditer(data, begin, end))]
    if len(cuts) > 3:
        parts = [data[a:b] for a, b in zip(cuts, [*(cut - 2 for cut in cuts[1:]), end])]
        a, b = sorted(chance.sample(range(len(parts) - 1), 2))  # the last one may be shorter
        parts[a], parts[b] = parts[b], parts[a]
        marked = [part + b"\xff" + bytes([0xD0 + number % 8]) for number, part in enumerate(parts[:-1])]
        return data[:begin] + b"".join(marked) + parts[-1] + data[end:]
    length = chance.randrange(16, 400)
    a, b = sorted(chance.randrange(begin, end - 2 * length) for _ in range(2))
    b = max(b, a + length)
    return data[:a] + data[b:b + length] + data[a + length:b] + data[a:a + length] + data[b + length:]


def with_comment(data, text):
    """The same picture, its scan further back."""
    return data[:2] + b"\xff\xfe" + (len(text) + 2).to_bytes(2, "big") + text + data[2:]


def with_any_comment(data, chance):
    return with_comment(data, chance.randbytes(chance.randrange(1, 40)))


def cut(data, chance):
    return data[:chance.randrange(len(data) // 4, len(data))]


def lengthened(data, chance):
    at = chance.randrange(len(data))
    return data[:at] + chance.randbytes(chance.randrange(1, 64)) + data[at:]


CHANGES = [flipped, flipped_in_scan, flipped_in_scan, flipped_in_scan, with_segments_exchanged, with_segments_exchanged, with_any_comment, cut, lengthened]


def write_in_place(path, data):
    """Name, folder and times stay as they are, as `touch -r` would have it."""
    before = path.stat()
    with open(path, "r+b") as file:
        file.write(data)
        file.truncate()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def loader_of(address, cache, seek_index, decode):
    return stoker.Loader(address, batch_size=50, shuffle=True, seed=5, num_workers=2, output="numpy", cache_dir=cache, seek_index=seek_index,
                         decode=decode, on_error="zero", transform=[stoker.RandomResizedCrop(24, scale=(0.02, 0.6))])


def assert_same_with_and_without(address, cache, epochs=2, decode="exact"):
    """Pixels and errors of each epoch, batch by batch; returns how many crops were compared and how many samples failed."""
    crops = 0
    with loader_of(address, cache, "auto", decode) as with_index, loader_of(address, False, "off", decode) as without:
        for epoch in range(epochs):
            for got, right in itertools.zip_longest(with_index, without):
                for name, row, wanted in zip(got.names, got.data, right.data, strict=True):
                    assert numpy.array_equal(row, wanted), f"epoch {epoch}: `{name}` has other pixels with the seek index"
                crops += len(got.names)
        assert [str(error) for error in with_index.errors] == [str(error) for error in without.errors]
        assert with_index.stats()["errors"] == without.stats()["errors"]
        assert with_index.stats()["seek_files"] > 0 or not HAS_AVX2, "no place was noted: nothing was compared"
        return crops, without.stats()["errors"]


def made_files(folder, count, chance):
    """Path to content. Every file is one of its own; some are near copies of the one before. The first is a baseline JPEG:
    it decides whether the loader keeps an index."""
    pool = originals(chance)
    files = {folder / "00000.jpg": pool[0]}
    last = pool[0]
    for number in range(1, count):
        if chance.random() < SHARE_OF_NEAR_COPIES:
            data = chance.choice([flipped_in_scan, with_segments_exchanged])(last, chance)
        else:
            data = last = with_comment(chance.choice(pool), str(number).encode())
        files[folder / f"{number:05}.jpg"] = data
    folder.mkdir()
    for path, data in files.items():
        path.write_bytes(data)
    return files


def change_and_compare(folder, cache, count, chance):
    files = made_files(folder, count, chance)
    crops, errors = assert_same_with_and_without(folder, cache)
    for decode in ("exact", "fast", "exact"):
        for path, data in list(files.items())[1:]:
            if chance.random() < 0.7:
                write_in_place(path, chance.choice(CHANGES)(data, chance))
        more_crops, more_errors = assert_same_with_and_without(folder, cache, decode=decode)
        crops, errors = crops + more_crops, errors + more_errors
    print(f"{count} files, {crops} crops compared, {errors} of them of samples that cannot be decoded")


def test_files_changed_in_place_give_the_pixels_of_their_new_content(tmp_path):
    change_and_compare(tmp_path / "photos", tmp_path / "cache", 300, chance_for(fixed=1))


@pytest.mark.slow  # 10,000 files, a minute or two
def test_10000_files_changed_in_place_give_the_pixels_of_their_new_content(tmp_path):
    change_and_compare(tmp_path / "photos", tmp_path / "cache", 10_000, chance_for(fixed=int.from_bytes(os.urandom(4), "big")))


def run_stoker(*words):
    program = os.environ.get("STOKER_BIN") or shutil.which("stoker")
    return subprocess.run([program, *map(str, words), "--json"], capture_output=True, text=True, timeout=300)


def test_a_pack_whose_shard_is_changed_gives_the_pixels_that_are_there_and_check_names_them(tmp_path):
    chance = chance_for(fixed=2)
    pack = tmp_path / "x.pack"
    made_files(tmp_path / "photos", 120, chance)
    assert run_stoker("pack", tmp_path / "photos", pack).returncode == 0
    assert_same_with_and_without(pack, tmp_path / "cache")

    names = (pack / "names.txt").read_text().splitlines()
    index, changed = numpy.load(pack / "index.npy"), set()
    shard = bytearray((pack / "data-00000.tar").read_bytes())
    for sample in chance.sample(range(len(index)), 40):
        begin, length = int(index[sample]["offset"]), int(index[sample]["bytes"])
        before = bytes(shard[begin:begin + length])
        after = chance.choice([flipped, flipped_in_scan, with_segments_exchanged])(before, chance)
        assert len(after) == length
        shard[begin:begin + length] = after
        if after != before:
            changed.add(names[sample])
    write_in_place(pack / "data-00000.tar", shard)

    assert_same_with_and_without(pack, tmp_path / "cache")
    found = run_stoker("check", pack)
    assert found.returncode == 1
    assert {damage["name"] for damage in json.loads(found.stdout)["damaged"]} == changed
