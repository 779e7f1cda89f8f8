"""Runs contestants in turn, round after round, and makes one table of what they did."""

import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(HERE, "peers"))

import venvs  # noqa: E402
from contestant import tree_pss_bytes  # noqa: E402
from prepare import say  # noqa: E402

SCRIPTS = os.path.join(HERE, "peers")
TIME_LIMIT_S = 900  # a contestant that hangs is a row that failed, not a table that never comes


@dataclass
class Contestant:
    """Says "ready", waits for a line, prints one line of JSON last."""

    name: str
    script: str              # of peers/, or a program of bench/bare
    args: object             # a dict, given as JSON; a program's list of words
    kind: str = "peer"       # "ours", "peer", or "reference": a bound or other work, never named as the best peer
    antialias: str = ""      # "yes", "no" or the filter's name, where images are resized
    group: str = ""          # of one group only the fastest is shown
    expect: dict = field(default_factory=dict)  # where it differs from the table's
    environment: dict = field(default_factory=dict)

    def command(self, work):
        if not isinstance(self.args, dict):
            return [os.path.join(ROOT, "build", "release", "bench", self.script), *map(str, self.args)]
        python = sys.executable if self.kind == "ours" else venvs.python_of(self.script, work)
        return [python, os.path.join(SCRIPTS, self.script + ".py"), json.dumps(self.args)]


def ours(name, script, args, **more):
    return Contestant(name, script, args, "ours", **more)


def peer(name, script, args, **more):
    return Contestant(name, script, args, **more)


def bare(name, program, *args, **more):
    return Contestant(name, program, args, "reference", **more)


def in_a_cell(message):
    """A message as one cell of a Markdown table."""
    return " ".join(message.replace("|", "/").split())[:200]


def run_once(contestant, work, before=None):
    """One run's JSON, with the peak of the process tree's memory; {"error": ...} when it failed."""
    try:
        command = contestant.command(work)
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "STOKER_NO_PROGRESS": "1", **contestant.environment})
    except (venvs.Unavailable, OSError) as reason:
        return {"error": in_a_cell(str(reason))}
    errors, peak, late, done = [], 0, False, threading.Event()

    def watch():
        nonlocal peak, late
        began = time.monotonic()
        while not done.wait(0.2):
            peak = max(peak, tree_pss_bytes(process.pid))
            if time.monotonic() - began > TIME_LIMIT_S:
                late = True
                process.kill()
                return
    threads = [threading.Thread(target=lambda: errors.extend(process.stderr), daemon=True), threading.Thread(target=watch)]
    for thread in threads:
        thread.start()
    if process.stdout.readline().strip() == "ready":
        if before:
            before()
        process.stdin.write("go\n")
        process.stdin.flush()
    lines = process.stdout.read().strip().splitlines()
    status = process.wait()
    done.set()
    for thread in threads:
        thread.join()
    if late:
        return {"error": f"not done after {TIME_LIMIT_S} s"}
    if status or not lines:
        return {"error": in_a_cell((errors or ["no output"])[-1]) + f" (exit {status})"}
    result = json.loads(lines[-1])
    result["memory_bytes"] = max(peak, result.get("memory_bytes", 0))
    return result


def contest(title, contestants, args, before=None, note="", expect=None):
    """Everyone once per round, starting with another one each round. Returns the table as a dict.

    `expect` is what a batch must be: {"shape": ..., "dtype": ..., "contiguous": ..., "min": (low, high), "mean": (low, high)}.
    """
    if getattr(args, "table", None) and args.table not in title:
        return None
    if getattr(args, "only", None):
        contestants = [one for one in contestants if one.kind == "ours" or any(word in one.name for word in args.only.split(","))]
    runs = {contestant.name: [] for contestant in contestants}
    for i in range(args.rounds):
        for j in range(len(contestants)):
            contestant = contestants[(i + j) % len(contestants)]
            if any("error" in run for run in runs[contestant.name]):
                continue  # it will not be better
            say(f"{title}: round {i + 1} of {args.rounds}, {contestant.name}")
            run = run_once(contestant if i == 0 else unchecked(contestant), args.work, before)
            fault = other_work(run.get("batch"), {**(expect or {}), **contestant.expect})
            runs[contestant.name].append({**run, "error": fault} if fault else run)
    rows = [row_of(contestant, runs[contestant.name]) for contestant in contestants]
    return {"title": title, "note": note, "rows": fastest_of_groups(rows)}


