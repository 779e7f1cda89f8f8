"""How far decode="fast" is from exact, and what it saves: photos as they are and photos enlarged to 3000 x 2000."""

import math
import os
import time

import prepare
from contest import plain_table

LARGE = (3000, 2000)
LARGE_COUNT = 60
TRANSFORMS = {"RandomResizedCrop 224": "rrc:224", "Resize 256, CenterCrop 224": "resize:256,centercrop:224"}


def photos(args):
    """The images of --data, each once; without --data those that the other benchmarks make."""
    return prepare.find(args.data, args.work, (".jpg", ".jpeg"), "photos.tar") or sorted(prepare.files_of(prepare.jpeg_folder(None, args.work)))[:200]


def large(sources, work):
    """The first of them at the size that cameras give."""
    from PIL import Image

    def make(folder):
        prepare.say(f"enlarging {min(LARGE_COUNT, len(sources))} photos to {LARGE[0]} x {LARGE[1]}")
        for number, path in enumerate(sources[:LARGE_COUNT]):
            Image.open(path).convert("RGB").resize(LARGE, Image.BICUBIC).save(os.path.join(folder, f"{number:04d}.jpg"), quality=90)
    return sorted(prepare.files_of(prepare.whole(os.path.join(work, f"jpeg-large-{min(LARGE_COUNT, len(sources))}"), make)))


def loader(paths, transform, decode, seek_index="off", **options):
    import stoker

    return stoker.Loader(samples=[(path, 0) for path in paths], batch_size=20, transform=transform, decode=decode, output="numpy", seek_index=seek_index, **options)


def error(paths, transform):
    """Mean and largest difference in levels of 255; PSNR of all images together, and the least of any one."""
    import numpy

    total = squares = most = count = 0
    least = math.inf
    with loader(paths, transform, "exact") as exact, loader(paths, transform, "fast") as fast:
        for one, other in zip(exact, fast):
            difference = numpy.abs(one.data.astype(numpy.int32) - other.data)
            total += int(difference.sum())
            most = max(most, int(difference.max()))
            each = (difference.astype(numpy.float64) ** 2).mean((1, 2, 3))
            squares += float(each.sum())
            count += len(each)
            least = min(least, psnr(float(each.max())))
        pixels = difference[0].size
    return f"{total / count / pixels:.2f}", str(most), f"{psnr(squares / count):.1f} dB", f"{least:.1f} dB"


def psnr(mean_square):
    return math.inf if mean_square == 0 else 10 * math.log10(255**2 / mean_square)


def cpu_ms(paths, transform, decode, seek_index):
    """CPU time of the process per image, decoding in the calling thread, for at least half a second."""
    with loader(paths, transform, decode, seek_index, num_workers=0) as data:
        for _ in range(1 if seek_index == "off" else 4):  # memory and the page cache are warm then, and the places noted
            for _ in data:
                pass
        images, began = 0, time.process_time()
        while time.process_time() - began < 0.5:
            for batch in data:
                images += len(batch.data)
        return (time.process_time() - began) / images * 1e3


def run(args):
    found = photos(args)
    sets = ((f"{len(found)} photos", found), (f"{min(LARGE_COUNT, len(found))} of {LARGE[0]} x {LARGE[1]}", large(found, args.work)))
    yield plain_table("fast-error, uint8", "Differences to decode=\"exact\" in levels of 255, over every channel of every pixel; PSNR over all images together, and of the worst one.",
                      ["images", "transform", "mean", "most", "PSNR", "worst image"],
                      [[what, name, *error(paths, transform)] for what, paths in sets for name, transform in TRANSFORMS.items()])
    rows = []
    for what, paths in sets:
        for name, transform in TRANSFORMS.items():
            for epochs, seek_index in (("first", "off"), ("later", "memory")):
                best = {"exact": math.inf, "fast": math.inf}
                for _ in range(args.rounds):
                    for decode in best:
                        best[decode] = min(best[decode], cpu_ms(paths, transform, decode, seek_index))
                rows.append([what, name, epochs, f"{best['exact']:.2f} ms", f"{best['fast']:.2f} ms", f"{best['exact'] / best['fast']:.2f}"])
    yield plain_table("fast-error, CPU per image, uint8, warm", f"One thread, the best of {args.rounds} rounds in turn. First epochs: no seek index. Later ones: with it.",
                      ["images", "transform", "epochs", "exact", "fast", "times less"], rows)
