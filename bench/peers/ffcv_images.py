"""FFCV: photos (or an .npy of images) in its own file, written once before the time starts; args["mode"] is jpg or raw."""

import os

import contestant
import numpy
import torch
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter
from images import MEAN, STD


class Photos:
    """RGB arrays with labels, as FFCV's writer wants them."""

    def __init__(self, source):
        self.rows = numpy.load(source, mmap_mode="r") if source.endswith(".npy") else None
        self.files = contestant.labelled_files(source) if self.rows is None else None

    def __len__(self):
        return len(self.files if self.rows is None else self.rows)

    def __getitem__(self, index):
        import cv2

        if self.rows is not None:
            return numpy.array(self.rows[index]), 0
        path, label = self.files[index]
        return cv2.imread(path, cv2.IMREAD_COLOR_RGB), label


def write(args):
    if not os.path.exists(args["file"]):
        fields = {"image": RGBImageField(write_mode=args["mode"], max_resolution=args["max_resolution"], jpeg_quality=90), "label": IntField()}
        DatasetWriter(args["file"] + ".partial", fields, num_workers=2).from_indexed_dataset(Photos(args["data"]), chunksize=50)
        os.rename(args["file"] + ".partial", args["file"])
    with open(args["file"], "rb", buffering=0) as file:
        while file.read(1 << 22):
            pass


def batches(args):
    torch.set_num_threads(1)
    steps = [RandomResizedCropRGBImageDecoder((args["size"],) * 2), RandomHorizontalFlip()]
    if args["dtype"] == "float32":
        steps.append(NormalizeImage(255 * MEAN, 255 * STD, numpy.float32))
    steps += [ToTensor(), ToTorchImage(channels_last=True)]
    loader = Loader(args["file"], batch_size=args["batch_size"], num_workers=args["num_workers"], order=OrderOption.RANDOM, os_cache=True, drop_last=False,
                    pipelines={"image": steps, "label": [IntDecoder(), ToTensor()]})
    contiguous = None  # used again for each batch: its own ToTorchImage(channels_last=False) copies twice
    while True:
        for images, _ in loader:
            if args["layout"] == "NCHW":
                contiguous = torch.empty(images.shape, dtype=images.dtype) if contiguous is None else contiguous
                images = contiguous[:len(images)].copy_(images)
            yield images


if __name__ == "__main__":  # the writer starts processes that import this file
    contestant.race(batches, ["ffcv", "torch"], before=write)
