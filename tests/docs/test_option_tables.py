"""The tables of docs/reference/loader.md are those of the engine."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADINGS = {"samples": "Which samples", "order": "Which order", "output": "What comes out", "resources": "How hard it works",
            "bad_samples": "Bad samples"}


def documented():
    """name -> (heading, values, default, meaning), from every table that begins with `option`."""
    rows, heading, in_table = {}, "", False
    for line in (ROOT / "docs/reference/loader.md").read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        in_table = line.startswith("|") and (in_table or line.startswith("| option |"))
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if in_table and cells[0].startswith("`"):
            rows[cells[0].strip("`")] = (heading, *cells[1:])
    return rows


def test_the_docs_have_every_option_in_the_order_of_the_table():
    engine = pytest.importorskip("stoker._engine")
    assert list(documented()) == [row["name"] for row in engine.loader_options()]


def test_the_docs_say_what_the_table_says():
    engine = pytest.importorskip("stoker._engine")
    rows = documented()
    for row in engine.loader_options():
        heading, values, default, meaning = rows[row["name"]]
        assert (heading, values, default) == (HEADINGS[row["heading"]], row["values"], row["default_text"]), row["name"]
        assert meaning == row["meaning"] or meaning.startswith(row["meaning"] + ". "), row["name"]


def test_the_guide_to_tuning_names_every_knob():
    engine = pytest.importorskip("stoker._engine")
    knobs = ", ".join(row["name"] for row in engine.loader_options() if row["is_knob"])
    assert f"(`{knobs}`)" in (ROOT / "docs/how-to/find-settings.md").read_text()
