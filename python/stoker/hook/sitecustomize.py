# Found first on PYTHONPATH by every Python that `stoker measure`, `tune` and `run` start, of whatever version: so the syntax is that of
# Python 2 as well, nothing is printed, and nothing that goes wrong here reaches the program.
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _start():
    try:
        if os.environ.get("STOKER_SOURCE"):
            import stoker_hook.source

            stoker_hook.source.install(os.environ["STOKER_SOURCE"])
        if any(os.environ.get(name) for name in ("STOKER_MEASURE_DIR", "STOKER_SETTINGS", "STOKER_SUPPLY")):
            import stoker_hook

            stoker_hook.watch_for_torch(os.environ.get("STOKER_MEASURE_DIR", ""))
    except BaseException:
        pass


def _leave_path():
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]


def _chain():
    """Runs the sitecustomize that this one hides, as Python would have: an error in it is reported as usual."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", None) != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


_start()
_leave_path()
_chain()
