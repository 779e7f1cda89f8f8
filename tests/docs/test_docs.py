"""Runs what the README and docs/ show: `console` blocks with bash, `python` blocks in one program per page.

Each page gets a folder of its own with small data: data/train (2 classes of JPEG), data/speech (WAV), data/slices (16-bit PNG
with an index.csv), data/scans (DICOM), data/rows.npy and data/speech.pack, and train.py (examples/plain_torch.py).
Other blocks (`sh`) are not run; what they say of ./dev is checked against its help.
"""

import importlib.util
import os
import re
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "src/stoker/README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.M | re.S)


@dataclass
class Block:
    language: str
    needs: list      # modules named after the language: ```python torch
    text: str
    line: int


def blocks(page, language):
    text = page.read_text()
    return [Block(match[1], match[2].split(), match[3], text.count("\n", 0, match.start()) + 2)
            for match in FENCE.finditer(text) if match[1] == language]


def commands(block):
    """(command, the output lines shown below it) for each line that starts with `$ `."""
    found = []
    for line in re.sub(r"\\\n\s*", "", block.text).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


def wav(frames, generator):
    samples = (generator.standard_normal(frames) * 4000).astype("<i2").tobytes()
    return (b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
            + b"data" + struct.pack("<I", len(samples)) + samples)


@pytest.fixture
def folder(tmp_path):
    generator = numpy.random.default_rng(42)
    for name in ("cat", "dog"):
        (tmp_path / "data/train" / name).mkdir(parents=True)
        (tmp_path / "data/speech" / name).mkdir(parents=True)
        for i in range(40):
            pixels = generator.integers(0, 256, (96, 128, 3), numpy.uint8)
            Image.fromarray(pixels).save(tmp_path / "data/train" / name / f"{i}.jpg")
            (tmp_path / "data/speech" / name / f"{i}.wav").write_bytes(wav(1000 + 50 * i, generator))
    (tmp_path / "data/slices").mkdir()
    rows = ["path,label,hu_offset"]
    for i in range(6):
        Image.fromarray(generator.integers(0, 65536, (64, 64), numpy.uint16)).save(tmp_path / f"data/slices/{i}.png")
        rows.append(f"{i}.png,{i % 2},32768")
    (tmp_path / "data/slices/index.csv").write_text("\n".join(rows) + "\n")
    write_scans(tmp_path / "data/scans", generator)
    (tmp_path / "train.py").write_text((ROOT / "examples/plain_torch.py").read_text())
    numpy.save(tmp_path / "data/rows.npy", generator.integers(0, 256, (64, 8, 8), numpy.uint8))
    subprocess.run(["stoker", "pack", "data/speech", "data/speech.pack", "--kind", "raw", "--samples", "4000"], cwd=tmp_path,
                   env=surroundings(tmp_path), check=True, capture_output=True)
    return tmp_path


def write_scans(folder, generator):
    """A series of eight CT slices."""
    import pydicom

    folder.mkdir(parents=True)
    for i in range(8):
        data = pydicom.Dataset()
        data.file_meta = pydicom.dataset.FileMetaDataset()
        data.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        data.SOPClassUID, data.SOPInstanceUID, data.SeriesInstanceUID = pydicom.uid.CTImageStorage, f"1.2.3.{i + 1}", "1.2.3"
        data.Modality, data.InstanceNumber, data.PixelSpacing = "CT", i + 1, [0.7, 0.7]
        data.ImagePositionPatient, data.ImageOrientationPatient = [0, 0, 2.5 * i], [1, 0, 0, 0, 1, 0]
        data.RescaleSlope, data.RescaleIntercept, data.Rows, data.Columns = 1, -1024, 64, 64
        data.SamplesPerPixel, data.PhotometricInterpretation, data.PixelRepresentation = 1, "MONOCHROME2", 0
        data.BitsAllocated, data.BitsStored, data.HighBit = 16, 12, 11
        data.PixelData = generator.integers(0, 4096, (64, 64), numpy.uint16).tobytes()
        data.save_as(folder / f"{i}.dcm", enforce_file_format=True)


def surroundings(folder):
    binary = Path(os.environ.get("STOKER_BIN", ROOT / "build/release/stoker"))
    if not binary.exists():
        pytest.fail(f"there is no program at {binary}: ./dev build makes it")
    return {**os.environ, "PATH": f"{binary.parent}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder),
            "STOKER_NO_PROGRESS": "1"}


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=name_of)
def test_the_commands_of_a_page_work_and_answer_as_shown(page, folder):
    for block in blocks(page, "console"):
        shown = commands(block)
        assert shown, f"{page}:{block.line}: a console block without a command: start it with `$ `"
        for command, output in shown:
            done = subprocess.run(["bash", "-c", command], cwd=folder, env=surroundings(folder), stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=120)
            said = done.stdout + done.stderr
            assert done.returncode == 0, f"{page}:{block.line}: `{command}` exits {done.returncode}:\n{said}"
            for line in output:
                assert label(line) in squeezed(said), f"{page}:{block.line}: `{command}` no longer says `{label(line)}`:\n{said}"


