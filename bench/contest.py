"""Runs contestants in turn, round after round, and makes one table of what they did."""

import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(HERE, "peers"))

from contestant import tree_pss_bytes  # noqa: E402
from prepare import say  # noqa: E402


@dataclass
class Contestant:
    name: str
    command: list            # says "ready", waits for a line, prints one line of JSON last
    ours: bool = False
    reference: bool = False  # a bound, not a peer: left out when the best peer is named
    environment: dict = field(default_factory=dict)


def ours(name, script, args, **more):
    return Contestant(name, [sys.executable, os.path.join(HERE, "peers", script + ".py"), json.dumps(args)], ours=True, **more)


def bare(name, program, *args):
    return Contestant(name, [os.path.join(ROOT, "build", "release", "bench", program), *map(str, args)], reference=True)


def peer(name, script, args, work):
    return Contestant(name, [peer_python(script, work), os.path.join(HERE, "peers", script + ".py"), json.dumps(args)])


def peer_python(script, work):
    """The interpreter of the peer's own venv, made on first use from its pinned packages, torch first and alone."""
    with open(os.path.join(HERE, "peers", "requirements.json")) as file:
        requirements = json.load(file)[script]
    venv = os.path.join(work, "venv-" + script.replace("_", "-"))
    python, stamp = os.path.join(venv, "bin", "python"), os.path.join(venv, "installed")
    want = "\n".join(requirements)
    if not (os.path.exists(stamp) and open(stamp).read() == want):
        say(f"installing into {os.path.relpath(venv)}: {', '.join(requirements)}")
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        for requirement in requirements:
            done = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirement.split()],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"error: cannot install {requirement} for {script}: {done.stderr.strip().splitlines()[-1]}")
        with open(stamp, "w") as file:
            file.write(want)
    return python


def run_once(contestant, before=None):
    """One run's JSON, with the peak of the process tree's memory; {"error": ...} when it failed."""
    process = subprocess.Popen(contestant.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "STOKER_NO_PROGRESS": "1", **contestant.environment})
    errors = []
    drain = threading.Thread(target=lambda: errors.extend(process.stderr), daemon=True)
    drain.start()
    ready = process.stdout.readline()
    if ready.strip() == "ready":
        if before:
            before()
        process.stdin.write("go\n")
        process.stdin.flush()
    peak, done = 0, threading.Event()

    def watch():
        nonlocal peak
        while not done.wait(0.2):
            peak = max(peak, tree_pss_bytes(process.pid))
    watcher = threading.Thread(target=watch)
    watcher.start()
    lines = process.stdout.read().strip().splitlines()
    status = process.wait()
    done.set()
    watcher.join()
    drain.join()
    if status or not lines:
        return {"error": (errors or ["no output\n"])[-1].strip() + f" (exit {status})"}
    result = json.loads(lines[-1])
    result["memory_bytes"] = max(peak, result.get("memory_bytes", 0))
    return result


def contest(title, contestants, rounds, before=None, note=""):
    """Everyone once per round, starting with another one each round. Returns the table as a dict."""
    runs = {contestant.name: [] for contestant in contestants}
    for i in range(rounds):
        for j in range(len(contestants)):
            contestant = contestants[(i + j) % len(contestants)]
            say(f"{title}: round {i + 1} of {rounds}, {contestant.name}")
            runs[contestant.name].append(run_once(contestant, before))
    rows = [row_of(contestant, runs[contestant.name]) for contestant in contestants]
    return {"title": title, "note": note, "rows": rows}


def row_of(contestant, runs):
    good = [run for run in runs if "error" not in run]
    row = {"name": contestant.name, "ours": contestant.ours, "reference": contestant.reference, "runs": runs}
    if len(good) < len(runs):
        row["error"] = next(run["error"] for run in runs if "error" in run)
        return row
    rates = [run["items"] / run["seconds"] for run in good]
    row.update(rate=statistics.median(rates), low=min(rates), high=max(rates), items=good[0]["items"],
               cpu_per_item_s=statistics.median(run["cpu_seconds"] / run["items"] for run in good),
               memory_bytes=max(run["memory_bytes"] for run in good))
    return row


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def render(table):
    """The table as Markdown, with the ratio of our best row to each."""
    rows = sorted((row for row in table["rows"] if "rate" in row), key=lambda row: -row["rate"])
    best = max((row["rate"] for row in rows if row["ours"]), default=None)
    lines = [f"### {table['title']}", ""]
    if table["note"]:
        lines += [table["note"], ""]
    lines += ["| contestant | items/s | spread (runs) | CPU per item | peak memory | Stoker is |", "|---|---:|---:|---:|---:|---:|"]
    for row in rows:
        name = f"**{row['name']}**" if row["ours"] else row["name"] + (" (reference)" if row["reference"] else "")
        ratio = f"{best / row['rate']:.2f}x" if best and not row["ours"] else ""
        lines.append(f"| {name} | {number(row['rate'])} | {number(row['low'])}-{number(row['high'])} ({len(row['runs'])}) | "
                     f"{row['cpu_per_item_s'] * 1e6:,.1f} us | {row['memory_bytes'] / 1e6:,.0f} MB | {ratio} |")
    lines += [f"| {row['name']} | failed | {row['error']} | | | |" for row in table["rows"] if "error" in row]
    peers = [row for row in rows if not row["ours"] and not row["reference"]]
    if best and peers:
        lines += ["", f"Best peer: {peers[0]['name']}. Stoker does {best / peers[0]['rate']:.1f} times as much."]
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
