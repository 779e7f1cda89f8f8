"""Arguments of DataLoaders that `stoker tune` tries and `stoker run --settings` applies, put in as a loader is made.

STOKER_SETTINGS is JSON: {"loaders": [{"file": "/job/train.py", "line": 26, "set": {"num_workers": 4}}]}. A loader is told by the
line of the job that makes it. Only arguments that change no batch are taken.
"""

import functools
import inspect
import json
import os

from . import places

ARGUMENTS = ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers", "multiprocessing_context", "batch_size")


def install(module, text):
    entries = json.loads(text)["loaders"]
    cls = module.DataLoader
    original = cls.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(loader, *arguments, **options):
        try:
            wanted = _wanted(entries, places.caller())
            if wanted:
                bound = signature.bind(loader, *arguments, **options)
                _change(bound.arguments, wanted)
                arguments, options = bound.args[1:], bound.kwargs
        except Exception:
            pass
        return original(loader, *arguments, **options)

    cls.__init__ = __init__


def _wanted(entries, place):
    for entry in entries:
        if place is not None and _is_place(entry, place):
            return {name: value for name, value in entry["set"].items() if name in ARGUMENTS}
    return None


def _is_place(entry, place):
    """`file` may be a whole path, or the end of one."""
    name = os.path.realpath(place["file"])
    wanted = entry["file"]
    same = name == os.path.realpath(wanted) or (not os.path.isabs(wanted) and name.endswith(os.sep + wanted))
    return same and place["line"] == entry["line"]


def _change(arguments, wanted):
    """torch refuses some arguments where there are no workers: they go then."""
    if arguments.get("batch_sampler") is not None or "batch_size" in wanted and arguments.get("batch_size", 1) is None:
        wanted.pop("batch_size", None)
    arguments.update(wanted)
    if arguments.get("num_workers", 0) == 0:
        for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
            arguments.pop(name, None)
    elif wanted.get("multiprocessing_context") == "default":
        arguments.pop("multiprocessing_context", None)
