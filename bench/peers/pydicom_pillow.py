"""DICOM files to 16-bit PNG with pydicom and Pillow in a pool of processes, as people write it. One pass: series and order come from the tags of each file."""

import concurrent.futures
import importlib.metadata
import os

import contestant
import numpy
import pydicom
from PIL import Image


def convert(job):
    path, out = job
    data = pydicom.dcmread(path)
    hu = data.pixel_array.astype(numpy.int32) * int(data.RescaleSlope) + int(data.RescaleIntercept)
    folder = os.path.join(out, str(data.SeriesInstanceUID))
    os.makedirs(folder, exist_ok=True)
    name = os.path.join(folder, f"{int(data.InstanceNumber):05d}.png")
    Image.fromarray((hu + 32768).astype(numpy.uint16)).save(name)
    return name, os.path.getsize(name), float(data.ImagePositionPatient[2])


def work(args, stopwatch):
    jobs = [(os.path.join(parent, name), args["out"]) for parent, _, names in os.walk(args["data"]) for name in names]
    with concurrent.futures.ProcessPoolExecutor(args["workers"]) as pool:
        rows = sorted(pool.map(convert, jobs, chunksize=8))
        with open(os.path.join(args["out"], "index.csv"), "w") as index:
            index.writelines(f"{name},{position}\n" for name, _, position in rows)
        stopwatch.stop()
    return {"items": len(rows), "written_bytes": sum(size for _, size, _ in rows),
            "versions": {name: importlib.metadata.version(name) for name in ("pydicom", "pillow", "numpy")}}


if __name__ == "__main__":
    contestant.main(work)
