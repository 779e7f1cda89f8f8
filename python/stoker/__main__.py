"""``python -m stoker``: the command-line program that came with this package."""

import os
import shutil
import sys
import sysconfig


def main() -> None:
    beside = os.path.join(sysconfig.get_path("scripts"), "stoker")
    program = beside if os.access(beside, os.X_OK) else shutil.which("stoker")
    if program is None:
        sys.exit(f"error: cannot find the program `stoker` in `{os.path.dirname(beside)}` or on PATH\n\n"
                 "hint: install the package with pip: `pip install .`")
    os.execv(program, ["stoker", *sys.argv[1:]])


if __name__ == "__main__":
    main()
