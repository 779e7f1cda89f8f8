"""`./dev docs` builds the site without a warning, and every link of it leads somewhere."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere():
    done = subprocess.run([ROOT / "dev", "docs"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    page = Path(done.stdout.strip())
    assert page == ROOT / "build/site/index.html" and "keeps accelerators fed" in page.read_text()


def test_every_page_is_in_the_navigation_and_on_the_first_page():
    navigation, first = (ROOT / "mkdocs.yml").read_text(), (ROOT / "docs/index.md").read_text()
    for page in sorted((ROOT / "docs").rglob("*.md")):
        name = str(page.relative_to(ROOT / "docs"))
        assert f": {name}" in navigation, f"mkdocs.yml does not name {name}"
        assert name == "index.md" or f"({name})" in first, f"docs/index.md does not link to {name}"
