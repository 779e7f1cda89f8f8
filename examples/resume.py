"""Stop anywhere, go on elsewhere with other workers, get the same batches: python resume.py FOLDER"""

import json
import sys

import stoker


def make_loader(workers):
    return stoker.Loader(sys.argv[1], batch_size=4, shuffle=True, seed=7, num_workers=workers, output="numpy",
                         transform=[stoker.RandomResizedCrop(32), stoker.HorizontalFlip()])


def checksums(loader, steps=None):
    sums = []
    for images, _ in loader:
        sums.append(int(images.sum()))
        if len(sums) == steps:
            break
    return sums


with make_loader(2) as loader:
    whole = checksums(loader)

with make_loader(2) as loader:
    before = checksums(loader, steps=2)
    checkpoint = json.dumps(loader.state_dict())

with make_loader(1) as loader:
    loader.load_state_dict(json.loads(checkpoint))
    after = checksums(loader)

print(f"state: {checkpoint}")
print(f"{len(before)} + {len(after)} steps; same batches: {before + after == whole}")
