"""Where in the user's program something was called: file, line, and the name it was assigned to."""

import linecache
import os
import re
import sys
import sysconfig

_ASSIGNED = re.compile(r"^\s*([A-Za-z_][\w.]*)\s*(?::[^=]+)?=[^=]")
_OWN = os.path.dirname(os.path.abspath(__file__))
_INSTALLED = {"site-packages", "dist-packages"}
# Packages that make loaders for their users. A clone or a PYTHONPATH puts them outside of site-packages.
_BETWEEN = ("torch", "torchvision", "torchaudio", "torchdata", "lightning", "pytorch_lightning", "lightning_fabric", "accelerate",
            "transformers", "datasets", "timm", "fastai", "ignite", "deepspeed", "composer", "ray", "mmengine", "stoker")


def caller():
    """The nearest frame of the user's own code; failing that, the nearest outside of torch."""
    libraries = _folders([sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")] + [_package(name) for name in _BETWEEN])
    torch = _folders([_package("torch")])
    frame = sys._getframe(1)
    second = None
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith("<") and not _is_below(name, _folders([_OWN])):
            if not _is_below(name, libraries) and _INSTALLED.isdisjoint(name.split(os.sep)):
                return _describe(frame)
            if second is None and not _is_below(name, torch):
                second = frame
        frame = frame.f_back
    return _describe(second) if second is not None else None


def _package(name):
    """The folder of an imported package; None for a plain module, whose folder may be the user's own."""
    module = sys.modules.get(name)
    path, file = getattr(module, "__path__", None), getattr(module, "__file__", None)
    return os.path.dirname(os.path.abspath(file)) if path is not None and file else None


def _folders(paths):
    """Each folder as it is named and as symbolic links resolve, with a separator at its end."""
    return tuple({os.path.join(form, "") for path in paths if path for form in (path, os.path.realpath(path))})


def _is_below(name, folders):
    return os.path.abspath(name).startswith(folders) or os.path.realpath(name).startswith(folders)


def _describe(frame):
    name, line = frame.f_code.co_filename, frame.f_lineno
    found = _ASSIGNED.match(linecache.getline(name, line))
    stack, outer = [], frame
    while outer is not None and len(stack) < 8:
        stack.append((outer.f_code.co_filename, outer.f_lineno))
        outer = outer.f_back
    return {"file": name, "line": line, "function": frame.f_code.co_name, "name": found.group(1) if found else "", "stack": tuple(stack)}
