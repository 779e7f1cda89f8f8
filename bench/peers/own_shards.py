"""Shards in a peer's own format, written once from the bench's images before the time starts. The bench's server serves their folder."""

import os
import shutil


def files_of(folder):
    return sorted(os.path.join(path, name) for path, _, names in os.walk(folder) for name in names)


def write(args, write_all):
    """`write_all(folder, samples, shard_bytes)` writes args["images"] into about args["shards"] shards of args["folder"]; whole or not at all."""
    if not os.path.exists(args["folder"]):
        paths = files_of(args["images"])
        aside = args["folder"] + ".partial"
        shutil.rmtree(aside, ignore_errors=True)
        write_all(aside, map(content_of, paths), -(-sum(map(os.path.getsize, paths)) // args["shards"]))
        os.rename(aside, args["folder"])
    for path in files_of(args["folder"]):
        content_of(path)  # from now on in the page cache


def content_of(path):
    with open(path, "rb") as file:
        return file.read()
