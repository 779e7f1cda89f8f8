"""Hooks of mkdocs: pages are written for GitHub, and these differ on the site.

- Links to files outside docs/ lead to copies of them, as text, below source/.
- CHANGELOG.md is a page.
- A code block such as ```python torch has its language only; the rest is for tests/docs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<=\]\()([^)\s:#]+)(#[^)\s]*)?(?=\))")
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)


def outside(page: Path, target: str) -> Path | None:
    """The file that a link leads to, from the root, if it is not in docs/."""
    path = Path(os.path.normpath(page.parent / target))
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "docs") and path.is_file() else None


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    files.append(File.generated(config, "changelog.md", content=(ROOT / "CHANGELOG.md").read_text().replace("](docs/", "](")))
    found = {path for page in (ROOT / "docs").rglob("*.md") for target, _ in LINK.findall(page.read_text()) if (path := outside(page, target))}
    for path in sorted(found):
        files.append(File.generated(config, f"source/{path}.txt", content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    here = ROOT / "docs" / page.file.src_uri

    def to_copy(found: re.Match[str]) -> str:
        path = outside(here, found[1])
        return os.path.relpath(ROOT / "docs/source" / f"{path}.txt", here.parent) if path else found[0]

    parts, last = [], 0
    for block in FENCED.finditer(markdown):
        parts += [LINK.sub(to_copy, markdown[last:block.start()]), re.sub(r"\A```(\w+) .*", r"```\1", block[0])]
        last = block.end()
    return "".join([*parts, LINK.sub(to_copy, markdown[last:])])
