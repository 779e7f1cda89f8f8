"""What `stoker measure`, `tune` and `run` put into a training job: timing of every torch DataLoader, written to mapped files;
arguments of DataLoaders (STOKER_SETTINGS); and Stoker as what feeds them (STOKER_SUPPLY).

Pure Python 3.8, standard library only, no part of the compiled package. Nothing happens until torch's DataLoader is
imported; an error in here turns the hook off and never reaches the job.
"""

import os
import sys

__all__ = ["install", "watch_for_torch"]

TARGET = "torch.utils.data.dataloader"


def install(folders, module=None, early=False):
    """Times the DataLoaders of `module` (torch.utils.data.dataloader) from now on; records go to files in each folder.
    `early`: torch is still being imported, nobody has got hold of its methods yet.
    Returns the recorder in use, which is an older one where the hook was there already."""
    from . import loaders, recorder

    writer = None
    for folder in folders:
        writer = recorder.Recorder(folder, writer)
    return loaders.install(module or sys.modules[TARGET], writer or recorder.Recorder(None), early)


def watch_for_torch(folders):
    """`folders`, separated by colons; none: nothing is timed."""
    listed = [folder for folder in folders.split(":") if folder]
    if TARGET in sys.modules:
        _install_all(listed, sys.modules[TARGET], False)
    else:
        sys.meta_path.insert(0, _Watcher(listed))


def _install_all(folders, module, early):
    """Each part on its own: one that fails leaves the others alone. The job's own arguments come first, timing last."""
    if os.environ.get("STOKER_SETTINGS"):
        try:
            from . import settings

            settings.install(module, os.environ["STOKER_SETTINGS"])
        except BaseException:
            pass
    if os.environ.get("STOKER_SUPPLY") == "1":
        try:
            from . import supply

            supply.install(module)
        except BaseException:
            pass
    if folders:
        install(folders, module, early)


class _Watcher:
    """A finder that finds nothing itself: it lets the others find the target, and adds a step after its execution."""

    def __init__(self, folders):
        self._folders = folders

    def find_spec(self, name, path=None, target=None):
        if name != TARGET:
            return None
        try:
            sys.meta_path.remove(self)
        except ValueError:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                self._extend(spec.loader)
                return spec
        return None

    def _extend(self, loader):
        original = loader.exec_module

        def exec_module(module):
            original(module)
            try:
                _install_all(self._folders, module, bool(getattr(module.torch.__spec__, "_initializing", False)))
            except BaseException:
                pass

        loader.exec_module = exec_module
