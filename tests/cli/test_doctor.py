"""stoker doctor: what a machine offers, without a trace on its disk and without names in the JSON."""

import json
import os
import signal
import subprocess
import sys
import time


def test_the_machine_is_described_and_nothing_is_left(stoker, tmp_path):
    done = stoker("doctor", "--python", sys.executable)
    assert done.returncode == 0, done.stderr
    for word in ("cores", "memory", "/dev/shm", "io_uring", "disk", "accelerator", "Python", "reads"):
        assert f"\n  {word} " in done.stdout
    assert "the package stoker is there" in done.stdout
    assert not [name for name in os.listdir(tmp_path) if "doctor" in name]


def test_json_holds_figures_and_no_paths(stoker, tmp_path):
    done = stoker("doctor", "--json", "--python", sys.executable)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["cores"] > 0 and found["memory_bytes"] > 0 and found["open_files"] > 0
    assert found["python"]["version"] == sys.version.split()[0]
    assert found["python"]["stoker"] is True
    assert found["disk"] is None or found["disk"]["single_bytes_per_s"] > 0
    for secret in (str(tmp_path), os.path.expanduser("~") + "/", sys.prefix):
        assert secret not in done.stdout


def test_without_the_disk_nothing_is_written(stoker):
    found = json.loads(stoker("doctor", "--no-disk", "--json").stdout)
    assert found["disk"] is None


def test_ctrl_c_ends_it_and_leaves_nothing(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\ntouch began\nexec sleep 60\n")
    python.chmod(0o755)
    doctor = subprocess.Popen([os.environ["STOKER_BIN"], "doctor", "--python", str(python)], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 30
    while not (tmp_path / "began").exists() and time.monotonic() < end:
        time.sleep(0.02)
    doctor.send_signal(signal.SIGINT)
    out, err = doctor.communicate(timeout=30)  # long before the interpreter ends
    assert (doctor.returncode, out) == (130, "") and "interrupted" in err
    assert sorted(os.listdir(tmp_path)) == ["began", "python"]


def test_a_folder_that_is_not_there_and_a_bad_interpreter_are_named(stoker):
    done = stoker("doctor", "nowhere")
    assert done.returncode == 2 and "there is no folder `nowhere`" in done.stderr
    done = stoker("doctor", "--no-disk", "--python", "/bin/false")
    assert done.returncode == 0 and "`/bin/false` does not work as a Python" in done.stdout


def test_an_interpreter_that_writes_without_end_is_ended(stoker, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec yes\n")
    python.chmod(0o755)
    done = stoker("doctor", "--no-disk", "--python", str(python))
    assert done.returncode == 0 and "it writes without end" in done.stdout
