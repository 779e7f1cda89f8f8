"""Makes raw.pack, encoded.pack and seek-3.pack, which every later version must read: STOKER_BIN=... python3 tests/formats/make_packs.py

Needs Pillow. They are kept as they were written; run it again only for a pack of a new version, under a new name.
seek.pack has a seek.bin of version 2, which is not used any more; the one of seek-3.pack is of version 3.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from PIL import Image

FOLDER = pathlib.Path(__file__).parent
FILES = {"pictures/gray/gray.jpg": "gray.jpg", "pictures/rgb/a.b.png": "rgb.png", "pictures/rgb/yuv420.JPG": "yuv420.jpg",
         "sounds/a/float32.wav": "float32.wav", "sounds/b/s16.wav": "pcm-s16.wav"}

with tempfile.TemporaryDirectory() as made:
    for name, source in FILES.items():
        path = pathlib.Path(made) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FOLDER / source, path)
        os.utime(path, (1_700_000_000, 1_700_000_000))
    photo = pathlib.Path(made) / "photos" / "a.jpg"
    photo.parent.mkdir()
    Image.linear_gradient("L").convert("RGB").save(photo, quality=97, subsampling=0)
    os.utime(photo, (1_700_000_000, 1_700_000_000))
    for pack, source, words in (("encoded.pack", "pictures", []), ("seek-3.pack", "photos", []), ("raw.pack", "sounds", ["--dtype", "int16", "--samples", "60"])):
        if (FOLDER / pack).exists():
            continue
        subprocess.run([os.environ["STOKER_BIN"], "pack", f"{made}/{source}", FOLDER / pack, *words], check=True)
        about = FOLDER / pack / "pack.json"
        facts = json.loads(about.read_text())
        about.write_text(json.dumps({**facts, "source": source}, indent=1) + "\n")
