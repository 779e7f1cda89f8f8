"""In which arithmetic the job trains: whether it enters autocast, and whether its model is channels_last.

`torch.autocast.__enter__` and `torch.nn.Module.to` are replaced until each has told what there is to tell, then put
back. TF32 and the memory format of batches stand in the line that describes a batch (facts.py).
"""

import functools
import json
import sys

from .quiet import quiet


class Arithmetic:
    def __init__(self, torch, recorder):
        self._torch = torch
        self._recorder = recorder
        self._said = []

    @quiet
    def watch(self):
        self._watch(sys.modules["torch.amp.autocast_mode"].autocast, "__enter__", self._enters)
        # Module is not there yet: it is when torch goes on to import its first subclasses.
        sys.meta_path.insert(0, _Imported("torch.nn.modules.linear", self._watch_models))

    @quiet
    def _watch_models(self):
        self._watch(sys.modules["torch.nn.modules.module"].Module, "to", self._moves)

    def say_again(self):
        """For a recorder that was added since."""
        for line in self._said:
            self._recorder.write(line)

    def _watch(self, cls, name, look):
        original = getattr(cls, name)

        @functools.wraps(original)  # TorchScript compiles what `__wrapped__` points to
        def watched(this, *arguments, **options):
            if look(this, options) and cls.__dict__.get(name) is watched:
                setattr(cls, name, original)
            return original(this, *arguments, **options)

        setattr(cls, name, watched)

    @quiet
    def _enters(self, context, options):
        if not context._enabled:
            return False
        self._say({"k": "autocast", "device": str(context.device), "dtype": str(context.fast_dtype).replace("torch.", "")})
        return True

    @quiet
    def _moves(self, module, options):
        if options.get("memory_format") is not self._torch.channels_last:
            return False
        self._say({"k": "channels_last"})
        return True

    def _say(self, line):
        self._said.append(json.dumps(line))
        self._recorder.write(self._said[-1])


class _Imported:
    """A finder that finds nothing: it calls `then` once, when somebody begins to import `name`."""

    def __init__(self, name, then):
        self._name = name
        self._then = then

    def find_spec(self, name, path=None, target=None):
        if name == self._name and self in sys.meta_path:
            sys.meta_path.remove(self)
            self._then()
        return None
