"""Compares this checkout with another one of the same project: the rows of Stoker in a suite, run in turn.

  .venv/bin/python bench/against.py ../stoker-before npy-copy raw-crop --data FOLDER --work FOLDER [--rounds 4]

Build both checkouts first (`./dev build`). Both read the same files in --work, so that neither has them in a better
place of the disk. Look at the ratio of the medians and at that of the pairs: where they differ by more than a few per
cent, the machine was not quiet, and more rounds help.
"""

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def rates(checkout, suite, args):
    """Rate by (table, row) of one run of `suite` with the package of `checkout`."""
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "result.json")
        command = [os.path.join(checkout, ".venv/bin/python"), os.path.join(checkout, "bench/run.py"), suite, "--data", args.data, "--work", args.work,
                   "--only", args.only, "--rounds", "1", "--json", result]
        environment = {**os.environ, "PYTHONPATH": os.path.join(checkout, "build/release/python")}
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"error: {suite} failed in `{checkout}`:\n{done.stderr[-2000:]}")
        with open(result) as file:
            tables = json.load(file)["tables"]
    return {(table["title"], row["name"]): row["rate"] for table in tables for row in table.get("rows", [])
            if isinstance(row, dict) and row.get("rate") and not row.get("hidden")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="the other checkout, built")
    parser.add_argument("suites", nargs="+", metavar="SUITE")
    parser.add_argument("--data", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--only", default="no other loader", help="peers to run beside Stoker, as in run.py; default: none")
    args = parser.parse_args()
    args.data, args.work, before = (os.path.abspath(path) for path in (args.data, args.work, args.before))
    print("| table | row | before | now | medians | pairs |\n|---|---|---:|---:|---:|---:|")
    for suite in args.suites:
        seen = collections.defaultdict(lambda: {before: [], HERE: []})
        for turn in range(args.rounds):
            for checkout in (before, HERE) if turn % 2 == 0 else (HERE, before):
                print(f"{suite}: round {turn + 1} of {args.rounds}, {checkout}", file=sys.stderr, flush=True)
                for row, rate in rates(checkout, suite, args).items():
                    seen[row][checkout].append(rate)
        for (table, row), both in seen.items():
            old, new = both[before], both[HERE]
            if len(old) != len(new):
                continue  # a row that only one of them has
            pairs = statistics.median(now / then for then, now in zip(old, new))
            print(f"| {table} | {row} | {statistics.median(old):,.0f} | {statistics.median(new):,.0f} | "
                  f"{statistics.median(new) / statistics.median(old):.1%} | {pairs:.1%} |", flush=True)


main()
