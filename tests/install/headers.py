"""Compares the installed headers with those that the product includes. Headers of the tests are not installed, all others are.

usage: headers.py SOURCE_FOLDER PREFIX
"""

import pathlib
import re
import sys

source, prefix = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
INCLUDE = re.compile(r'^\s*#\s*include\s+["<](stoker/[^">]+)[">]', re.MULTILINE)

# Everything that a source file of the product includes, and what those headers include.
to_read = [path for folder in ("src", "cli", "python/bindings") for path in (source / folder).rglob("*.cc") if not path.name.endswith("_test.cc")]
to_read.append(source / "src/stoker/stoker.h")
wanted = {"stoker/stoker.h"}
while to_read:
    for name in INCLUDE.findall(to_read.pop().read_text()):
        if name not in wanted:
            wanted.add(name)
            to_read.append(source / "src" / name)

installed = {str(path.relative_to(prefix / "include")) for path in (prefix / "include").rglob("*.h")}
for name in sorted(installed - wanted):
    print(f"{name} is installed, but only tests include it: name it *_test.h")
for name in sorted(wanted - installed):
    print(f"{name} is not installed, but the product includes it")
sys.exit(installed != wanted)
