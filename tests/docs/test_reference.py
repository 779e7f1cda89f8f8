"""The generated pages of docs/reference are current: docs/generate.py would write the same."""

import importlib.util
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
generate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(generate)
REMEDY = "run `python docs/generate.py` after a build"


def test_the_page_of_the_command_line_is_what_the_program_says():
    binary = Path(os.environ.get("STOKER_BIN", ROOT / "build/release/stoker"))
    assert generate.cli_page(binary) == generate.CLI_PAGE.read_text(), REMEDY


def test_the_page_of_the_package_is_what_its_docstrings_say():
    assert generate.python_page() == generate.PYTHON_PAGE.read_text(), REMEDY


def test_the_page_of_the_package_has_every_public_name():
    import stoker

    page = generate.PYTHON_PAGE.read_text()
    missing = [name for name in stoker.__all__ if not name.startswith("_") and f"stoker.{name}" not in page and f"| `{name}(" not in page]
    assert not missing, missing
