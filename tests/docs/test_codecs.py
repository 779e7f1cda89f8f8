"""What depends on the format of a file stays in src/stoker/codec: other folders ask its table."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Functions of one format, and the table itself. probe_npy is not among them: bare .npy arrays are a kind of data set.
OF_ONE_FORMAT = re.compile(r"Media::|codec/(table|wav|image|array)\.h|\b(probe|decode|list)_(jpeg|png|wav|npz)\b|\bdecode_npy\b|JPEG, PNG")


def sources():
    for folder in ("src/stoker", "cli", "python/bindings"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cc", ".h") and "codec" not in path.relative_to(ROOT).parts and not path.stem.endswith("_test"):
                yield path


def test_no_folder_but_codec_names_a_format():
    found = [f"{path.relative_to(ROOT)}:{number}: {line.strip()}" for path in sources()
             for number, line in enumerate(path.read_text().splitlines(), 1) if OF_ONE_FORMAT.search(line)]
    assert not found, "ask codec/media.h instead:\n" + "\n".join(found)
