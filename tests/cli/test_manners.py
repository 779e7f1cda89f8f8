"""Help, wrong use, streams and exit codes: what every verb promises."""

import json
import os
import pathlib
import platform
import pty
import re
import select
import subprocess

import pytest

PICTURES = pathlib.Path(__file__).parent.parent / "formats"
VERBS = ["demo", "inspect", "load", "measure", "tune", "run", "pack", "check", "prepare", "stage", "plan", "report", "doctor", "completions"]


def test_stoker_alone_prints_help_on_stderr_and_exits_2(stoker):
    done = stoker()
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("examples:\n  stoker demo\n")


def test_help_lists_exactly_the_verbs_that_exist(stoker):
    done = stoker("-h")
    assert (done.returncode, done.stderr) == (0, "")
    listed = re.findall(r"^  ([a-z]+) {2,}", done.stdout.split("verbs:")[1].split("flags:")[0], re.M)
    assert listed == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_short_help_fits_one_screen_and_long_help_shows_more(stoker, verb):
    brief, full = stoker(verb, "-h"), stoker(verb, "--help")
    for done in (brief, full):
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("examples:\n")
    lines = brief.stdout.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert len(full.stdout.splitlines()) > len(lines)
    flags = set(re.findall(r"--[a-z][a-z-]+", brief.stdout))
    assert flags <= set(re.findall(r"--[a-z][a-z-]+", full.stdout)) | {"--help"}


def test_long_help_of_load_names_every_option_of_the_loader(stoker):
    text = stoker("load", "--help").stdout
    for flag in """batch-size [no-]shuffle seed transform epochs num-workers prefetch-factor memory-limit storage io-depth io-batch
                   read-ahead io-threads dtype layout color decode exif-orientation on-error max-errors timeout drop-last last-batch rank
                   world-size label subset subset-seed save-subset class-subset class-subset-seed class-list inflate step-ms workload steps save-errors state cold
                   json quiet force""".split():
        assert re.search(rf"^  (-q, )?--{re.escape(flag)}\b", text, re.M), flag
    assert "resnet50-h100" in text and "rrc:224" in text


