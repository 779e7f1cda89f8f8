"""The loader's life at random, step by step beside a model that predicts every batch, counter, state and error.

A life is one data set and a few loaders on it, with 20 to 80 steps. Life number n of a run has the seed ``--seed`` + n, so a life
that fails is repeated alone with its own seed. A step that does not end prints where every thread is, and ends the program.
``test_life.py`` runs this as a program of its own and shows the steps; CONTRIBUTING.md says how to repeat them.
"""

import argparse
import faulthandler
import gc
import io
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import wave

import numpy
from conftest import picture
from life_model import Model, StraightRun

import stoker

TIMEOUT_S = 60        # of the loader: a lost wake-up becomes an error
STEP_DEADLINE_S = 240  # a wait that even the loader's watchdog does not end
MOST_HELD = 6


class Journal:
    """The steps of one life: each is written down before it is taken."""

    def __init__(self, path):
        self._file = open(path, "w", buffering=1)  # noqa: SIM115  (open as long as the life lasts)

    def close(self):
        self._file.close()

    def note(self, step):
        self._file.write(step + "\n")
        faulthandler.dump_traceback_later(STEP_DEADLINE_S, exit=True)


# ---- data sets


def png(number):
    file = io.BytesIO()
    picture(number, 24, 20).save(file, "PNG")
    return file.getvalue()


def sound(number, frames):
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(8000)
        writer.writeframes(numpy.full(frames, number, "<i2").tobytes())
    return file.getvalue()


def make_array(path, size, bad):
    numpy.save(path / "x.npy", numpy.repeat(numpy.arange(size, dtype=numpy.float32)[:, None], 4, 1))
    return path / "x.npy"


def make_photos(path, size, bad):
    for number in range(size):
        folder = path / "photos" / ("cat", "dog")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:03}.png").write_bytes(b"damaged" if number in bad else png(number))
    return path / "photos"


def make_sounds(path, size, bad):
    (path / "sounds").mkdir()
    for number in range(size):
        (path / "sounds" / f"{number:03}.wav").write_bytes(b"damaged" if number in bad else sound(number, 20 + number * 17 % 40))
    return path / "sounds"


def make_tar(path, size, bad):
    with tarfile.open(path / "x.tar", "w") as archive:
        for number in range(size):
            content = b"damaged" if number in bad else png(number)
            member = tarfile.TarInfo(f"{number:03}.png")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path / "x.tar"


def make_raw_pack(path, size, bad):
    with stoker.PackWriter(str(path / "raw.pack")) as writer:
        writer.append(numpy.repeat(numpy.arange(size, dtype=numpy.int16)[:, None], 5, 1), ids=numpy.arange(size) + 7, labels=numpy.arange(size) % 3)
    return path / "raw.pack"


def make_encoded_pack(path, size, bad):
    subprocess.run([sys.executable, "-m", "stoker", "pack", str(make_photos(path, size, ())), str(path / "photos.pack"), "--quiet"], check=True,
                   capture_output=True)
    return path / "photos.pack"


CROP = [stoker.RandomResizedCrop(8), stoker.HorizontalFlip()]
SIZES, PACK_SIZES = (1, 1, 2, 3, 7, 16, 17, None), (1, 7, 23)  # None: 20 to 49
KINDS = {  # how it is made, whether a sample can be bad, the transforms, the sizes
    "array": (make_array, False, (None,), SIZES),
    "photos": (make_photos, True, (CROP, [stoker.Resize((6, 6))]), SIZES),
    "sounds": (make_sounds, True, (None, [stoker.PadOrTrim(30)]), SIZES),
    "tar": (make_tar, True, (CROP,), SIZES),
    "raw pack": (make_raw_pack, False, (None,), PACK_SIZES),
    "encoded pack": (make_encoded_pack, False, (CROP,), PACK_SIZES),
}


class Sources:
    """The data sets of a run. Packs take long to make, so that lives share them."""

    def __init__(self, folder):
        self._folder, self._packs, self._count = folder, {}, 0

    def make(self, kind, size, bad):
        key = (kind, size)
        if key in self._packs:
            return self._packs[key]
        self._count += 1
        place = self._folder / str(self._count)
        place.mkdir()
        source = KINDS[kind][0](place, size, bad)
        if "pack" in kind:
            self._packs[key] = source
        return source

    def drop(self, source):
        if source not in self._packs.values():
            shutil.rmtree(source.parent)


