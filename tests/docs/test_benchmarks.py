"""The page of benchmarks and its bars are what bench/page.py makes of bench/recorded/figures.json, and the full tables have the same figures."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("page", ROOT / "bench/page.py")
page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(page)
FIGURES = page.figures()["figures"]


def test_the_page_and_its_bars_are_current():
    assert page.page() == page.PAGE.read_text(), "run `python3 bench/page.py`"
    assert page.bars() == page.BARS.read_text(), "run `python3 bench/page.py`"


@pytest.mark.parametrize("figure", FIGURES, ids=[figure["table"] for figure in FIGURES])
def test_a_figure_is_in_its_full_table(figure):
    text = (ROOT / "docs/background/benchmark-tables.md").read_text()
    section = re.search(rf"^### {re.escape(figure['table'])}$(.*?)(?=^##)", text, re.M | re.S)[1]
    rows = {cells[0].strip("*").replace(" (reference)", ""): cells for line in section.splitlines() if line.startswith("| ")
            for cells in [[cell.strip() for cell in line.strip("|").split("|")]]}
    for row in figure["contestants"]:
        assert page.number(row["rate"]) in rows[row["name"]], row
        assert f"{page.number(row['low'])}-{page.number(row['high'])} ({row['runs']})" in rows[row["name"]], row


def test_the_figures_of_the_readme_are_measured_ones():
    wav = FIGURES[0]
    rates = {row["name"]: row["rate"] for row in wav["contestants"]}
    words = (ROOT / "README.md").read_text()
    assert f"**{rates['Stoker'] // 1000},000 files/s**" in words
    assert f"{rates['Stoker'] / rates['DataLoader + soundfile, 2 workers']:.0f} times a PyTorch" in " ".join(words.split())
    assert f"{page.gain(wav):.0f} times SPDL" in words
    gains = [page.gain(figure) for figure in FIGURES]
    assert f"Stoker is {min(gains):.1f} to {max(gains):.1f} times as fast as the best peer, in {len(gains)} kinds of work" in words