def test_errors_speak_of_flags_not_of_python(stoker, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.jpg").write_bytes(b"\xff\xd8 not a picture")
    (folder / "b.jpg").write_bytes((PICTURES / "rgb.jpg").read_bytes())
    done = stoker("load", folder, "--transform", "resize:8x8")
    assert done.returncode == 2
    assert "use --on-error skip, replace or zero" in done.stderr
    done = stoker("load", folder, "--transform", "resize:8x8", "--on-error", "skip", "--memory-limit", "10KB")
    assert re.search(r"--memory-limit 9.8 KiB is too small: .* need at least .* \(\d+ bytes\)", done.stderr), done.stderr
    done = stoker("load", folder, "--transform", "resize:8x8", "--on-error", "skip", "--memory-limit", "300KB", "--batch-size", "4000")
    assert "raise --memory-limit, or lower --batch-size or --num-workers" in done.stderr


def test_what_a_terminal_would_obey_is_written_out(stoker, tmp_path):
    (tmp_path / "a\x1b[31m.wav").write_bytes(b"RIFF but no more")
    for verb in ("inspect", "load"):
        done = stoker(verb, tmp_path)
        assert "\x1b" not in done.stdout + done.stderr
        assert "\\x1B[31m" in done.stdout + done.stderr


def test_version_is_the_one_of_the_project(stoker):
    done = stoker("--version")
    assert done.returncode == 0
    assert re.match(r"stoker \d+\.\d+\.\d+\n", done.stdout)


def test_version_names_what_the_build_reads_and_its_code_for_this_cpu(stoker):
    lines = dict(line.split(": ", 1) for line in stoker("--version").stdout.splitlines()[1:])
    assert list(lines) == ["reads", "from", "volumes", "prepares", "CPU"]
    has_avx2 = re.search(r"^flags\b.*\bavx2\b", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    if platform.machine() == "x86_64":
        assert lines["CPU"] == ("AVX2 code, which this CPU runs" if has_avx2 else "AVX2 code, which this CPU lacks: plain code runs instead")


def test_an_unknown_verb_offers_the_nearest(stoker):
    done = stoker("lod", "data")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: there is no verb `lod`\n\nhint: did you mean `stoker load`?\n"


def test_a_verb_that_is_not_there_yet_is_refused(stoker):
    done = stoker("advise")
    assert done.returncode == 2
    assert done.stderr.startswith("error: there is no verb `advise`\n")


@pytest.mark.parametrize("words, message, hint", [
    (["load", "x", "--bach-size", "3"], "`stoker load` has no flag `--bach-size`", "did you mean `--batch-size`?"),
    (["load", "x", "--batch-size"], "`--batch-size` needs a value", "--batch-size N"),
    (["load", "x", "--batch-size", "0"], "--batch-size is a whole number from 1 to 100,000,000, not `0`", ""),
    (["load", "x", "--batch-size=ten"], "--batch-size is a whole number from 1 to 100,000,000, not `ten`", ""),
    (["load", "x", "--json=yes"], "`--json` takes no value", "--help"),
    (["load", "x", "--num-workers", "many"], "--num-workers is auto or a whole number from 0 to 1,024, not `many`", ""),
    (["load", "x", "--memory-limit", "lots"], "--memory-limit: `lots` is not a size in bytes", "4GB"),
    (["load", "x", "--workload", "resnet50-h10"], "there is no workload `resnet50-h10`", "`resnet50-h100`"),
    (["load", "x", "--workload", "unet3d-a100", "--step-ms", "3"], "both set the step", "one of the two"),
    (["load", "x", "--drop-last", "--last-batch", "pad"], "--drop-last and --last-batch pad contradict each other", "one of the two"),
    (["load", "x", "--dtype", "float12"], "--dtype is one of uint8, uint16, float16, bfloat16, float32, int16, not `float12`", "float16"),
    (["load", "x", "--on-error", "skp"], "skp", "skip"),
    (["load", "x", "--transform", "rcc:224"], "rcc", "rrc"),
    (["load"], "`stoker load` needs ADDRESS", "stoker load data/train"),
    (["load", "a", "b"], "got a further `b`", "--help"),
    (["inspect", "x", "--color", "sometimes"], "`--color` takes auto, always or never, not `sometimes`", ""),
    (["load", "x", "--color", "gray"], "`--color` takes auto, always or never, not `gray`", "`--image-color gray`"),
    (["load", "x", "--image-color", "blue"], "--image-color is one of rgb, gray, keep, not `blue`", ""),
    (["load", "x", "--max-errors", "0"], "--max-errors is a count from 1 or a share below 1, not `0`", "--on-error raise allows none"),
    (["tune", "x", "--color-mode", "gray"], "`stoker tune` has no flag `--color-mode`", "it is `--image-color` now"),
    (["measure", "--knob", "a=1"], "`stoker measure` has no flag `--knob`", "it is `--with` now"),
    (["pack", "x", "y", "--no-seek-index"], "`stoker pack` has no flag `--no-seek-index`", "it is `--seek-index off` now"),
    (["pack", "x", "y", "--seek-index", "memory"], "is auto or off, not `memory`", ""),
    (["check", "x", "--decode"], "`stoker check` has no flag `--decode`", "it is `--decode-all` now"),
    (["inspect", "x", "--decode"], "`stoker inspect` has no flag `--decode`", "it is `--decode-all` now"),
    (["demo", "x"], "`stoker demo` takes no operand", "--help"),
])
def test_wrong_use_is_one_sentence_with_the_remedy(stoker, words, message, hint):
    done = stoker(*words)
    assert (done.returncode, done.stdout) == (2, "")
    first, *rest = done.stderr.split("\n\nhint: ")
    assert first.startswith("error: ") and message in first and "\n" not in first.rstrip("\n")
    assert hint in "".join(rest)


@pytest.mark.parametrize("verb", ["inspect", "load"])
def test_a_missing_folder_is_named(stoker, verb):
    done = stoker(verb, "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ") and "`nowhere`" in done.stderr


@pytest.mark.parametrize("words", [["inspect", ""], ["load", ""], ["tune", ""], ["tune", "", "--dry-run"], ["check", ""]], ids=" ".join)
def test_an_empty_address_is_refused(stoker, words):
    done = stoker(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: cannot open a data set: the address is empty")


@pytest.mark.parametrize("verb", ["inspect", "load"])
def test_an_empty_folder_is_an_error_that_names_it(stoker, tmp_path, verb):
    (tmp_path / "empty").mkdir()
    done = stoker(verb, "empty")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ") and "empty" in done.stderr


@pytest.mark.parametrize("words", [["load", "--help"], ["inspect", "data"], ["load", "data"]])
def test_a_broken_pipe_is_quiet_and_0(binary, environment, tmp_path, sounds, words):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([binary, *words], stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, env=environment, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("words", [["--version"], ["load", "--help"], ["inspect", "data"], ["inspect", "data", "--json"]], ids=" ".join)
def test_a_closed_stdout_is_an_error(binary, environment, tmp_path, sounds, words):
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", binary, *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot write the answer: stdout is closed")


def test_a_full_disk_under_stdout_is_an_error(binary, environment, tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run([binary, "-h"], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 2
    assert "cannot write `stdout`: No space left on device" in done.stderr


def on_a_terminal(binary, words, env, cwd):
    """Runs with stdout and stderr on a terminal of its own; returns (exit code, everything it drew)."""
    master, slave = pty.openpty()
    process = subprocess.Popen([binary, *words], stdin=slave, stdout=slave, stderr=slave, env=env, cwd=cwd)
    os.close(slave)
    drawn = b""
    while True:
        try:
            ready, _, _ = select.select([master], [], [], 60)
            assert ready, "nothing was drawn for a minute"
            block = os.read(master, 65536)
        except OSError:  # the other end is closed
            block = b""
        if not block:
            break
        drawn += block
    os.close(master)
    return process.wait(timeout=60), drawn.decode()


LOAD = ["load", "data", "--batch-size", "4", "--step-ms", "40", "--transform", "pad:800"]


def test_a_terminal_gets_colour_and_a_bar_that_is_gone_at_the_end(binary, environment, tmp_path, sounds):
    code, drawn = on_a_terminal(binary, LOAD, {**environment, "TERM": "xterm", "LANG": "C.UTF-8"}, tmp_path)
    assert code == 0
    assert "feeding" in drawn and "\r\x1b[K" in drawn
    after_the_bar = drawn.rsplit("\r\x1b[K", 1)[1]
    assert "feeding  " not in after_the_bar and "AU" in after_the_bar
    assert "\x1b[1m" in after_the_bar and "█" in after_the_bar


@pytest.mark.parametrize("words, env", [
    (["--quiet"], {}), (["--json"], {}), ([], {"STOKER_NO_PROGRESS": "1"}), ([], {"TERM": "dumb"}),
])
def test_the_bar_can_be_switched_off(binary, environment, tmp_path, sounds, words, env):
    _, drawn = on_a_terminal(binary, LOAD + words, {**environment, "TERM": "xterm", **env}, tmp_path)
    assert "feeding  " not in drawn and "\r\x1b[K" not in drawn


@pytest.mark.parametrize("words, env", [(["--color", "never"], {}), ([], {"NO_COLOR": "1"})])
def test_colour_can_be_switched_off(binary, environment, tmp_path, sounds, words, env):
    _, drawn = on_a_terminal(binary, LOAD + ["-q"] + words, {**environment, "TERM": "xterm", **env}, tmp_path)
    assert "AU" in drawn and "\x1b[" not in drawn


def test_a_plain_locale_gets_ascii(stoker, sounds):
    assert stoker(*LOAD).stdout.isascii()
    assert "█" in stoker(*LOAD, env={"LANG": "en_US.UTF-8"}).stdout


@pytest.mark.parametrize("words, kind", [
    (["load", "nothere"], "not_found"), (["load", "data", "--batch-size", "none"], "usage"), (["load", "--nonsense"], "usage"), (["nonsense"], "usage"),
    (["report", "nothere"], "not_found"), (["stage", "nothere", "copy"], "not_found")], ids=lambda words: " ".join(words) if isinstance(words, list) else words)
def test_with_json_an_error_is_one_object_too(stoker, sounds, words, kind):
    plain, done = stoker(*words), stoker(*words, "--json")
    assert (plain.returncode, plain.stdout) == (2, "")
    assert (done.returncode, done.stderr) == (2, plain.stderr)
    answer = json.loads(done.stdout)
    assert list(answer) == ["schema", "stoker_version", "error"] and answer["schema"] == "stoker.error/1"
    error = answer["error"]
    assert error["kind"] == kind and f"error: {error['message']}\n" in done.stderr
    assert (f"hint: {error['hint']}\n" in done.stderr) if error["hint"] else "hint:" not in done.stderr


def test_the_json_flag_of_another_program_is_not_ours(stoker):
    done = stoker("measure", "--", "no-such-program-here", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no-such-program-here" in done.stderr


def test_an_error_in_json_with_stdout_closed_is_told_on_stderr(binary, environment, tmp_path):
    done = subprocess.run(f"{binary} load nothere --json >&-", shell=True, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "cannot open `nothere`" in done.stderr


@pytest.mark.parametrize("words", [["inspect", "data"], ["load", "data"]])
def test_json_is_one_object_with_schema_and_version(stoker, sounds, words):
    done = stoker(*words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert answer["schema"] == f"stoker.{words[0]}/{2 if words[0] == 'inspect' else 1}"
    assert stoker("--version").stdout.split()[1] == answer["stoker_version"]