class Life:
    def __init__(self, seed, journal, sources):
        self.draw = random.Random(seed)
        self.note = journal.note
        kind = self.draw.choice(list(KINDS))
        _, may_be_bad, transforms, sizes = KINDS[kind]
        self.size = self.draw.choice(sizes) or self.draw.randrange(20, 50)
        count = self.draw.choice((0, 1, 3, self.size)) if may_be_bad else 0
        bad = sorted({self.draw.randrange(1, self.size) for _ in range(count)}) if self.size > 1 else []
        shuffle = self.draw.choice((False, True, True, "blocks", "blocks:3:12", "nodes:3:5"))
        self.what = dict(seed=seed, shuffle=shuffle, transform=self.draw.choice(transforms), output="numpy", cache_dir=False, timeout=TIMEOUT_S,
                         memory_limit="64MB")
        self.note(f"a data set: {kind}, {self.size} samples, bad: {bad}; shuffle={shuffle!r}, transform={self.what['transform']}")
        self.source = sources.make(kind, self.size, set(bad))
        self.straight = StraightRun(self.source, self.what)
        self.loader = self.model = None
        self.iterators = []  # of this loader: each with the model's
        self.held = []       # a batch, its copy, and the loader it is of
        self.states = []
        self.number = 0
        self.steps = 0

    def run(self):
        self.make_loader()
        actions = [(self.take, 30), (self.start, 12), (self.leave_early, 14), (self.take_all, 6), (self.drop_held, 8), (self.save_state, 6), (self.load_state, 6),
                   (self.set_epoch, 5), (self.set_num_workers, 4), (self.look, 5), (self.close, 2), (self.drop_loader, 2)]
        names, weights = zip(*actions)
        for _ in range(self.draw.randrange(20, 80)):
            self.steps += 1
            if self.loader is None:
                self.make_loader()
            self.draw.choices(names, weights)[0]()
            if self.loader is not None:
                self.check_place()
        self.drop_loader()
        while self.held:
            self.drop_held()

    # ---- steps

    def make_loader(self):
        draw = self.draw
        world_size = draw.choice((1, 1, 2, 3))
        plan = dict(batch_size=draw.choice((1, 2, 3, 4, 5, self.size + 3, draw.randrange(1, self.size + 2))), rank=draw.randrange(world_size),
                    world_size=world_size, last_batch=draw.choice(("keep", "keep", "drop", "pad")),
                    on_error=draw.choice(("raise", "skip", "replace", "zero")), max_errors=draw.choice((None, None, 1, 3, 0.1)))
        means = dict(num_workers=draw.randrange(4), storage=draw.choice(("buffered", "direct", "mmap", "ram", "auto")), prefetch_factor=draw.randrange(4),
                     io_threads=draw.choice(("auto", 1, 2)), io_depth=draw.choice(("auto", 1, 2, 8)), copy=draw.random() < 0.2)
        self.note(f"a loader: {plan}, {means}")
        self.loader = stoker.Loader(self.source, **self.what, **plan, **means)
        self.model = Model(self.size, self.straight, **plan)
        self.has_workers = means["num_workers"] > 0
        self.number += 1
        self.iterators = []
        if self.states and draw.random() < 0.5:
            self.load_state()

    def start(self):
        self.note("iter")
        self.iterators.append((iter(self.loader), self.model.iter()))

    def take(self):
        if not self.iterators:
            return self.start()
        at = -1 if self.draw.random() < 0.9 else self.draw.randrange(len(self.iterators))
        self.take_from(*self.iterators[at], "next" if at == -1 else "next of an iterator, maybe an older one")

    def take_from(self, iterator, number, step):
        """True if there was a batch."""
        self.note(step)
        batch, error = None, ""
        try:
            batch = next(iterator)
        except StopIteration:
            error = "the end"
        except stoker.Error as raised:
            error = str(raised)
        wanted, wanted_error = self.model.next(number)
        assert bool(error) == bool(wanted_error) and error.startswith(wanted_error), f"the error: {error!r}, not {wanted_error!r}"
        if batch is None:
            return False
        got = as_dict(batch)
        for word, value in wanted.items():
            assert same(got[word], value), f"the batch's {word}: {got[word]}, not {value}"
        if len(self.held) < MOST_HELD and self.draw.random() < 0.3:
            self.held.append((batch, got, self.number))
        return True

    def leave_early(self):
        self.start()
        for _ in range(self.draw.randrange(4)):
            self.take_from(*self.iterators[-1], "next, before a break")

    def take_all(self):
        if not self.iterators:
            self.start()
        while self.take_from(*self.iterators[-1], "next, to the end of the epoch"):
            pass

    def drop_held(self):
        """A batch that is held stays as it was handed out, also when its loader is gone."""
        if not self.held:
            return
        batch, copy, number = self.held.pop(self.draw.randrange(len(self.held)))
        self.note(f"drop a batch of loader {number}")
        now = as_dict(batch)
        assert all(same(now[word], copy[word]) for word in copy), "a batch that was held has changed"
        if self.draw.random() < 0.3:
            box = [batch]
            del batch
            thread = threading.Thread(target=box.clear)
            thread.start()
            thread.join()

    def save_state(self):
        self.note("save the state")
        self.states.append(json.loads(json.dumps(self.loader.state_dict())))

    def load_state(self):
        if not self.states:
            return
        state = dict(self.draw.choice(self.states))
        wrong = self.draw.random() < 0.15
        if wrong:
            word = self.draw.choice(("seed", "size", "position"))
            state[word] += 1 if word != "position" else self.size + 1
        self.note(f"load a {'wrong ' if wrong else ''}state: epoch {state['epoch']} at {state['position']}")
        try:
            self.loader.load_state_dict(state)
            assert not wrong, "a wrong state is taken"
            self.model.load_state(state["epoch"], state["position"])
        except ValueError:
            assert wrong

    def set_epoch(self):
        epoch = self.draw.choice((self.loader.epoch, self.draw.randrange(4)))
        self.note(f"set_epoch({epoch})")
        self.loader.set_epoch(epoch)
        self.model.set_epoch(epoch)

    def set_num_workers(self):
        workers = self.draw.randrange(4)
        self.note(f"set_num_workers({workers})")
        try:
            self.loader.set_num_workers(workers)
            assert workers > 0 and self.has_workers, "the number of workers changes"
        except ValueError:
            assert workers == 0 or not self.has_workers, "the number of workers does not change"

    def look(self):
        self.note("look at the figures")
        stats, errors = self.loader.stats(), self.loader.errors
        assert stats["batches"] == self.model.batches and stats["samples"] == self.model.samples, (stats["batches"], stats["samples"])
        assert stats["errors"] == len(errors) == len(self.model.errors), (stats["errors"], len(errors), len(self.model.errors))
        assert stats["memory_peak"] <= stats["memory_limit"]
        told = sorted(self.model.errors, key=lambda error: (error["epoch"], error["position"]))
        for error, wanted in zip(errors, told, strict=True):
            assert {word: getattr(error, word) for word in wanted} == wanted, (error, wanted)

    def check_place(self):
        assert len(self.loader) == self.model.epoch_steps, f"len(loader): {len(self.loader)}, not {self.model.epoch_steps}"
        assert self.loader.epoch == self.model.epoch, f"loader.epoch: {self.loader.epoch}, not {self.model.epoch}"
        state = self.loader.state_dict()
        assert (state["epoch"], state["position"]) == self.model.state, f"the state: {state}, not {self.model.state}"

    def close(self):
        self.note("close")
        self.loader.close()
        self.loader.close()
        for use in (lambda: iter(self.loader), lambda: len(self.loader), lambda: self.loader.load_state_dict({}), *(iterator.__next__ for iterator, _ in self.iterators)):
            try:
                use()
                raise AssertionError("a closed loader can be used")
            except (stoker.Error, StopIteration) as error:
                assert isinstance(error, StopIteration) or "closed" in str(error), error
        state = self.loader.state_dict()
        assert (state["epoch"], state["position"]) == self.model.state
        self.look()
        self.forget_loader()

    def drop_loader(self):
        self.note("drop the loader")
        self.forget_loader()

    def forget_loader(self):
        self.loader, self.iterators = None, []
        if self.draw.random() < 0.1:
            gc.collect()


