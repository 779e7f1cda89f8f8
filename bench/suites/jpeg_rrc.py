"""Photos to RandomResizedCrop 224, flip, batches of 64, uint8 and float32, against the PyTorch DataLoader with torchvision."""

import prepare
from contest import contest, ours, peer

BATCH, SIZE, EPOCHS = 64, 224, 2


def run(args):
    data = prepare.jpeg_folder(args.data, args.work)
    prepare.warm(data)
    count = len(prepare.files_of(data))
    for dtype in ("uint8", "float32"):
        transform = [["random_resized_crop", SIZE], ["flip"]] + ([["normalize", "imagenet"]] if dtype == "float32" else [])
        rows = [ours("Stoker", "stoker_loader", {"data": data, "epochs": EPOCHS, "transform": transform,
                                                 "loader": {"batch_size": BATCH, "shuffle": True, "seed": 42, "dtype": dtype}})]
        rows += [peer(f"DataLoader + torchvision + Pillow, {workers} workers", "torch_torchvision",
                      {"data": data, "epochs": EPOCHS, "dtype": dtype, "size": SIZE, "batch_size": BATCH, "num_workers": workers}, args.work)
                 for workers in (0, 2, 4)]
        yield contest(f"jpeg-rrc, {dtype}, warm", rows, args.rounds,
                      note=f"{count:,} JPEG files, {EPOCHS} epochs, [64, 3, {SIZE}, {SIZE}] {dtype}, NCHW" +
                      (", normalized" if dtype == "float32" else "") + "; start-up is inside the time.")