def squeezed(text):
    return re.sub(r"\s+", " ", text)


def label(line):
    """The words at the start of a line, up to a wide gap or a figure, which differ from machine to machine; none in a continued line."""
    words = re.match(r" {0,4}([A-Za-z](?: ?[A-Za-z/-])*)", line)
    return words[1] if words else ""


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_the_python_of_a_page_runs(page, folder):
    if page.name == "tutorial.md":  # its first command makes this folder, with other photos
        (folder / "demo-data").mkdir()
        (folder / "demo-data/images").symlink_to("../data/train")
    program = ["def train_step(*batch): pass"]
    for block in blocks(page, "python"):
        if all(importlib.util.find_spec(module) for module in block.needs):
            lined_up = "\n" * (block.line - 1) + block.text  # a failure names the page's own line
            program.append(f"exec(compile({lined_up!r}, {str(page)!r}, 'exec'))")
    done = subprocess.run([sys.executable, "-c", "\n".join(program)], cwd=folder, env=surroundings(folder), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def without_code(page):
    return re.sub(FENCE, "", page.read_text())


def anchors(page):
    """What a heading of the page is called in a link, as GitHub and the site spell it."""
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.*)$", without_code(page), re.M)]
    return [re.sub(r"[^\w\s-]", "", title.strip().lower()).replace(" ", "-") for title in plain]


def test_every_link_of_a_page_leads_somewhere():
    for page in [*PAGES, ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            there = page.parent / path if path else page
            assert there.exists(), f"{name_of(page)} links to {target}, which does not exist"
            assert not anchor or anchor in anchors(there), f"{name_of(page)} links to {target}, and there is no such heading"


def test_no_two_headings_of_a_page_have_the_same_anchor():
    for page in (ROOT / "docs").rglob("*.md"):
        found = anchors(page)
        assert len(set(found)) == len(found), f"{name_of(page)}: {sorted(name for name in found if found.count(name) > 1)}"


def test_every_page_that_code_names_exists():
    """Messages, help texts and comments name pages by their path from the root."""
    for folder in ("src", "cli", "python", "tests", "bench", "examples"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".cc", ".h", ".py", ".md", ".sh", ".yaml"):
                for name in re.findall(r"\bdocs/[\w./-]+\.md", path.read_text(errors="replace")):
                    assert (ROOT / name).exists(), f"{name_of(path)} names {name}, which does not exist"


def test_lines_of_prose_fit_the_screen():
    """Tables and code may be wider; a link or a code span is never broken."""
    for page in [page for page in PAGES if page.is_relative_to(ROOT / "docs")] + [ROOT / "README.md"]:
        for line in without_code(page).splitlines():
            unbroken = re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)
            fits = len(line) <= 120 or line.startswith(("|", "    ", "<", "![")) or len(unbroken) < 100
            assert fits, f"{name_of(page)}: a line of {len(line)} columns: {line[:60]}..."


def test_the_dev_commands_that_the_pages_name_exist():
    usage = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"^  \./dev (\w+)", usage, re.M))
    assert known, usage
    for page in PAGES:
        for verb in re.findall(r"\./dev (\w+)", page.read_text()):
            assert verb in known, f"{name_of(page)} names `./dev {verb}`, which does not exist"


def test_the_documents_name_every_option_of_the_loader():
    import inspect

    import stoker

    text = (ROOT / "docs/reference/loader.md").read_text()
    options = [name for name, parameter in inspect.signature(stoker.Loader.__init__).parameters.items()
               if name != "self" and parameter.kind is not parameter.VAR_KEYWORD]
    assert options
    missing = [name for name in options if f"`{name}`" not in text]
    assert not missing, f"docs/reference/loader.md does not name {missing}"


def test_the_first_screen_of_the_readme_is_short():
    python = blocks(ROOT / "README.md", "python")
    assert len(python) == 1 and len(python[0].text.splitlines()) <= 8


NAMED = re.compile(r"\bstoker\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?!\w|/|\.\w)")  # not `stoker.measure/1`, the schema of a file
NO_PYTHON = {"h", "pth"}  # files


def test_whatever_a_message_a_hint_or_a_page_names_of_the_package_exists():
    import importlib

    import stoker

    def exists(name):
        at = stoker
        for depth, word in enumerate(name.split(".")):
            if not hasattr(at, word):
                try:
                    importlib.import_module(".".join(["stoker", *name.split(".")[:depth + 1]]))
                except ImportError:
                    return False
            at = getattr(at, word)
        return True

    sources = [*PAGES, *(ROOT / "python/stoker").rglob("*.py"), *(ROOT / "examples").rglob("*.py"),
               *(path for folder in ("src", "cli", "python/bindings") for path in (ROOT / folder).rglob("*.cc") if not path.stem.endswith("_test"))]
    named = {name: path for path in sources for name in NAMED.findall(path.read_text()) if name not in NO_PYTHON}
    assert {"Loader", "measure"} <= named.keys()
    missing = sorted(f"{name_of(path)} names stoker.{name}" for name, path in named.items() if not exists(name))
    assert not missing, missing
