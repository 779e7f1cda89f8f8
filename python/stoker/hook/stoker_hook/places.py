"""Where in the user's program something was called: file, line, and the name it was assigned to."""

import linecache
import os
import re
import sys
import sysconfig

_ASSIGNED = re.compile(r"^\s*([A-Za-z_][\w.]*)\s*(?::[^=]+)?=[^=]")
_OWN = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")} - {None})


def caller():
    """The nearest frame outside of installed packages; failing that, the nearest outside of torch."""
    frame = sys._getframe(1)
    second = None
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith("<") and not name.startswith(_OWN):
            if not name.startswith(_LIBRARIES):
                return _describe(frame)
            if second is None and (os.sep + "torch" + os.sep) not in name:
                second = frame
        frame = frame.f_back
    return _describe(second) if second is not None else None


def _describe(frame):
    name, line = frame.f_code.co_filename, frame.f_lineno
    found = _ASSIGNED.match(linecache.getline(name, line))
    stack, outer = [], frame
    while outer is not None and len(stack) < 8:
        stack.append((outer.f_code.co_filename, outer.f_lineno))
        outer = outer.f_back
    return {"file": name, "line": line, "function": frame.f_code.co_name, "name": found.group(1) if found else "", "stack": tuple(stack)}
