"""A flag is the same in every verb that has it: spelling, value, default and help."""

import re

import pytest

# Of tune and plan, --memory-limit bounds other things than a loader; the help says which.
OWN_MEANING = {("tune", "--memory-limit")}


def flags(stoker, verb):
    """flag -> its whole line of --help."""
    found, name = {}, ""
    for line in stoker(verb, "--help").stdout.splitlines():
        if start := re.match(r"  (?:-\w, )?(--(?:\[no-\])?[a-z-]+)", line):
            name = start[1]
            found[name] = line.strip()
        elif name and line.startswith(" " * 25):
            found[name] += " " + line.strip()
        else:
            name = ""
    return {flag: " ".join(text.split()) for flag, text in found.items()}


@pytest.mark.parametrize("verb", ["tune", "measure"])
def test_a_flag_of_the_loader_is_the_same_as_in_load(stoker, verb):
    of_load, of_verb = flags(stoker, "load"), flags(stoker, verb)
    shared = [flag for flag in LOADER_FLAGS if flag in of_verb and (verb, flag) not in OWN_MEANING]
    assert len(shared) >= 9
    for flag in shared:
        assert of_verb[flag] == of_load[flag]


LOADER_FLAGS = ["--batch-size", "--[no-]shuffle", "--seed", "--transform", "--dtype", "--layout", "--image-color", "--seek-index", "--decode",
                "--storage", "--prefetch-factor", "--num-workers", "--memory-limit", "--label",
                "--class-subset", "--class-subset-seed", "--class-list", "--subset", "--subset-seed", "--inflate"]


@pytest.mark.parametrize("verb", ["tune", "pack", "stage"])
def test_the_flags_that_choose_samples_are_the_same_as_in_load(stoker, verb):
    of_load, of_verb = flags(stoker, "load"), flags(stoker, verb)
    for flag in ("--class-subset", "--class-subset-seed", "--class-list", "--subset", "--subset-seed"):
        assert of_verb[flag] == of_load[flag]


def test_load_has_every_flag_of_the_loader(stoker):
    assert set(LOADER_FLAGS) <= set(flags(stoker, "load"))


@pytest.mark.parametrize("verb", ["demo", "inspect", "load", "measure", "tune", "run", "pack", "check", "prepare", "stage", "plan", "report"])
def test_color_is_the_terminals(stoker, verb):
    assert flags(stoker, verb)["--color"] == "--color WHEN colour on the terminal: auto, always or never [auto]"


def test_notes_are_spelled_as_flags_that_run(stoker, sounds):
    done = stoker("load", sounds, "--batch-size", "2", "--shuffle=blocks:2:4", "--storage", "ram")
    assert done.returncode == 0 and "--shuffle=blocks: 2 neighbours" in done.stdout
    done = stoker("load", sounds, "--shuffle=often")
    assert "--shuffle is off, full, blocks, blocks:NEIGHBOURS:MIXED, nodes or nodes:COUNT, not `often`" in done.stderr


def test_a_value_behind_a_flag_that_takes_it_with_an_equals_sign_is_told_how(stoker):
    for words in (["data", "--shuffle", "full"], ["--shuffle", "full", "data"]):
        refused = stoker("load", *words)
        assert refused.returncode == 2 and "did you mean `--shuffle=full`?" in refused.stderr
