"""What is shown while a job runs: the panel on a terminal, and the figures on a port."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import urllib.error
import urllib.request

import pytest

pytest.importorskip("torch")

JOB = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset

class Samples(Dataset):
    def __len__(self): return 100000
    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.zeros(64)

if __name__ == "__main__":
    for step, batch in enumerate(DataLoader(Samples(), batch_size=2, num_workers=1)):
        if step % 10 == 0: print("line", step, flush=True)
        if step == 20: sys.stdout.write("half a li"); sys.stdout.flush()
        if step == 25: print("ne")
        time.sleep(0.01)
        if step == int(sys.argv[1]): break
    print("the job is over")
"""


@pytest.fixture
def train(tmp_path):
    (tmp_path / "train.py").write_text(JOB)
    return [sys.executable, "train.py"]


class Terminal:
    """A program on a pseudo-terminal, and the screen it sees."""

    def __init__(self, command, environment, folder, rows=24, columns=100):
        self.pyte = pytest.importorskip("pyte")
        self.screen = self.pyte.HistoryScreen(columns, rows, history=1000)
        self.stream = self.pyte.ByteStream(self.screen)
        self.raw = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(command[0], command, {**environment, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
        self.resize(rows, columns, tell_screen=False)

    def resize(self, rows, columns, tell_screen=True):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if tell_screen:
            self.screen.resize(rows, columns)

    def read_until(self, condition, patience=90):
        end = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < end, "\n".join(self.screen.display)
            if not select.select([self.master], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the other side is closed
                return
            self.raw += data
            self.stream.feed(data)

    def lines(self):
        """All that was printed above the panel, also what scrolled away."""
        gone = ["".join(row[column].data for column in range(self.screen.columns)).rstrip() for row in self.screen.history.top]
        return gone + [line.rstrip() for line in self.screen.display]

    def shows(self, pattern):
        return any(re.search(pattern, line) for line in self.screen.display)

    def end(self):
        self.read_until(lambda: False)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_a_panel_stays_below_what_the_job_prints_and_is_gone_at_the_end(binary, environment, tmp_path, train):
    terminal = Terminal([binary, "measure", "--", *train, "300"], environment, tmp_path)
    terminal.read_until(lambda: terminal.shows(r"so far: .*_bound") and terminal.shows("worker holds .* the job "))
    shown = terminal.screen.display
    assert re.match(r"── stoker: step \d+, \d+ s at [\d.,]+ samples/s ─+", shown[-5]), shown
    assert re.match(r"  [\d.]+ ms a step  [█░▒▓]+ *$", shown[-4]), shown
    assert re.match(r"  █ compute .* %  ░ fetch .* %  ▒ prep .* %  ▓ hand-off .* %", shown[-3]), shown
    assert re.match(r"  0\.\d of 2 batches ready, 1 worker holds [\d.]+ MiB, the job [\d.]+ MiB", shown[-2]), shown
    assert terminal.end() == 0
    lines = terminal.lines()
    for step in range(0, 301, 10):
        assert f"line {step}" in lines, lines
    assert "half a line" in lines and "the job is over" in lines
    assert not any("so far:" in line or "ms a step" in line for line in lines), lines
    assert any(re.match(r"stoker: \w+_bound", line) for line in lines), "\n".join(lines)


def test_a_panel_follows_a_terminal_that_changes_its_size(binary, environment, tmp_path, train):
    terminal = Terminal([binary, "measure", "--", *train, "100000"], environment, tmp_path)
    terminal.read_until(lambda: terminal.shows("so far:"))
    terminal.resize(40, 60)
    terminal.read_until(lambda: "so far:" in terminal.screen.display[39] and terminal.screen.display[35].startswith("──"))
    terminal.resize(16, 120)
    terminal.read_until(lambda: "so far:" in terminal.screen.display[15] and terminal.screen.display[11].startswith("──"))
    terminal.resize(8, 120)  # no room: the job has it all
    at = len(terminal.raw)
    terminal.read_until(lambda: terminal.raw[at:].count(b"line ") > 12)
    assert not terminal.shows("so far:")
    os.write(terminal.master, b"\x03")
    assert terminal.end() != 0
    assert b"KeyboardInterrupt" in terminal.raw and b"_bound" in terminal.raw


def test_ctrl_c_gives_the_terminal_back(binary, environment, tmp_path, train):
    terminal = Terminal([binary, "measure", "--", *train, "100000"], environment, tmp_path)
    terminal.read_until(lambda: terminal.shows("so far: .*_bound"))
    os.write(terminal.master, b"\x03")
    assert terminal.end() != 0
    assert terminal.screen.margins is None or terminal.screen.margins.bottom == 23
    lines = terminal.lines()
    assert not any("so far:" in line for line in lines), lines
    assert any(re.match(r"stoker: \w+_bound", line) for line in lines), "\n".join(lines)


def test_quiet_and_lines_draw_no_panel(binary, environment, tmp_path, train):
    for flags, wanted in ((["--quiet"], b"_bound"), (["--every", "1s"], b"stoker: step ")):
        terminal = Terminal([binary, "measure", *flags, "--", *train, "200"], environment, tmp_path)
        assert terminal.end() == 0
        assert b"\x1b7" not in terminal.raw and b"so far:" not in terminal.raw
        assert wanted in terminal.raw


@pytest.fixture
def served(binary, environment, tmp_path, train):
    """The address under which a running job's figures are, and the process."""
    with subprocess.Popen([binary, "measure", "--metrics-port", "0", "--", *train, "100000"], env=environment, cwd=tmp_path, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        try:
            said = run.stderr.readline()
            assert said.startswith("stoker: figures at http://127.0.0.1:"), said
            while run.stdout.readline() != "line 50\n":
                assert run.poll() is None
            yield said.split()[-1], run
        finally:
            run.send_signal(signal.SIGTERM)
            run.communicate(timeout=60)


def ask(address, accept=""):
    with urllib.request.urlopen(urllib.request.Request(address, headers={"Accept": accept}), timeout=10) as reply:
        return reply.headers["Content-Type"], reply.read().decode()


def families(address, accept=""):
    pytest.importorskip("prometheus_client")
    import prometheus_client.openmetrics.parser
    import prometheus_client.parser

    kind, text = ask(address, accept)
    parser = prometheus_client.openmetrics.parser if accept else prometheus_client.parser
    assert ("openmetrics" in kind) == bool(accept), kind
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


def value(family, **labels):
    found = [sample.value for sample in family.samples if labels.items() <= sample.labels.items()]
    assert len(found) == 1, family
    return found[0]


@pytest.mark.parametrize("accept", ["application/openmetrics-text; version=1.0.0", ""])
def test_the_figures_are_what_prometheus_reads(accept, served):
    address, _ = served
    first = families(address, accept)
    assert first["stoker_stall_seconds"].type == first["stoker_samples"].type == "counter"
    assert first["stoker_step_seconds"].type == "histogram"
    end = time.monotonic() + 60
    while sum(sample.value for sample in families(address, accept)["stoker_samples"].samples) < 100:  # none before they are first read
        assert time.monotonic() < end
        time.sleep(0.3)
    later = families(address, accept)
    assert value(later["stoker_samples"], role="train", rank="0") >= 100
    stalls = {stage: value(later["stoker_stall_seconds"], stage=stage) for stage in ("fetch", "prep", "handoff")}
    assert stalls["fetch"] > 0
    for stage, seconds in stalls.items():
        assert seconds >= sum(sample.value for sample in first["stoker_stall_seconds"].samples if sample.labels.get("stage") == stage)
    buckets = {sample.labels["le"]: sample.value for sample in later["stoker_step_seconds"].samples if sample.name.endswith("_bucket")}
    count = [sample.value for sample in later["stoker_step_seconds"].samples if sample.name.endswith("_count")][0]
    assert buckets["+Inf"] == count >= 49 and list(buckets.values()) == sorted(buckets.values())
    assert value(later["stoker_memory_bytes"], kind="job") > 1e6
    version = [sample.labels for family in later.values() for sample in family.samples if sample.name == "stoker_build_info"]
    assert len(version) == 1 and re.match(r"\d+\.\d+", version[0]["version"])


def test_other_questions_get_a_short_answer(served):
    address, _ = served
    assert "at /metrics" in ask(address.replace("/metrics", "/"))[1]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        ask(address + "/else")
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(address, data=b"x", timeout=10)


def test_a_port_that_cannot_be_had_is_named_before_the_job_starts(binary, environment, tmp_path, served):
    port = re.search(r":(\d+)/", served[0])[1]
    for word, cause in ((port, "Address already in use"), ("70000", "is 0 up to 65535, not 70000")):
        done = subprocess.run([binary, "measure", "--metrics-port", word, "--", "touch", "ran"], capture_output=True, text=True, env=environment, cwd=tmp_path)
        assert done.returncode == 2 and cause in done.stderr, done.stderr
    assert not (tmp_path / "ran").exists()
