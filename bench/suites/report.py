"""How long the report of 72 points takes to write, and how large it is."""

import os
import shutil
import statistics
import subprocess
import tempfile
import time

from contest import ROOT, plain_table


def run(args):
    program = os.path.join(ROOT, "build", "release", "stoker")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(ROOT, "tests", "data", "case_a.csv"), folder)
        for flag, name in (("--html", "case_a-report.html"), ("--md", "case_a-report.md")):
            took = []
            for _ in range(max(5, args.rounds)):
                began = time.perf_counter()
                subprocess.run([program, "report", "case_a.csv", flag, "--quiet"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
                took.append(time.perf_counter() - began)
            rows.append([flag, f"{statistics.median(took):.3f} s", f"{min(took):.3f}-{max(took):.3f} s ({len(took)})",
                         f"{os.path.getsize(os.path.join(folder, name)):,} bytes"])
    yield plain_table("report of 72 points", "`stoker report tests/data/case_a.csv`, the whole process.", ["rendering", "median", "spread (runs)", "size"], rows)