def as_dict(batch):
    """A copy of everything in a batch."""
    words = ("ids", "indices", "valid", "labels", "data")
    copy = {word: numpy.array(getattr(batch, word)) for word in words}
    return {**copy, "lengths": None if batch.lengths is None else numpy.array(batch.lengths), "names": list(batch.names), "epoch": batch.epoch, "step": batch.step}


def same(one, other):
    if isinstance(other, numpy.ndarray):
        return isinstance(one, numpy.ndarray) and one.shape == other.shape and numpy.array_equal(one, other)
    return one == other


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--journal", type=pathlib.Path, default=pathlib.Path("/dev/stderr"))
    arguments = parser.parse_args()
    faulthandler.enable()
    seed, steps, end = arguments.seed, 0, time.monotonic() + arguments.seconds
    with tempfile.TemporaryDirectory() as folder:
        sources = Sources(pathlib.Path(folder))
        while seed == arguments.seed or time.monotonic() < end:
            journal = Journal(arguments.journal)
            journal.note(f"STOKER_LIFE_SEED={seed}")
            life = Life(seed, journal, sources)
            life.run()
            steps += life.steps
            sources.drop(life.source)
            journal.close()
            seed += 1
    print(f"{seed - arguments.seed} lives, {steps} steps")


if __name__ == "__main__":
    main()
