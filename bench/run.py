"""./dev bench NAME --data FOLDER: Stoker and its peers on the same work, in turn, as one table and one JSON file."""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import contest
from suites import SUITES


def arguments():
    names = "\n".join(f"  {name:<14}{suite.__doc__.strip().splitlines()[0]}" for name, suite in SUITES.items())
    parser = argparse.ArgumentParser(prog="./dev bench", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__,
                                     epilog="names:\n" + names + "\n  all           each of them\n\n"
                                     "Imports are outside every time; each table says whether start-up and warm-up are inside.")
    parser.add_argument("name", choices=[*SUITES, "all"], metavar="NAME")
    parser.add_argument("--data", metavar="FOLDER", help="a folder with photos and recordings, or with photos.tar and speech.tar, or a tar; "
                        "without it everything is generated")
    parser.add_argument("--work", default=os.path.join(contest.ROOT, ".bench"), metavar="DIR",
                        help="where data and peers are kept between runs (default: .bench of the clone)")
    parser.add_argument("--table", metavar="WORD", help="only the races with WORD in their title, such as float32")
    parser.add_argument("--only", metavar="NAMES", help="only Stoker and the contestants with one of these words in their name, such as tf.data,DALI")
    parser.add_argument("--rounds", type=int, default=3, help="how often everyone runs (default: 3)")
    parser.add_argument("--seed", type=int, default=1, help="of what is simulated (default: 1)")
    parser.add_argument("--live", nargs="?", const="all", choices=["grid", "search", "all"],
                        help="of tune-live: record its grids again (half an hour), run the search live against them (five minutes), or both")
    parser.add_argument("--dlio", metavar="FOLDER", help="of mlperf: a clone of dlio_benchmark, the driver of MLPerf Storage")
    parser.add_argument("--json", metavar="FILE", help="where the results go (default: DIR/results/NAME.json)")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    args.work = os.path.abspath(args.work)
    os.makedirs(os.path.join(args.work, "results"), exist_ok=True)
    return args


def write_json(path, results):
    """After every table, so that a long run that is stopped leaves what it had."""
    with open(path + ".partial", "w") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    os.replace(path + ".partial", path)


def main():
    args = arguments()
    facts = contest.environment(args.work)
    if facts["load_before"] > 0.5:
        print(f"note: this machine is busy (load {facts['load_before']:.1f}): figures will be lower and wider than they could be", file=sys.stderr)
    path, tables = args.json or os.path.join(args.work, "results", args.name + ".json"), []
    for name in [name for name in SUITES if name != "mlperf" or args.dlio] if args.name == "all" else [args.name]:
        for table in filter(None, SUITES[name].run(args)):
            print((contest.render_plain if "header" in table else contest.render)(table) + "\n", flush=True)
            tables.append({"bench": name, **table})
            facts["versions"] = contest.versions_of(tables)
            write_json(path, {"schema": "stoker-bench/1", "bench": args.name, "rounds": args.rounds, "environment": facts, "tables": tables})
    if not tables:
        raise SystemExit(f"error: no table of {args.name} has `{args.table}` in its title")
    packages = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    print(f"{facts['cores']} cores ({facts['cpu']}), {facts['memory_bytes'] / 2**30:.0f} GiB, {facts['filesystem']}, Linux {facts['kernel']}, "
          f"Python {facts['python']}, {packages}; load before {facts['load_before']:.1f}; {facts['time']}")
    print(f"\nwritten: {os.path.relpath(path)}", file=sys.stderr)


if __name__ == "__main__":
    main()
