"""DICOM files to slices with `stoker prepare dicom`: the whole process, to the disk."""

import json
import subprocess

import contestant


def work(args, stopwatch):
    done = subprocess.run([args["stoker"], "prepare", "dicom", args["data"], args["out"], "--key-file", args["key"], "--format", args["format"],
                           "--workers", str(args["workers"]), "--json"], stdout=subprocess.PIPE, text=True, check=True)
    stopwatch.stop()
    report = json.loads(done.stdout)
    return {"items": report["slices_written"], "written_bytes": report["bytes_written"]}


contestant.main(work)
