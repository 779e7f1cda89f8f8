"""Whole epochs of Stoker's loader over a folder of photos, with the operations that the public ImageNet script validates with."""

import contestant

import stoker


def epochs(args):
    operations = [stoker.Resize(256), stoker.CenterCrop(224), stoker.ToFloat(), stoker.Normalize("imagenet")]
    with stoker.Loader(args["data"], batch_size=args["batch"], transform=operations, output="numpy") as loader:
        while True:
            yield ((len(images), images.nbytes) for images, _ in loader)


if __name__ == "__main__":
    contestant.race_epochs(epochs, [])
