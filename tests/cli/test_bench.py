"""./dev bench: its pieces fit together. Nothing is installed and nothing is timed here."""

import argparse
import ast
import importlib
import json
import os
import py_compile
import subprocess
import sys

import pytest

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")
PEERS = os.path.join(BENCH, "peers")


def python_files(folder):
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".py"))


SUITES = [path for path in python_files(os.path.join(BENCH, "suites")) if not path.endswith("__init__.py")]


def calls(path, function):
    """The first two arguments of every call of `function` in the file."""
    with open(path) as file:
        tree = ast.parse(file.read())
    return [(node.args[0], node.args[1]) for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function]


def scripts_of(path, function):
    return [script.value for _, script in calls(path, function)]


def requirements():
    with open(os.path.join(PEERS, "requirements.json")) as file:
        return json.load(file)


def listed_peers():
    return [peer for venv in requirements().values() for peer in venv["peers"]]


@pytest.mark.parametrize("path", python_files(BENCH) + python_files(PEERS) + SUITES, ids=os.path.basename)
def test_every_file_of_bench_compiles(path, tmp_path):
    py_compile.compile(path, cfile=str(tmp_path / "out.pyc"), doraise=True)


@pytest.mark.parametrize("path", SUITES, ids=os.path.basename)
def test_a_suite_names_only_peers_that_exist_and_have_a_venv(path):
    for script in scripts_of(path, "peer"):
        assert os.path.exists(os.path.join(PEERS, script + ".py")), script
        assert script in listed_peers(), f"{script} is in no venv of requirements.json"
    for script in scripts_of(path, "ours"):
        assert os.path.exists(os.path.join(PEERS, script + ".py")), script


@pytest.mark.parametrize("path", SUITES, ids=os.path.basename)
def test_a_suite_names_only_bare_programs_that_are_built(path):
    with open(os.path.join(BENCH, "CMakeLists.txt")) as file:
        built = file.read()
    for program in scripts_of(path, "bare"):
        assert f"add_executable({program} " in built, program


def run_directly(path):
    """Peers whose Python a suite asks for by name, without a race."""
    with open(path) as file:
        tree = ast.parse(file.read())
    return [node.args[0].value for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "python_of"]


def test_each_peer_has_one_venv_and_is_run_by_some_suite():
    raced = {script for path in SUITES for script in [*scripts_of(path, "peer"), *run_directly(path)]}
    assert sorted(listed_peers()) == sorted(raced)


def test_every_package_of_a_peer_is_pinned():
    for name, venv in requirements().items():
        for word in " ".join(venv["packages"]).split():
            assert word.startswith("--") or "==" in word, f"{name}: {word}"


GOOD = "import sys; print('ready', flush=True); sys.stdin.readline(); print('{\"items\": 6, \"seconds\": 2, \"cpu_seconds\": 1, \"batch\": {\"dtype\": \"uint8\"}}')"
BAD = "raise ValueError('no | picture')"


@pytest.fixture
def table(tmp_path, monkeypatch):
    """table(good=..., bad=...) races scripts, two rounds, and returns the table's dict and its text."""
    monkeypatch.syspath_prepend(BENCH)
    contest = importlib.import_module("contest")
    monkeypatch.setattr(contest, "SCRIPTS", str(tmp_path))

    def race(expect=None, **scripts):
        for name, text in scripts.items():
            (tmp_path / (name + ".py")).write_text(text)
        contestants = [contest.Contestant(name, name, {}, "ours") for name in scripts]
        made = contest.contest("race", contestants, argparse.Namespace(rounds=2, work=str(tmp_path)), expect=expect)
        return made, contest.render(made)

    return race


def test_a_contestant_that_fails_is_a_row_with_its_reason_and_the_others_stay(table):
    made, text = table(good=GOOD, bad=BAD)
    assert [row.get("rate") for row in made["rows"]] == [3.0, None]
    assert "| bad | failed: ValueError: no / picture (exit 1) |" in text


def test_a_contestant_that_makes_something_else_than_was_asked_fails(table):
    made, _ = table(expect={"dtype": "float32"}, good=GOOD)
    assert made["rows"][0]["error"] == "did other work: dtype of the batch is uint8, not float32"


def test_of_a_group_only_the_fastest_is_shown(table):
    contest = importlib.import_module("contest")
    rows = contest.fastest_of_groups([{"group": "bare", "rate": 1.0}, {"group": "bare", "rate": 2.0}, {"group": "", "rate": 0.5}])
    assert [row["hidden"] for row in rows] == [True, False, False]


def test_help_lists_every_suite_with_its_first_line():
    done = subprocess.run([sys.executable, os.path.join(BENCH, "run.py"), "--help"], capture_output=True, text=True, check=True)
    for path in SUITES:
        name = os.path.basename(path)[:-3].replace("_", "-")
        with open(path) as file:
            assert f"  {name}" in done.stdout and ast.get_docstring(ast.parse(file.read())).splitlines()[0] in done.stdout, name
