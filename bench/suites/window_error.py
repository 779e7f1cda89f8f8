"""How far Window + Resize of 16-bit slices is from Pillow's float resize and from OpenCV's."""

import json
import os
import subprocess

import prepare
import venvs
from contest import plain_table

COUNT, SIZE, LEVEL, WIDTH = 50, 224, -300, 1400
LOW = LEVEL - WIDTH / 2 + prepare.HU_OFFSET


def stokers(npy, filter):
    import numpy

    import stoker

    transform = [stoker.Window(level=LEVEL, width=WIDTH, offset=prepare.HU_OFFSET), stoker.Resize((SIZE, SIZE), interpolation=filter)]
    with stoker.Loader(npy, batch_size=COUNT, color="keep", transform=transform, output="numpy") as loader:
        return numpy.array(next(iter(loader)).data[:, 0])


def pillow(npy, filter):
    import numpy
    from PIL import Image

    slices = numpy.load(npy, mmap_mode="r")[:COUNT].astype(numpy.float32)
    windowed = numpy.clip((slices - numpy.float32(LOW)) / numpy.float32(WIDTH), 0, 1)
    return numpy.stack([numpy.asarray(Image.fromarray(one).resize((SIZE, SIZE), getattr(Image.Resampling, filter.upper()))) for one in windowed])


def opencv(npy, work):
    """{"area": ..., "linear": ...}, and the version."""
    import numpy

    into = {name: os.path.join(work, f"opencv-{name}.npy") for name in ("area", "linear")}
    script = os.path.join(os.path.dirname(venvs.REQUIREMENTS), "opencv_windowed.py")
    done = subprocess.run([venvs.python_of("opencv_windowed", work), script,
                           json.dumps({"data": npy, "count": COUNT, "low": LOW, "width": WIDTH, "size": SIZE, "into": into})],
                          check=True, capture_output=True, text=True)
    return {name: numpy.load(path) for name, path in into.items()}, done.stdout.strip()


def difference(one, other):
    import numpy

    apart = numpy.abs(one.astype(numpy.float64) - other)
    return [f"{apart.mean():.1e}", f"{apart.max():.1e}"]


def run(args):
    import PIL

    _, npy = prepare.ct_slices(args.work)
    rows, boxed, smooth = [], stokers(npy, "box"), stokers(npy, "bilinear")
    for filter, mine in (("box", boxed), ("bilinear", smooth), ("bicubic", stokers(npy, "bicubic"))):
        rows.append([filter, f"Pillow {PIL.__version__}, mode F, {filter.upper()}", *difference(mine, pillow(npy, filter))])
    try:
        theirs, version = opencv(npy, args.work)
        rows.append(["box", f"OpenCV {version}, INTER_AREA (parts of pixels)", *difference(boxed, theirs["area"])])
        rows.append(["bilinear", f"OpenCV {version}, INTER_LINEAR (not antialiased)", *difference(smooth, theirs["linear"])])
    except venvs.Unavailable as reason:
        prepare.say(f"OpenCV is left out: {reason}")
    yield plain_table("window-error, float32 in [0, 1]", f"{COUNT} generated slices of 512 x 512, level {LEVEL}, width {WIDTH}, to {SIZE} x {SIZE}; differences of every pixel.",
                      ["Resize", "against", "mean", "most"], rows)
