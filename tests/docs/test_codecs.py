"""What depends on the format of a file stays in src/stoker/codec: other folders ask its table."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Functions of one format, and the table itself. probe_npy is not among them: bare .npy arrays are a kind of data set.
OF_ONE_FORMAT = re.compile(r"Media::|codec/(table|wav|flac|image|array)\.h|\b(probe|decode|list)_(jpeg|png|webp|wav|flac|npz)\b|\bdecode_npy\b|JPEG, PNG|\.(jpe?g|png|wav|npz), ")


def sources():
    for folder in ("src/stoker", "cli", "python/bindings"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cc", ".h") and "codec" not in path.relative_to(ROOT).parts and not path.stem.endswith("_test"):
                yield path


def test_no_folder_but_codec_names_a_format():
    found = [f"{path.relative_to(ROOT)}:{number}: {line.strip()}" for path in sources()
             for number, line in enumerate(path.read_text().splitlines(), 1) if OF_ONE_FORMAT.search(line)]
    assert not found, "ask codec/media.h instead:\n" + "\n".join(found)


def test_the_docs_name_every_extension_and_every_path_column():
    section = (ROOT / "docs/reference/datasets.md").read_text().split("## Which files")[1].split("\n## ")[0]
    tables = [found for path in (ROOT / "src/stoker/codec").glob("*.cc") for found in re.findall(r"\.extensions = \{([^}]*)\}", path.read_text())]
    extensions = {f".{word}" for table in tables for word in re.findall(r'"(\w+)"', table)}
    assert extensions == set(re.findall(r"`(\.\w+)`", section.split("Other files")[0]))
    columns = re.search(r"kPathColumns = \{(.*?)\}", (ROOT / "src/stoker/dataset/csv_table.cc").read_text(), re.DOTALL)[1]
    assert re.findall(r'"(\w+)"', columns) == re.findall(r"`(\w+)`", section.split("first found of")[1].split("in any case")[0])
