"""2,000 uncompressed DICOM slices of 512 x 512 to 16-bit PNG with an index, against pydicom and Pillow in a pool of processes."""

import os
import shutil

import prepare
from contest import ROOT, contest, ours, peer


def run(args):
    data, cores = prepare.dicom_folder(args.work), len(os.sched_getaffinity(0))
    prepare.warm(data)
    out = os.path.join(args.work, "dicom-out")
    job = {"data": data, "out": out, "workers": cores}
    mine = {**job, "stoker": os.path.join(ROOT, "build", "release", "stoker"), "key": os.path.join(args.work, "dicom.key")}

    def clear():
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
    table = contest("dicom, to 16-bit PNG, warm", [ours("Stoker", "stoker_prepare", {**mine, "format": "png"}), ours("Stoker, arrays", "stoker_prepare", {**mine, "format": "npy"}),
                                                   peer(f"pydicom + Pillow, {cores} processes", "pydicom_pillow", job)], args, before=clear)
    shutil.rmtree(out, ignore_errors=True)
    if table:
        sizes = {row["name"]: row["runs"][0]["written_bytes"] for row in table["rows"] if "rate" in row}
        table["note"] = (f"{prepare.DICOM_SLICES:,} generated files in series of 100, read from memory, the same number of processes each. Stoker reads all headers first, sorts by "
                         "position and brings everything to the disk (syncfs); the peer does neither. Written: " + ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.items()) + ".")
    yield table