def unchecked(contestant):
    """Looking at a batch once is enough; some peers compile again for it."""
    return replace(contestant, args={**contestant.args, "check": False}) if isinstance(contestant.args, dict) else contestant


def other_work(batch, expect):
    """How the batch differs from what was to be made, or None."""
    for key, want in expect.items() if batch else ():
        if not want[0] <= batch[key] <= want[1] if isinstance(want, tuple) else batch[key] != want:
            return f"did other work: {key} of the batch is {batch[key]}, not {want}"
    return None


def row_of(contestant, runs):
    row = {"name": contestant.name, "kind": contestant.kind, "antialias": contestant.antialias, "group": contestant.group, "runs": runs}
    errors = [run["error"] for run in runs if "error" in run]
    if errors:
        return {**row, "error": errors[0]}
    rates = [run["items"] / run["seconds"] for run in runs]
    row.update(rate=statistics.median(rates), low=min(rates), high=max(rates), items=runs[0]["items"],
               cpu_per_item_s=statistics.median(run["cpu_seconds"] / run["items"] for run in runs),
               memory_bytes=max(run["memory_bytes"] for run in runs))
    return row


def fastest_of_groups(rows):
    """All rows, those of a group but its fastest marked hidden; the JSON file keeps them."""
    best = {}
    for row in rows:
        if row["group"] and row.get("rate", 0) >= best.get(row["group"], {}).get("rate", 0):
            best[row["group"]] = row
    return [{**row, "hidden": bool(row["group"]) and row is not best[row["group"]]} for row in rows]


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def render(table):
    """The table as Markdown; for each row of ours a column says how many times as much as every other it did."""
    rows = sorted((row for row in table["rows"] if "rate" in row and not row["hidden"]), key=lambda row: -row["rate"])
    mine = [row for row in table["rows"] if "rate" in row and row["kind"] == "ours"]
    antialias = any(row["antialias"] for row in rows)
    lines = [f"### {table['title']}", ""]
    if table["note"]:
        lines += [table["note"], ""]
    header = ["contestant"] + ["antialias"] * antialias + ["items/s", "spread (runs)", "CPU per item", "peak memory"] + [f"{row['name']} is" for row in mine]
    lines += ["| " + " | ".join(header) + " |", "|---" * (1 + antialias) + "|---:" * (4 + len(mine)) + "|"]
    for row in rows:
        name = f"**{row['name']}**" if row["kind"] == "ours" else row["name"] + " (reference)" * (row["kind"] == "reference")
        cells = [name] + [row["antialias"]] * antialias + [
            number(row["rate"]), f"{number(row['low'])}-{number(row['high'])} ({len(row['runs'])})",
            f"{row['cpu_per_item_s'] * 1e6:,.1f} us", f"{row['memory_bytes'] / 1e6:,.0f} MB"]
        lines.append("| " + " | ".join(cells + [f"{own['rate'] / row['rate']:.2f}x" if row["kind"] != "ours" else "" for own in mine]) + " |")
    lines += [f"| {row['name']} | failed: {row['error']} " + "| " * (len(header) - 1) + "|" for row in table["rows"] if "error" in row]
    peers = [row for row in rows if row["kind"] == "peer"]
    if mine and peers:
        times = ", ".join(f"{row['name']} {row['rate'] / peers[0]['rate']:.1f}" for row in mine)
        lines += ["", f"Times as much as the best peer, {peers[0]['name']}: {times}."]
    return "\n".join(lines)


def plain_table(title, note, header, rows):
    """A table that is not a race."""
    return {"title": title, "note": note, "header": header, "rows": rows}


def render_plain(table):
    lines = [f"### {table['title']}", ""] + ([table["note"], ""] if table["note"] else [])
    lines += ["| " + " | ".join(table["header"]) + " |", "|" + "---|" * len(table["header"])]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in table["rows"]]
    return "\n".join(lines)


def environment(work):
    """What a figure depends on."""
    cpu = "unknown"
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    filesystem = subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "-T", work], capture_output=True, text=True).stdout.strip() or "unknown"
    return {"cores": len(os.sched_getaffinity(0)), "cpu": cpu, "kernel": platform.release(), "python": platform.python_version(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "filesystem": filesystem,
            "load_before": os.getloadavg()[0], "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def versions_of(tables):
    import stoker

    found = {"stoker": stoker.__version__}
    for table in tables:
        for row in table["rows"]:
            for run in row.get("runs", []) if isinstance(row, dict) else []:
                found.update(run.get("versions", {}))
    return found
