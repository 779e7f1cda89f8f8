"""Callables for one sample, which worker processes import by name."""

import asyncio
import os
import random
import signal
import sys
import threading
from typing import NamedTuple

import numpy


def same(row):
    return row


def doubled_in_place(row):
    row *= 2
    return row


def noisy(row):
    return (row + random.random() + numpy.random.rand()).astype(numpy.float64)


def as_bytes(row):
    return row.astype(numpy.uint8).reshape(2, 3)


def as_megabytes(row):
    return numpy.zeros((2, 2**20), numpy.float32)


def two_numbers(view):
    assert view.readonly
    return numpy.array([view[0], view[1], len(view)], dtype=numpy.int32)


def picky(row):
    if row[0] == 5:
        raise ValueError("five is bad")
    return row


def leaves_at_zero_and_five(row):
    if row[0] in (0, 5):
        sys.exit("enough")
    return row


def mostly_bad(row):
    if row[0] > 3:
        raise ValueError("bad")
    return row


def uneven(row):
    return row[: 3 if row[0] == 20 else 2]


def killed_at_nine(row):
    if row[0] == 9:
        os.kill(os.getpid(), signal.SIGKILL)
    return row


def slow(row):
    threading.Event().wait(0.01)
    return row


def stuck_after_four(row):
    if row[0] >= 4:
        threading.Event().wait()
    return row


def wide_or_not(row):
    return row if row[0] % 8 < 3 else row.astype(numpy.float64)


def bytes_or_not(row):
    return row.astype(numpy.uint8 if row[0] % 8 < 3 else numpy.float32)[:2]


def long_or_short(view):
    return numpy.zeros(2 if len(view) % 4 >= 2 else 3, numpy.int32)


class Items:
    """A map-style Dataset of everything that default_collate knows."""

    def __len__(self):
        return 21

    def __getitem__(self, index):
        image = numpy.full((2, 3), index, numpy.float32) + numpy.float32(random.random())
        return {"image": image, "number": index, "half": index / 2, "is_even": index % 2 == 0, "pair": (numpy.int32(index), f"item {index}")}


class Pairs(Items):
    def __getitem__(self, index):
        if index == 5:
            raise KeyError("five")
        return numpy.full(4, index, numpy.uint8), index


class Uneven(Items):
    def __getitem__(self, index):
        return numpy.zeros(1 + index)


class Point(NamedTuple):
    x: object
    name: str


class Mixed(Items):
    """Items 0 to 3 are float32, later ones at times of another type, length or structure; 8 to 11 all are."""

    def __getitem__(self, index):
        point = Point(numpy.full(2, index, numpy.float32), f"{index}")
        if index in (5, 8, 9, 20):
            point = point._replace(x=point.x.astype(numpy.float64))
        if index in (6, 10):
            point = point._replace(x=numpy.zeros(3, numpy.float32))
        return {"point": point, 1: [index]} if index not in (11, 16) else {"point": point}


class Of(Items):
    """Items 1, 2, ... hold what is given; item 0 is what others are to be like."""

    def __init__(self, like, *others):
        self.values = [like, *others]

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index]


def as_pair(row):
    return row, row


def as_masked(row):
    return numpy.ma.masked_less(row, 3)


def as_bfloat16(row):
    import torch

    return torch.from_numpy(row).to(torch.bfloat16)


def brighter(image):
    assert image.dtype == numpy.uint8 and image.ndim == 3 and image.shape[2] == 3
    return image + numpy.uint8(1)


def dimmer(image):
    return image - numpy.uint8(1)


def as_float(image):
    return image.astype(numpy.float32)


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def unprintable_at_five(row):
    if row[0] == 5:
        raise Unprintable
    return row


def cancelled_at_five(row):
    if row[0] == 5:
        raise asyncio.CancelledError("five")
    return row
