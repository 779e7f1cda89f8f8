"""What a user does first, in a Python that has numpy and Stoker only. Prints one JSON object.

usage: first_use.py FORMATS SCRATCH [HTTPS_ADDRESS]

FORMATS: tests/formats. SCRATCH: an empty folder. HTTPS_ADDRESS: of an index.csv, whose certificate SSL_CERT_FILE names.
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tarfile

import stoker

formats, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
program = os.path.join(sysconfig.get_path("scripts"), "stoker")


def folder_of(*names):
    """A data set of these files, in two classes."""
    folder = scratch / names[0].rpartition(".")[2]
    for number, name in enumerate(names):
        into = folder / ("one" if number % 2 == 0 else "two")
        into.mkdir(parents=True, exist_ok=True)
        shutil.copy(formats / name, into)
    return folder


def digest(data, **options):
    """The bytes of two epochs."""
    sums = hashlib.sha256()
    with stoker.Loader(data, batch_size=2, shuffle=True, seed=7, output="numpy", num_workers=2, **options) as loader:
        for _ in range(2):
            for batch in loader:
                sums.update(batch[0].tobytes())
    return sums.hexdigest()[:16]


def run(*words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, f"stoker {words}: {done.stdout}{done.stderr}"
    return done.stdout


pictures = {"transform": [stoker.RandomResizedCrop(32), stoker.HorizontalFlip(), stoker.Normalize("imagenet")]}
found = {
    "jpeg": digest(folder_of("rgb.jpg", "progressive.jpg", "yuv420.jpg", "yuv422.jpg", "gray.jpg", "cmyk.jpg"), **pictures),
    "png": digest(folder_of("rgb.png", "rgba.png", "palette.png", "bilevel.png"), **pictures),
    "webp": digest(folder_of("lossy.webp", "lossless-alpha.webp"), **pictures),
    "wav": digest(folder_of("pcm-s16.wav", "pcm-s24.wav", "float32.wav", "pcm-u8.wav"), transform=[stoker.Mono(), stoker.PadOrTrim(1000)]),
    "flac": digest(folder_of("s16-stereo.flac", "s24-blocks.flac"), transform=[stoker.Mono(), stoker.PadOrTrim(1000)]),
    "pack": digest(formats / "encoded.pack", **pictures),
    "versions": run("--version").splitlines()[1:],
}
for name in ("volumes-zarr-2", "volumes-zarr-3", "volumes-tiff", "volumes-files"):
    with tarfile.open(formats / f"{name}.tar.gz") as archive:
        archive.extractall(scratch / name)
    for path in sorted((scratch / name).iterdir()):
        try:
            found[f"{name}/{path.name}"] = digest(stoker.Volumes([str(path)], patch=(2, 3, 3), samples=4))
        except stoker.Error as error:  # some of them are there to be refused
            found[f"{name}/{path.name}"] = error.kind
run("pack", scratch / "jpg", scratch / "jpg.pack")
found["packed"] = digest(scratch / "jpg.pack", **pictures)
found["load"] = json.loads(run("load", scratch / "jpg", "--json", "--epochs", "1", "--batch-size", "2"))["samples"]
if len(sys.argv) > 3:
    found["https"] = digest(sys.argv[3])
print(json.dumps(found))
